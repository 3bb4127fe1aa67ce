"""Laws of coalitions against enumeration: Z, inclusion, q, q_i, moments, and both samplers."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from gralis import Gaussian, SizeKernel, Uniform
from gralis.kernels import Kernel, as_kernel
from gralis.laws import Law, ProductLaw, TableLaw, all_masks
from gralis.laws.decreasing import Steps, draw_decreasing
from reference import Kernel as ReferenceKernel
from reference import (
    coalitions,
    conditional,
    conditioned_ig,
    definition_1,
    gauss_panels,
    gaussian,
    inclusion_esp,
    law_q,
    masks_of,
    network,
    normaliser,
    normaliser_esp,
    of_masks,
    point,
    uniform,
)

SQUARES = np.array([0.3, 0.0, 1.7, 0.05, 0.9, 2.4, 0.6, 0.11, 1.2])  # one feature never moves


def rugged(masks: np.ndarray) -> np.ndarray:
    """A kernel that is no product and no function of the size."""
    numbers = np.arange(1, masks.shape[1] + 1)
    return 0.1 + np.abs(np.sin((masks * numbers**2).sum(1))) * 0.7 ** masks.sum(1)


def decay(size: int) -> float:
    return 0.6**size


def gappy(size: int) -> float:
    """Zero on every odd size."""
    return float(size % 2 == 0) * (1 + size)


#: name -> (kernel, its reference for these squared distances)
CASES: dict[str, tuple[object, Callable[[np.ndarray], ReferenceKernel]]] = {
    "uniform": (Uniform(), lambda d: uniform),
    "relative 0.3": (Gaussian(0.3), lambda d: gaussian(d, 0.3, "relative")),
    "relative 2": (Gaussian(2.0), lambda d: gaussian(d, 2.0, "relative")),
    "euclidean 0.5": (Gaussian(0.5, "euclidean"), lambda d: gaussian(d, 0.5, "euclidean")),
    "size": (SizeKernel(decay), lambda d: lambda s: decay(len(s))),
    "size with gaps": (SizeKernel(gappy), lambda d: lambda s: gappy(len(s))),
    "callable": (rugged, lambda d: of_masks(rugged, len(d))),
}
SHARED = [name for name in CASES if name.startswith(("uniform", "relative", "euclidean"))]


def bound(name: str, n: int) -> tuple[Law, ReferenceKernel]:
    kernel, reference = CASES[name]
    return as_kernel(kernel).bind(SQUARES[:n]), reference(SQUARES[:n])


def enumerated_conditional(n: int, kernel: ReferenceKernel) -> np.ndarray:
    """q_i(T), (2^n - 1, n), in the order of `coalitions`."""
    columns = [conditional(n, kernel, i) for i in range(n)]
    return np.array([[column.get(t, 0.0) for column in columns] for t in coalitions(n)])


# ---- exact numbers


@pytest.mark.parametrize("n", [1, 2, 3, 6, 9])
@pytest.mark.parametrize("name", CASES)
def test_normaliser_is_the_sum_over_predecessor_sets(name: str, n: int) -> None:
    law, kernel = bound(name, n)
    np.testing.assert_allclose(law.normaliser, normaliser(n, kernel), rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("name", CASES)
def test_conditional_law_is_the_normalised_pair_weight(name: str, n: int) -> None:
    law, kernel = bound(name, n)
    probabilities = np.exp(law.log_conditional(masks_of(coalitions(n), n)))
    np.testing.assert_allclose(probabilities, enumerated_conditional(n, kernel), rtol=1e-11, atol=1e-300)
    np.testing.assert_allclose(probabilities.sum(0), 1.0, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("name", SHARED)
def test_q_and_inclusion_follow_the_shared_law(name: str, n: int) -> None:
    law, kernel = bound(name, n)
    sets, q = coalitions(n), law_q(n, kernel)
    expected = np.array([q[t] for t in sets])
    np.testing.assert_allclose(np.exp(law.log_probability(masks_of(sets, n))), expected, rtol=1e-11)
    np.testing.assert_allclose(law.inclusion, expected @ masks_of(sets, n), rtol=1e-11)


@pytest.mark.parametrize("name", CASES)
def test_q_is_a_law_and_inclusion_is_its_own(name: str) -> None:
    """For every law, also those without a shared q: probabilities sum to one and inclusion counts them."""
    law, _ = bound(name, 6)
    masks = masks_of(coalitions(6), 6)
    q = np.exp(law.log_probability(masks))
    assert math.isclose(q.sum(), 1.0, rel_tol=1e-12)
    np.testing.assert_allclose(law.inclusion, q @ masks, rtol=1e-11)


@given(
    squares=st.lists(st.floats(0.0, 9.0), min_size=1, max_size=7),
    log_sigma=st.floats(-1.5, 4.0),
    distance=st.sampled_from(["relative", "euclidean"]),
)
@settings(max_examples=40)
def test_gaussian_law_for_any_distances_and_sigma(squares: list[float], log_sigma: float, distance: str) -> None:
    d, sigma, n = np.array(squares), math.exp(log_sigma), len(squares)
    if d.sum() == 0:
        d = d + 1.0
    law = Gaussian(sigma, distance).bind(d)
    kernel = gaussian(d, sigma, distance)
    sets = coalitions(n)
    masks, q = masks_of(sets, n), law_q(n, kernel)
    np.testing.assert_allclose(law.normaliser, normaliser(n, kernel), rtol=1e-11)
    np.testing.assert_allclose(np.exp(law.log_probability(masks)), [q[t] for t in sets], rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(
        np.exp(law.log_conditional(masks)), enumerated_conditional(n, kernel), rtol=1e-9, atol=1e-300
    )
    expected = np.array([q[t] for t in sets]) @ masks
    np.testing.assert_allclose(law.inclusion, expected, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_normaliser_and_inclusion_at_n_40_by_elementary_symmetric_polynomials(scale: float) -> None:
    p = np.exp(-scale * np.random.default_rng(4).uniform(0.0, 1.0, 40))
    law = ProductLaw(np.log(p))
    np.testing.assert_allclose(law.normaliser, normaliser_esp(p), rtol=1e-12)
    np.testing.assert_allclose(law.inclusion, inclusion_esp(p), rtol=1e-12)


def test_esp_formula_is_the_enumerated_normaliser() -> None:
    p = np.exp(-SQUARES[:7])
    expected = normaliser(7, lambda s: math.prod(p[j] for j in s))
    np.testing.assert_allclose(normaliser_esp(p), expected, rtol=1e-13)


@pytest.mark.parametrize("distance", ["relative", "euclidean"])
@pytest.mark.parametrize("sigma", [0.01, 0.1, 0.75, 10.0, 100.0])
def test_stable_for_a_thousand_features_and_any_sigma(sigma: float, distance: str) -> None:
    d = np.random.default_rng(7).gamma(0.5, 2.0, 1000)
    law = Gaussian(sigma, distance).bind(d)
    assert np.isfinite(law.normaliser).all()
    assert (law.normaliser >= (1 - 1e-9) / 1000).all()
    assert (law.normaliser <= 1 + 1e-12).all()
    assert (law.inclusion > 0).all()
    assert (law.inclusion <= 1 + 1e-12).all()
    rng = np.random.default_rng(0)
    ones, log_r = law.propose(rng, 10)
    pairs, log_wide = law.propose(rng, 10, least=2)
    assert pairs.sum(1).min() >= 2
    for masks in (law.sample(rng, 10), ones, pairs):
        assert masks.any(1).all()
        assert np.isfinite(law.log_probability(masks)).all()
        assert np.isfinite(law.log_conditional(masks)[masks]).all()
    assert np.isfinite(log_r).all()
    assert (log_r < 0).all()
    assert np.isfinite(log_wide).all()
    assert (law.log_conditional(ones).max(1) - log_r <= math.log(1000) * 1.5 + 1).all()  # weights q_i / r are bounded
    np.testing.assert_allclose(law.size_moments()[0], 1.0, rtol=1e-9)


def test_normaliser_falls_from_one_to_one_in_n_as_sigma_falls() -> None:
    d = np.random.default_rng(7).uniform(0.5, 2.0, 1000)
    levels = [Gaussian(sigma, "relative").bind(d).normaliser for sigma in (1e6, 1.0, 0.1, 0.01, 0.001)]
    assert all((a > b).all() for a, b in itertools.pairwise(levels))
    np.testing.assert_allclose(levels[0], 1.0, rtol=1e-9)
    np.testing.assert_allclose(levels[-1], 1 / 1000, rtol=1e-6)


@pytest.mark.parametrize("n", [2, 12, 1000])
def test_when_every_coalition_underflows_only_the_empty_predecessor_set_is_left(n: int) -> None:
    law = Gaussian(1e-9, "euclidean").bind(np.full(n, 1e12))
    np.testing.assert_allclose(law.normaliser, 1 / n, rtol=1e-12)
    np.testing.assert_allclose(law.inclusion, 1 / n, rtol=1e-9)
    singles = np.exp(law.log_conditional(np.eye(n, dtype=bool)))
    np.testing.assert_allclose(np.diag(singles), 1.0, rtol=1e-12)
    assert (law.sample(np.random.default_rng(1), 50).sum(1) == 1).all()


def test_uniform_law_is_the_gaussian_one_of_infinite_sigma() -> None:
    wide, flat = Gaussian(1e8).bind(SQUARES), Uniform().bind(SQUARES)
    masks = all_masks(9)
    np.testing.assert_allclose(wide.normaliser, flat.normaliser, rtol=1e-12)
    np.testing.assert_allclose(wide.inclusion, flat.inclusion, rtol=1e-12)
    np.testing.assert_allclose(wide.log_probability(masks), flat.log_probability(masks), rtol=1e-12)


@pytest.mark.parametrize("name", SHARED)
def test_law_identity_equals_definition_1(name: str) -> None:
    """phi_i = E_q[ray_i(T) | i in T], one law for all features, against the sum over predecessor sets."""
    n = 5
    x, base, rule = point(n, 3), np.linspace(-0.3, 0.4, n), gauss_panels()
    d = (x - base) ** 2
    kernel, reference = CASES[name]
    law = as_kernel(kernel).bind(d)
    model, sets = network("softplus", n, 1), coalitions(n)
    masks = masks_of(sets, n)
    rays = np.array(
        [[conditioned_ig(model, x, base, t - {i}, i, rule) if i in t else 0.0 for i in range(n)] for t in sets]
    )
    identity = np.exp(law.log_probability(masks)) @ rays / law.inclusion
    expected = definition_1(model, x, base, reference(d), rule)
    np.testing.assert_allclose(identity, expected, rtol=1e-11)
    by_feature = (np.exp(law.log_conditional(masks)) * rays).sum(0)
    np.testing.assert_allclose(by_feature, expected, rtol=1e-11)


# ---- moments


@pytest.mark.parametrize("n", [2, 5, 7])
@pytest.mark.parametrize("name", CASES)
def test_moments_against_enumeration(name: str, n: int) -> None:
    law, kernel = bound(name, n)
    sets = coalitions(n)
    q, masks = enumerated_conditional(n, kernel), masks_of(sets, n)
    rng = np.random.default_rng(n)
    rows = []
    for order in range(4):
        for i in range(n):
            others = rng.permutation([j for j in range(n) if j != i])[:order]
            rows.append([i, *others, *[n] * (3 - len(others))])
    asked = np.array(rows)
    asked[::2, 1:] = asked[::2, :0:-1]  # padding may stand anywhere in a row
    padded = np.concatenate([masks, np.ones((len(masks), 1), dtype=bool)], axis=1)
    expected = [q[:, row[0]] @ padded[:, row[1:]].all(1) for row in asked]
    np.testing.assert_allclose(law.subset_moments(asked), expected, rtol=1e-10, atol=1e-250)
    sizes = masks.sum(1) / n
    np.testing.assert_allclose(law.size_moments(), [sizes**k @ q for k in range(3)], rtol=1e-10)


def test_table_law_equals_product_law_for_the_same_product_kernel() -> None:
    log_p = -SQUARES[:7] / 2
    table, product = TableLaw(lambda masks: np.exp(masks @ log_p), 7), ProductLaw(log_p)
    masks = all_masks(7)
    np.testing.assert_allclose(table.normaliser, product.normaliser, rtol=1e-12)
    np.testing.assert_allclose(np.exp(table.log_conditional(masks)), np.exp(product.log_conditional(masks)), rtol=1e-11)
    np.testing.assert_allclose(table.size_moments(), product.size_moments(), rtol=1e-12)
    pairs = np.array([[i, j, k] for i in range(7) for j in range(7) for k in range(j + 1, 8) if i not in (j, k)])
    np.testing.assert_allclose(table.subset_moments(pairs), product.subset_moments(pairs), rtol=1e-11)


# ---- samplers

SAMPLED = ["uniform", "relative 0.3", "euclidean 0.5", "size with gaps", "callable"]


def codes(masks: np.ndarray) -> np.ndarray:
    """Row numbers of `all_masks`."""
    return masks @ (1 << np.arange(masks.shape[1])) - 1


@pytest.mark.parametrize("n", [1, 5, 6])
@pytest.mark.parametrize("name", SAMPLED)
def test_sample_has_the_probabilities_it_states(name: str, n: int) -> None:
    law, _ = bound(name, n)
    n_draws = 4_000 if isinstance(law, ProductLaw) else 20_000
    probability = np.exp(law.log_probability(all_masks(n)))
    counts = np.bincount(codes(law.sample(np.random.default_rng(11), n_draws)), minlength=2**n - 1)
    assert (counts[probability == 0] == 0).all()
    assert_chi_square(counts, n_draws * probability)


def assert_chi_square(counts: np.ndarray, expected: np.ndarray, level: float = 1e-4) -> None:
    """Pearson's test for independent draws; cells that expect fewer than five are counted as one."""
    rare = expected < 5
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    counts, expected = counts[expected > 1e-6], expected[expected > 1e-6]
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert statistic <= chi2.ppf(1 - level, max(len(expected) - 1, 1)), f"chi-square {statistic:.1f}"


