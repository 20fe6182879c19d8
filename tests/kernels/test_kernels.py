"""Native kernels against their definitions: bits, values, gradients, real graphs."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from support.kernel_cases import FeatureSizes, Sizes, attention_error, feature_error
from support.synthetic import generate

from oodgat_jax import graphs, methods, models
from oodgat_jax.detectors import input_step
from oodgat_jax.graphs import sparse
from oodgat_jax.kernels import calling
from oodgat_jax.methods import recipes
from oodgat_jax.models import attention
from oodgat_jax.types import InputError, Rates

REAL = (
    "cora",
    "citeseer",
    "pubmed",
    "amazon-photo",
    "amazon-computers",
    "coauthor-cs",
    "facebook-pages",
)
pytestmark = pytest.mark.usefixtures("native")


@pytest.mark.parametrize("logit", ["ood", "gat"])
@pytest.mark.parametrize("drops", ["no", "consecutive", "numbered"])
@pytest.mark.parametrize(
    ("heads", "width"), [(1, 1), (2, 16), (4, 32), (8, 7), (3, 70)]
)
def test_attention(logit, drops, heads, width):
    sizes = Sizes(50, 60, 300, heads, width, logit, drops)
    for seed in range(4):
        assert attention_error(sizes, np.random.default_rng(seed)) < 1e-5


@pytest.mark.parametrize("width", [2, 4, 5, 8, 9, 12, 17, 31, 33, 48, 49, 64, 65])
def test_attention_of_any_width(width):
    sizes = Sizes(20, 20, 90, 4, width, "gat", "consecutive")
    assert attention_error(sizes, np.random.default_rng(width)) < 1e-5


@pytest.mark.parametrize("logit", ["ood", "gat"])
def test_attention_of_a_node_of_many_edges_and_of_no_edges(logit):
    for rows, columns, edges in ((3, 4000, 7000), (5, 5, 0), (1, 1, 1)):
        sizes = Sizes(rows, columns, edges, 4, 6, logit, "consecutive")
        assert attention_error(sizes, np.random.default_rng(0)) < 1e-5


def test_rows_are_summed_in_any_order():
    """The benchmark's limit of gathering does gather."""
    rng = np.random.default_rng(0)
    order = rng.integers(20, size=1000, dtype=np.int32)
    for width in (16, 32, 48, 80):
        rows = rng.normal(size=(20, width)).astype(np.float32)
        found = calling.call("oodgat_sum_rows", ((width,),), rows, order)[0]
        np.testing.assert_allclose(found, rows[order].sum(0), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("drops", ["no", "consecutive", "numbered", "dense"])
@pytest.mark.parametrize("width", [1, 16, 63, 64, 65, 128, 130])
def test_feature_product(drops, width):
    for rows, columns, share in ((300, 40, 0.35), (30, 500, 0.02), (7, 9, 1.0)):
        sizes = FeatureSizes(rows, columns, int(rows * columns * share), width, drops)
        assert feature_error(sizes, np.random.default_rng(width)) < 1e-5


def test_feature_product_without_entries():
    sizes = FeatureSizes(5, 6, 0, 3, "consecutive")
    assert feature_error(sizes, np.random.default_rng(0)) == 0


def test_matrices_too_sparse_for_tiles_go_the_other_way():
    matrix = scipy.sparse.csr_array(([1.0], ([5], [7])), shape=(1 << 17, 1 << 21))
    assert sparse.with_tiles(sparse.features(matrix)).tiles is None


def sparse_dataset(share):
    dataset = generate(200, 1500, 60, num_classes=4, num_id=2, test_size=40)
    few = np.where(dataset.features > np.quantile(dataset.features, 1 - share), 1, 0)
    return dataset._replace(features=scipy.sparse.csr_array(few.astype(np.float32)))


@functools.cache
def measuring(method):
    """The module, and (parameters, graph) -> loss, outputs and gradient, compiled."""
    sizes = {"hidden": 5, "heads": 3}
    module = recipes.module(methods.METHODS[method], sizes, 4)

    def measure(params, graph):
        rates, rngs = Rates(0.5, 0.4, 0.6), {"dropout": jax.random.key(1)}

        def loss(params):
            outputs = module.apply(params, graph, rates, rngs=rngs)
            return jnp.mean(jnp.sin(outputs.logits)), outputs

        return jax.value_and_grad(loss, has_aux=True)(params)

    return module, jax.jit(measure)


def loss_and_gradient(method, graph, dtype=np.float32):
    module, measure = measuring(method)
    shapes = jax.eval_shape(module.init, {"params": jax.random.key(0)}, graph)
    random = np.random.default_rng(0)

    def draw(leaf):
        largest = (6 / sum(leaf.shape)) ** 0.5
        return random.uniform(-largest, largest, leaf.shape).astype(dtype)

    return measure(jax.tree.map(draw, shapes), graph)


def assert_close(found, expected):
    def check(a, b):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)

    jax.tree.map(check, found, expected)


