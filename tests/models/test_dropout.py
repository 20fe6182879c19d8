"""Statistics of the dropout bits; seeds are fixed, tests are at the 1e-4 level."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from oodgat_jax import dropout
from oodgat_jax.models.attention import EdgeDropout

SIZE = 1 << 17
LEVEL = 1e-4
KEY = jax.random.key(7)
POSITIONS = jnp.arange(SIZE, dtype=jnp.uint32)
keep = jax.jit(dropout.keep)


def kept(key, rate=0.5, positions=POSITIONS):
    return np.asarray(keep(key, positions, rate)) > 0


def assert_independent(first, second):
    """Chi-square test of a 2 x 2 table, at a level shared by all pairs."""
    table = np.histogram2d(first.ravel(), second.ravel(), bins=2)[0]
    assert stats.chi2_contingency(table).pvalue > LEVEL


def assert_all_independent(masks):
    """No pair of masks [K, SIZE] is correlated more than chance allows."""
    correlation = np.corrcoef(masks)
    pairs = correlation[np.triu_indices(len(masks), 1)]
    bound = stats.norm.isf(LEVEL / 2 / len(pairs)) / np.sqrt(masks.shape[1])
    assert np.abs(pairs).max() < bound


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.6, 0.9])
def test_share_and_values_of_what_is_kept(rate):
    factors = np.asarray(keep(KEY, POSITIONS, rate))
    np.testing.assert_allclose(np.unique(factors), [0, 1 / (1 - rate)], rtol=1e-6)
    count = int((factors > 0).sum())
    assert stats.binomtest(count, SIZE, 1 - rate).pvalue > LEVEL


def test_rate_zero_keeps_all_exactly():
    np.testing.assert_array_equal(keep(KEY, POSITIONS, 0.0), 1.0)
    x = jnp.array([[1.5, -2.0], [0.0, 3e-30]])
    np.testing.assert_array_equal(dropout.dropout(KEY, x, 0.0), x)


def test_rate_one_drops_all():
    np.testing.assert_array_equal(keep(KEY, POSITIONS, 1.0), 0.0)


def test_rate_may_be_traced_and_batched():
    rates = jnp.array([0.0, 0.3, 0.6])
    batched = jax.vmap(lambda rate: keep(KEY, POSITIONS, rate))(rates)
    for factors, rate in zip(batched, rates, strict=True):
        np.testing.assert_array_equal(factors, keep(KEY, POSITIONS, rate))


def test_expectation_and_variance():
    x, rate, draws = jnp.linspace(-1.0, 2.0, 50), 0.6, 4000
    keys = jax.random.split(KEY, draws)
    out = jax.vmap(lambda key: dropout.dropout(key, x, rate))(keys)
    deviation = jnp.abs(x) * np.sqrt(rate / (1 - rate))
    bound = stats.norm.isf(LEVEL / 2 / x.size) * deviation / np.sqrt(draws)
    assert (jnp.abs(out.mean(0) - x) <= bound).all()
    np.testing.assert_allclose(out.std(0), deviation, rtol=0.06)


@pytest.mark.parametrize("shift", [0, 8, 16, 24])
def test_every_byte_is_uniform(shift):
    values = np.asarray(dropout.bits(KEY, POSITIONS)) >> shift & 255
    counts = np.bincount(values, minlength=256)
    assert stats.chisquare(counts).pvalue > LEVEL


@pytest.mark.parametrize("lag", [1, 2, 3, 4, 8, 32, 128, 1433, 1 << 16])
def test_positions_are_independent(lag):
    mask = kept(KEY)
    assert_independent(mask[:-lag], mask[lag:])


def test_nodes_have_binomial_counts():
    """Neither more nor less spread among nodes, 128 wide, than independence gives."""
    counts = kept(KEY).reshape(-1, 128).sum(1)
    statistic = ((counts - 64) ** 2 / 32).sum()
    assert LEVEL / 2 < stats.chi2.cdf(statistic, len(counts)) < 1 - LEVEL / 2


def test_heads_are_independent():
    factors = EdgeDropout(KEY, 0.6).factors(jnp.arange(SIZE // 8), 8)
    assert factors.shape == (8, SIZE // 8)
    assert_all_independent(np.asarray(factors) > 0)


def test_edges_have_their_factors_in_any_order():
    edges = np.random.default_rng(0).permutation(1000)
    drop = EdgeDropout(KEY, 0.6)
    in_order = drop.factors(jnp.arange(1000), 4)
    np.testing.assert_array_equal(drop.factors(edges, 4), in_order[:, edges])


KEYS = {
    "steps": lambda: jax.vmap(lambda t: jax.random.fold_in(KEY, t))(jnp.arange(32)),
    "runs": lambda: jax.random.split(KEY, 32),
    "seeds": lambda: jax.vmap(jax.random.key)(jnp.arange(32)),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_are_independent(kind):
    masks = np.asarray(jax.vmap(lambda key: keep(key, POSITIONS, 0.5))(KEYS[kind]()))
    assert_all_independent(masks > 0)


def test_keys_are_independent_at_other_positions_too():
    first, second = (kept(key) for key in jax.random.split(KEY))
    for lag in (1, 4, 128):
        assert_independent(first[:-lag], second[lag:])


def test_same_key_same_bits():
    np.testing.assert_array_equal(kept(KEY), kept(jax.random.key(7)))


def test_more_positions_change_no_earlier_ones():
    np.testing.assert_array_equal(kept(KEY)[:1000], kept(KEY, 0.5, POSITIONS[:1000]))


def test_higher_rate_drops_more_of_the_same():
    assert not (kept(KEY, 0.6) & ~kept(KEY, 0.5)).any()