@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize("n", [5, 6])
@pytest.mark.parametrize("name", SAMPLED)
def test_propose_has_the_probabilities_it_states(name: str, n: int, least: int) -> None:
    """Draws of one call are stratified, hence dependent: the mean over independent calls is what is compared.

    The z-scores use each cell's own spread over calls; 23 draws are no multiple of n, so the dealing of owners and
    sizes is tested too.
    """
    law, kernel = bound(name, n)
    rng, n_draws = np.random.default_rng(5), 23
    n_calls = 120 if isinstance(law, ProductLaw) else 300
    counts = np.zeros((n_calls, 2**n - 1))
    stated: dict[int, float] = {}
    reach = np.zeros((n_calls, n))  # sum of q_i / r: its mean is the mass of q_i on |T| >= least
    for call in range(n_calls):
        masks, log_r = law.propose(rng, n_draws, least=least)
        assert masks.shape == (n_draws, n)
        assert masks.sum(1).min() >= least
        which = codes(masks)
        np.add.at(counts[call], which, 1)
        for code, log in zip(which, log_r, strict=True):
            assert math.isclose(stated.setdefault(int(code), log), log, rel_tol=1e-12, abs_tol=1e-12)
        reach[call] = (np.exp(law.log_conditional(masks) - log_r[:, None])).mean(0)
    probability = np.zeros(2**n - 1)
    probability[list(stated)] = np.exp(list(stated.values()))
    assert probability.sum() <= 1 + 1e-12  # what was never drawn has the rest
    assert probability.sum() >= 0.98
    often = n_calls * n_draws * probability >= 30
    means, errors = counts.mean(0), counts.std(0, ddof=1) / math.sqrt(n_calls)
    z = (means - n_draws * probability)[often] / np.maximum(errors[often], 1e-3 / n_calls)
    assert np.abs(z).max() < 4.5, f"z = {z.round(1)}"
    alone = np.array([conditional(n, kernel, i)[frozenset({i})] for i in range(n)])
    mass = 1.0 if least == 1 else 1 - alone
    error = reach.std(0, ddof=1) / math.sqrt(n_calls)
    assert (np.abs(reach.mean(0) - mass) <= 4.5 * error + 1e-9).all()