@pytest.mark.parametrize("share", [0.05, 0.35, 0.9])
@pytest.mark.parametrize("method", ["oodgat", "gat", "gatv2", "mlp"])
def test_models_have_the_same_bits_whatever_the_kernel(method, share):
    """Also where native kernels keep features sparse that are dense without them."""
    dataset = sparse_dataset(share)
    native, segment = (
        loss_and_gradient(method, graphs.build(dataset, path))
        for path in ("native", "segment")
    )
    assert_close(native, segment)


def test_features_are_kept_sparse_where_it_pays():
    kinds = {}
    for share in (0.05, 0.35, 0.9):
        nodes = graphs.build(sparse_dataset(share), "native").nodes
        kinds[share] = isinstance(nodes, sparse.SparseFeatures)
    assert kinds == {0.05: True, 0.35: True, 0.9: False}
    assert not isinstance(
        graphs.build(sparse_dataset(0.35), "sparse").nodes, sparse.SparseFeatures
    )


@pytest.mark.parametrize("share", [0.05, 0.35])
def test_gradients_of_feature_values(share):
    """A detector that moves the features moves the same ones on every path."""
    moved = []
    for path in ("native", "segment"):
        graph = graphs.build(sparse_dataset(share), path)
        module = models.OODGAT(4, 5, 3)
        params = jax.jit(module.init)({"params": jax.random.key(0)}, graph)

        def loss(graph, module=module, params=params):
            return jnp.sum(jnp.sin(module.apply(params, graph).logits))

        nodes = jax.jit(functools.partial(input_step, loss, epsilon=0.1))(graph).nodes
        dense = not isinstance(nodes, sparse.SparseFeatures)
        moved.append(nodes if dense else nodes.values)
    assert np.mean(np.abs(moved[0] - moved[1]) > 1e-5) < 1e-3  # signs of tiny slopes


def test_float64_goes_the_pure_way():
    graph = graphs.build(sparse_dataset(0.35), "native")
    with jax.enable_x64(True):
        (_, outputs), _ = loss_and_gradient("oodgat", graph, np.float64)
    (_, expected), _ = loss_and_gradient("oodgat", graph)
    assert outputs.logits.dtype == np.float64
    assert_close(outputs, expected)


def arguments():
    rng = np.random.default_rng(0)
    graph = graphs.build(sparse_dataset(0.05), "native")
    arrays = rng.normal(size=(3, 200, 2)), rng.normal(size=(3, 200, 2, 5))
    return graph, *(jnp.float32(x) for x in arrays)


def gradient(graph, w, h):
    dropout = attention.EdgeDropout(jax.random.key(0), 0.6)

    def loss(w, h):
        out = attention.attend(graph, attention.OOD_LOGIT, w, w, h, dropout)
        return jnp.sum(jnp.sin(out))

    return jax.grad(loss, (0, 1))(w, h)


def test_batches_loops_and_recomputation():
    graph, w, h = arguments()
    alone = [jax.jit(gradient)(graph, w[k], h[k]) for k in range(3)]
    expected = jax.tree.map(lambda *x: jnp.stack(x), *alone)
    batch = jax.jit(jax.vmap(gradient, (None, 0, 0)))(graph, w, h)
    jax.tree.map(np.testing.assert_array_equal, batch, expected)
    again = jax.jit(lambda *args: jax.lax.map(lambda x: gradient(graph, *x), args))
    jax.tree.map(np.testing.assert_array_equal, again(w, h), expected)
    remat = jax.jit(jax.checkpoint(gradient))(graph, w[0], h[0])
    jax.tree.map(np.testing.assert_array_equal, remat, alone[0])


def test_same_bits_twice():
    graph = graphs.build(sparse_dataset(0.35), "native")
    twice = []
    for _ in range(2):
        measuring.cache_clear()  # traced and compiled anew
        twice.append(loss_and_gradient("oodgat", graph))
    jax.tree.map(np.testing.assert_array_equal, *twice)


@pytest.mark.real_data
@pytest.mark.parametrize("name", REAL)
def test_all_kernels_agree_on_real_graphs(name, real):
    segment, *others = (
        loss_and_gradient("oodgat", graphs.build(real(name), path))
        for path in ("segment", "sparse", "native")
    )
    for other in others:
        assert_close(other, segment)


def test_unknown_path():
    with pytest.raises(InputError, match="native"):
        graphs.build(sparse_dataset(0.05), "naive")
