"""Sparse products against scipy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from oodgat_jax.graphs import sparse

SHAPES = [(1, 1), (5, 3), (4, 9)]
value_and_gradients = jax.jit(
    lambda values, pattern, x, g: (
        sparse.matmul(values, pattern, x),
        *jax.vjp(lambda v, x: sparse.matmul(v, pattern, x), values, x)[1](g),
    )
)


def random_matrix(shape, density=0.4, seed=0):
    """Some rows and columns are empty."""
    matrix = scipy.sparse.random_array(
        shape, density=density, random_state=np.random.default_rng(seed), format="csr"
    )
    matrix.sum_duplicates()
    return matrix.astype(np.float32)


def indexed(matrix):
    stored = matrix.tocoo()
    order = np.lexsort((stored.col, stored.row))
    rows, columns = stored.row[order], stored.col[order]
    return stored.data[order], sparse.pattern(rows, columns, matrix.shape)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("width", [1, 8, 11])
def test_product_and_its_gradients(shape, width):
    matrix = random_matrix(shape)
    values, pattern = indexed(matrix)
    draw = np.random.default_rng(1)
    x = draw.normal(size=(shape[1], width)).astype(np.float32)
    g = draw.normal(size=(shape[0], width)).astype(np.float32)
    out, d_values, dx = value_and_gradients(values, pattern, x, g)
    dense = matrix.toarray()
    np.testing.assert_allclose(out, dense @ x, atol=1e-5)
    np.testing.assert_allclose(dx, dense.T @ g, atol=1e-5)
    expected = (g @ x.T)[pattern.rows, pattern.columns]
    np.testing.assert_allclose(d_values, expected, atol=1e-5)


def test_transposed_product():
    matrix = random_matrix((6, 4))
    values, pattern = indexed(matrix)
    x = np.random.default_rng(2).normal(size=(6, 5)).astype(np.float32)
    product = jax.jit(sparse.matmul_transposed)(values, pattern, x)
    np.testing.assert_allclose(product, matrix.toarray().T @ x, atol=1e-5)


def test_matrix_without_entries():
    values, pattern = indexed(scipy.sparse.csr_array((3, 4), dtype=np.float32))
    product = jax.jit(sparse.matmul)(values, pattern, jnp.ones((4, 2)))
    np.testing.assert_array_equal(product, np.zeros((3, 2)))


def test_batched_over_values_and_over_both():
    matrix = random_matrix((5, 4))
    values, pattern = indexed(matrix)
    batch = np.stack([values, 2 * values, -values])
    x = np.random.default_rng(3).normal(size=(3, 4, 2)).astype(np.float32)
    dense = matrix.toarray()
    one = jax.jit(jax.vmap(sparse.matmul, (0, None, None)))(batch, pattern, x[0])
    expected = [dense @ x[0], 2 * dense @ x[0], -dense @ x[0]]
    np.testing.assert_allclose(one, expected, atol=1e-5)
    both = jax.jit(jax.vmap(sparse.matmul, (0, None, 0)))(batch, pattern, x)
    expected = [dense @ x[0], 2 * dense @ x[1], -dense @ x[2]]
    np.testing.assert_allclose(both, expected, atol=1e-5)


def test_features_add_up_duplicates_and_sort():
    stored = ([1.0, 2.0, 3.0, 4.0], ([1, 0, 1, 1], [2, 1, 2, 0]))
    matrix = scipy.sparse.coo_array(stored, shape=(3, 3))
    features = sparse.features(matrix)
    assert features.shape == (3, 3)
    product = jax.jit(sparse.matmul)(features.values, features.pattern, jnp.eye(3))
    np.testing.assert_array_equal(product, matrix.toarray())
    np.testing.assert_array_equal(features.pattern.rows, [0, 1, 1])
    np.testing.assert_array_equal(features.pattern.columns, [1, 0, 2])


@pytest.mark.parametrize("symmetric", [True, False])
def test_pattern_lists_entries_by_column(symmetric):
    dense = random_matrix((7, 7), density=0.2).toarray() > 0
    dense = dense | dense.T if symmetric else dense
    rows, columns = np.nonzero(dense)
    pattern = sparse.pattern(rows, columns, dense.shape)
    by_column = np.asarray(pattern.by_column)
    columns_then, rows_then = np.nonzero(dense.T)
    np.testing.assert_array_equal(rows[by_column], rows_then)
    np.testing.assert_array_equal(pattern.rows_by_column, rows_then)
    np.testing.assert_array_equal(pattern.columns_by_column, columns_then)
    np.testing.assert_array_equal(np.diff(pattern.row_ptr), dense.sum(1))
    np.testing.assert_array_equal(np.diff(pattern.column_ptr), dense.sum(0))