@pytest.mark.parametrize("name", SAMPLED)
def test_draws_depend_on_the_generator_alone(name: str) -> None:
    law, _ = bound(name, 6)
    for draw in (lambda rng: law.sample(rng, 9), lambda rng: law.propose(rng, 9, least=2)[0]):
        first, again, other = (draw(np.random.default_rng(seed)) for seed in (3, 3, 4))
        assert (first == again).all()
        assert (first != other).any()


@pytest.mark.parametrize("tilt", [0.0, 0.5])
def test_arrival_times_are_exact_even_from_coarse_cells(tilt: float) -> None:
    """The envelope of the laws is so fine that only three coarse cells show whether the rejection is right.

    u has density u^-tilt exp(-3 u) up to a constant: Kolmogorov's distance to it.
    """
    rng, n = np.random.default_rng(6), 4000
    cells = np.array([0.0, 0.2, 0.6, 1.0])
    power = 1 / (1 - tilt)
    u = draw_decreasing(rng, lambda u: -3 * u, Steps.of(cells, -3 * cells[:-1] ** power), rng.random(n), tilt)
    grid = np.linspace(0, 1, 20_001) ** power  # even in s = u^(1 - tilt), where the density is exp(-3 u) alone
    cumulative = np.concatenate([[0.0], np.cumsum(np.exp(-3 * (grid[1:] + grid[:-1]) / 2))])
    expected = np.interp(np.sort(u), grid, cumulative / cumulative[-1])
    distance = np.abs(expected - (np.arange(n) + 0.5) / n).max()
    assert distance < 2.2 / math.sqrt(n)  # exceeded once in 8 000 times


def test_counts_cover_sizes_as_evenly_as_they_can() -> None:
    """Stratification is real: counts by size never stray from their expectation by one or more."""
    law = Uniform().bind(SQUARES)
    for seed in range(20):
        masks, log_r = law.propose(np.random.default_rng(seed), 40)
        sizes = masks.sum(1)
        counts = Counter(sizes.tolist())
        for size, log in zip(sizes, log_r, strict=True):
            expected = 40 * math.exp(log) * math.comb(9, int(size))
            assert abs(counts[int(size)] - expected) < 1


def test_kernel_without_any_distance_weighs_every_coalition_alike() -> None:
    """x = x' everywhere: relative distances are 0 / 0 and count as 0."""
    kernels: list[Kernel] = [Gaussian(0.1), Gaussian(0.1, "euclidean")]
    for kernel in kernels:
        np.testing.assert_allclose(kernel.bind(np.zeros(5)).normaliser, 1.0, rtol=1e-12)
