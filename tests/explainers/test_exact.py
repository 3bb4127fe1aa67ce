"""Every explainer on an exhaustive ledger: by hand, by shapiq, by the axioms; and never a model call."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from explainers.definitions import all_masks, as_function, best_fit, random_game, sets_of, shapiq_index
from gralis import Explanation, baselines, explain, models
from gralis.explainers.indices import BANZHAF, SII, Index, k_sii, stii
from gralis.games import Airport, Glove, Multilinear, appendix_e
from reference import game, network, point, shapley_by_orders, subsets


def explained(v: np.ndarray) -> Explanation:
    """A game given by its table, every coalition evaluated."""
    n = int(np.log2(len(v)))
    return explain(models.blackbox(as_function(v)), np.ones(n), plan="endpoint", budget=None)


def numbers(found: object) -> np.ndarray:
    return np.array([found[a] for a in found])


# ---- by hand: captum's toy models, the paper's Appendix E


def basic_model_2(z: torch.Tensor) -> torch.Tensor:
    """captum's BasicModel2, relu(relu(x1) - 1 - relu(x2))."""
    return torch.relu(torch.relu(z[:, 0]) - 1 - torch.relu(z[:, 1]))


def multilayer(z: torch.Tensor) -> torch.Tensor:
    """captum's BasicModel_MultiLayer, first output: relu of s + (-10, 1, 1, 1), summed, - 1, with s = x1 + x2 + x3."""
    return torch.relu(z.sum(1, keepdim=True) + torch.tensor([-10.0, 1.0, 1.0, 1.0])).sum(1) - 1


def test_captum_basic_model_2() -> None:
    """At (3, 1): on the diagonal relu(2a - 1), slopes 3 and -1 for a > 1/2; v = 2 and 0 alone, 1 together."""
    found = explain(basic_model_2, np.array([3.0, 1.0]), plan="exhaustive", quadrature="midpoint", n_nodes=10)
    assert found.integrated_gradients().values == pytest.approx([3 / 2, -1 / 2], abs=1e-12)
    assert found.singles().values == pytest.approx([2, 0], abs=1e-12)
    assert found.shapley().values == pytest.approx([(2 + 1) / 2, (0 - 1) / 2], abs=1e-12)
    assert found.banzhaf().values == pytest.approx([3 / 2, -1 / 2], abs=1e-12)  # of two features the same
    assert found.interactions()[(0, 1)] == pytest.approx(1 - 2 - 0, abs=1e-12)


def test_captum_multilayer() -> None:
    """At (20, 50, 30): v(T) = 3 s + (s - 10) for every T but the empty one, so the -10 is shared by three.

    On the diagonal s = 100 a, and the unit with -10 is open for a > 1/10: IG_i = x_i (3 + 9/10).
    """
    x = np.array([20.0, 50.0, 30.0])
    found = explain(multilayer, x, plan="exhaustive", quadrature="midpoint", n_nodes=10)
    assert found.shapley().values == pytest.approx(4 * x - 10 / 3, abs=1e-9)  # captum: 76.667, 196.667, 116.667
    assert found.integrated_gradients().values == pytest.approx(3.9 * x, abs=1e-9)
    assert found.singles().values == pytest.approx(4 * x - 10, abs=1e-9)
    assert numbers(found.moebius(3)) == pytest.approx([70, 190, 110, 10, 10, 10, -10], abs=1e-9)


@pytest.mark.parametrize("plan", ["exhaustive", "shared", "endpoint"])
def test_appendix_e_through_the_ledger(plan: str) -> None:
    found = explain(appendix_e(), np.ones(3), plan=plan)
    assert found.shapley().values == pytest.approx([7 / 2, 6, 3 / 2], abs=1e-12)
    assert found.kernel_shap().values == pytest.approx([7 / 2, 6, 3 / 2], abs=1e-12)
    assert found.singles().values == pytest.approx([2, 3, 1], abs=1e-12)
    pairs = found.interactions(order=2, index="SII")
    assert [pairs[(0, 1)], pairs[(0, 2)], pairs[(1, 2)]] == pytest.approx([4, -1, 2], abs=1e-12)
    assert numbers(found.moebius(3)) == pytest.approx([2, 3, 1, 4, -1, 2, 0], abs=1e-12)
    if plan != "endpoint":  # multilinear: the straight path is Shapley's
        assert found.integrated_gradients().values == pytest.approx([7 / 2, 6, 3 / 2], abs=1e-12)
    assert found.shapley().exact
    assert pairs.exact
    assert pairs.index == "SII"
    assert "Shapley values (exact)" in repr(found.shapley())
    assert "SII up to order 2 (exact)" in repr(pairs)


@pytest.mark.parametrize("played", [Airport([1, 2, 4, 4]), Glove(2, 3)])
def test_airport_and_glove(played: Airport | Glove) -> None:
    n = played.n_features
    found = explain(models.blackbox(played), np.ones(n), plan="endpoint")
    assert found.shapley().values == pytest.approx(played.shapley().astype(float), abs=1e-12)
    assert found.banzhaf().values == pytest.approx(played.banzhaf().astype(float), abs=1e-12)
    coefficients = played.moebius()
    assert numbers(found.moebius(n)) == pytest.approx([coefficients.get(a, 0) for a in sets_of(n, n)], abs=1e-12)


# ---- against shapiq


@pytest.mark.parametrize("n", [2, 5, 10])
@pytest.mark.parametrize("index", ["SII", "STII", "k-SII", "BII"])
def test_interactions_against_shapiq(index: str, n: int) -> None:
    v = random_game(n, 1)
    found = explained(v)
    for order in range(1, min(n, 3) + 1):
        ours = found.interactions(order, index)
        assert list(ours) == sets_of(n, order)
        assert (ours.index, ours.order, ours.exact) == (index, order, True)
        np.testing.assert_allclose(numbers(ours), shapiq_index(v, index, order), rtol=0, atol=1e-10)


@pytest.mark.parametrize("n", [2, 5, 10])
def test_faith_shap_against_shapiq_and_its_definition(n: int) -> None:
    """shapiq puts 1e8 in place of the constraint, which costs it digits; the definition has them."""
    v = random_game(n, 2)
    found = explained(v)
    for order in range(1, min(n, 3) + 1):
        ours = numbers(found.interactions(order, "FSII"))
        np.testing.assert_allclose(ours, best_fit(v, order), rtol=0, atol=1e-10)
        np.testing.assert_allclose(ours, shapiq_index(v, "FSII", order), rtol=0, atol=1e-7)


@pytest.mark.parametrize("n", [2, 5, 10])
def test_moebius_and_values_against_shapiq(n: int) -> None:
    v = random_game(n, 3)
    found = explained(v)
    np.testing.assert_allclose(numbers(found.moebius(n)), shapiq_index(v, "Moebius", n), rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.shapley().values, shapiq_index(v, "SV", 1), rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.kernel_shap().values, shapiq_index(v, "SV", 1), rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.banzhaf().values, shapiq_index(v, "BV", 1), rtol=0, atol=1e-10)


@pytest.mark.parametrize("index", [SII, BANZHAF, stii(2), k_sii(3)], ids=lambda index: index.name)
def test_weights_of_differences(index: Index) -> None:
    """I(A) = sum over S without A of p(a, s) D_A v(S): what a sampled coalition counts, against shapiq."""
    n, v = 5, random_game(5, 8)
    order, name = {"STII": 2, "k-SII": 3}.get(index.name, 3), {"Banzhaf": "BII"}.get(index.name, index.name)
    found = []
    for a in map(frozenset, sets_of(n, order)):
        total = 0.0
        for s in subsets(set(range(n)) - a):
            difference = sum((-1) ** (len(a) - len(b)) * v[sum(1 << j for j in s | b)] for b in subsets(a))
            total += float(index.weight(n, len(a), len(s))) * difference
        found.append(total)
    np.testing.assert_allclose(found, shapiq_index(v, name, order), rtol=0, atol=1e-10)


def test_every_order_of_k_sii() -> None:
    """Up to the order of the game itself k-SII is Moebius: Bernoulli numbers undo the averaging of SII."""
    v = random_game(6, 4)
    found = explained(v)
    for order in range(1, 7):
        expected = shapiq_index(v, "k-SII", order)
        np.testing.assert_allclose(numbers(found.interactions(order, "k-SII")), expected, rtol=0, atol=1e-10)
    f = Multilinear.random(12, 3)
    deep = explain(models.blackbox(f), np.ones(12), plan="endpoint", budget=None).interactions(12, "k-SII")
    coefficients = f.moebius()
    np.testing.assert_allclose(numbers(deep), [float(coefficients.get(a, 0)) for a in deep], rtol=0, atol=1e-9)


def test_moebius_of_16_features_by_the_slow_definition() -> None:
    v, masks = random_game(16, 5), all_masks(16)
    found = explained(v).moebius(16)
    assert len(found) == 65_535
    for a in [(3,), (0, 15), (2, 7, 11), tuple(range(5, 14)), tuple(range(16))]:
        inside = ~masks[:, [j for j in range(16) if j not in a]].any(1)  # every subset of a
        expected = math.fsum((-1) ** (len(a) - masks[inside].sum(1)) * v[inside])
        assert found[a] == pytest.approx(expected, abs=1e-9)
    assert math.fsum(found.values()) == pytest.approx(v[-1], abs=1e-7)


# ---- axioms


@pytest.mark.parametrize("n", [1, 2, 6])
def test_sums_are_the_whole_difference(n: int) -> None:
    v = random_game(n, 6)
    found = explained(v)
    order = min(n, 3)
    assert sum(found.moebius(n).values()) == pytest.approx(v[-1], abs=1e-12)
    assert found.shapley().values.sum() == pytest.approx(v[-1], abs=1e-12)
    assert found.kernel_shap().values.sum() == pytest.approx(v[-1], abs=1e-12)
    for index in ("STII", "FSII", "k-SII"):
        assert sum(found.interactions(order, index).values()) == pytest.approx(v[-1], abs=1e-12), index
    if n > 2:  # and those that are not efficient do not happen to be
        assert abs(sum(found.interactions(order, "SII").values()) - v[-1]) > 0.1
        assert abs(found.banzhaf().values.sum() - v[-1]) > 0.1


def test_dummy_and_symmetry() -> None:
    """Feature 4 changes nothing; features 0 and 2 change the same."""
    masks, v = all_masks(5), random_game(5, 7)
    v = v[masks[:, :4] @ (1 << np.arange(4))]
    swapped = masks[:, [2, 1, 0, 3, 4]] @ (1 << np.arange(5))
    found = explained((v + v[swapped]) / 2)
    for attribution in (found.shapley(), found.banzhaf(), found.kernel_shap(), found.singles()):
        assert attribution.values[4] == pytest.approx(0, abs=1e-12), attribution.method
        assert attribution.values[0] == pytest.approx(attribution.values[2], abs=1e-12), attribution.method
        assert abs(attribution.values[0] - attribution.values[1]) > 1e-3, attribution.method
    for index in ("SII", "STII", "k-SII", "FSII", "BII"):
        pairs = found.interactions(2, index)
        assert [pairs[(j, 4)] for j in range(4)] == pytest.approx([0] * 4, abs=1e-12), index
        assert pairs[(0, 1)] == pytest.approx(pairs[(1, 2)], abs=1e-12), index
        assert abs(pairs[(0, 1)] - pairs[(1, 3)]) > 1e-3, index


def test_shapley_of_a_network_by_all_orders() -> None:
    n = 6
    model, x, base = network("relu", n, 1), point(n, 1), np.linspace(-0.5, 0.5, n)
    found = explain(model, x, baseline=base, plan="exhaustive", budget=None)
    np.testing.assert_allclose(found.shapley().values, shapley_by_orders(game(model, x, base), n), rtol=0, atol=1e-12)


def test_several_baselines_are_averaged() -> None:
    n = 5
    model, x = network("softplus", n, 2), point(n, 2)
    background = np.random.default_rng(0).standard_normal((3, n))
    found = explain(model, x, baseline=baselines.sample(background), plan="exhaustive", budget=None)
    each = [game(model, x, base) for base in background]
    expected = np.mean([shapley_by_orders(value, n) for value in each], axis=0)
    np.testing.assert_allclose(found.shapley().values, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.kernel_shap().values, expected, rtol=0, atol=1e-12)
    alone = [np.mean([value(frozenset({i})) for value in each]) for i in range(n)]
    np.testing.assert_allclose(found.singles().values, alone, rtol=0, atol=1e-12)
    assert found.moebius(2)[(1, 3)] == pytest.approx(
        np.mean([value(frozenset({1, 3})) - value(frozenset({1})) - value(frozenset({3})) for value in each])
    )


def test_values_from_ray_sums_are_flagged() -> None:
    """Without forwards v(T) is the sum of the ray of T (Lemma A): the same numbers up to quadrature, and said so."""
    n = 5
    model, x = network("softplus", n, 3), point(n, 3)
    found = explain(model, x, plan="exhaustive", budget=None, coalition_values=False)
    expected = shapley_by_orders(game(model, x, np.zeros(n)), n)
    np.testing.assert_allclose(found.shapley().values, expected, rtol=0, atol=1e-8)
    for result in (found.shapley(), found.kernel_shap(), found.lime(), found.interactions(), found.moebius()):
        assert "ray sums" in result.note
        assert "ray sums" in repr(result)
    assert explain(model, x, plan="exhaustive", budget=None).shapley().note == ""


# ---- the results themselves

METHODS: dict[str, Callable[[Explanation], object]] = {
    "integrated_gradients": lambda e: e.integrated_gradients(),
    "singles": lambda e: e.singles(),
    "shapley": lambda e: e.shapley(),
    "banzhaf": lambda e: e.banzhaf(),
    "kernel_shap": lambda e: e.kernel_shap(),
    "lime": lambda e: e.lime(),
    "lime lasso": lambda e: e.lime(k_features=3),
    "lime largest": lambda e: e.lime(k_features=3, select="largest"),
    "moebius": lambda e: e.moebius(2),
    **{index: lambda e, index=index: e.interactions(2, index) for index in ("SII", "STII", "k-SII", "FSII", "BII")},
}


@pytest.mark.parametrize("options", [{"budget": None}, {"budget": 400}, {"budget": 400, "plan": "independent"}])
def test_no_method_calls_the_model(options: dict[str, object]) -> None:
    calls = []
    inner = network("softplus", 7, 4)

    def model(z: torch.Tensor) -> torch.Tensor:
        calls.append(len(z))
        return inner(z)

    found = explain(model, point(7, 4), **options)
    before = sum(calls)
    assert before > 0
    for name, method in METHODS.items():
        if name == "singles" and "plan" in options:
            continue  # not every feature was drawn alone
        repr(method(found))
        assert sum(calls) == before, name


def test_interactions_as_a_mapping() -> None:
    f = appendix_e()
    found = explain(f, np.ones(3)).interactions(2)
    expected = {(i,): s for i, s in enumerate(f.shapley())} | f.interactions()
    assert dict(found) == {a: pytest.approx(float(s), abs=1e-12) for a, s in expected.items()}
    assert found[(2, 1)] == found[(1, 2)] == pytest.approx(2)
    assert found[1] == found[(1,)] == pytest.approx(6)
    assert found.error((1, 2)) == 0
    assert found.matrix() == pytest.approx(np.array([[3.5, 4, -1], [4, 6, 2], [-1, 2, 1.5]]))
    assert [a for a, _ in found.top(2)] == [(0, 1), (1, 2)]
    assert found.interval() == pytest.approx(np.array([[s, s] for s in found.values()]), abs=1e-13)


def test_one_feature() -> None:
    found = explain(lambda z: 3 * z[:, 0] ** 2, np.ones(1))
    for attribution in (found.shapley(), found.banzhaf(), found.kernel_shap(), found.singles()):
        assert attribution.values == pytest.approx([3.0]), attribution.method
    assert found.integrated_gradients().values == pytest.approx([3.0])
    assert dict(found.moebius(1)) == {(0,): pytest.approx(3.0)}
    for index in ("SII", "STII", "k-SII", "FSII", "BII"):
        assert dict(found.interactions(1, index)) == {(0,): pytest.approx(3.0)}
    assert found.lime(ridge=0.0).values == pytest.approx([3.0])


def test_order_of_coalitions_is_by_size_then_lexicographic() -> None:
    assert list(explain(appendix_e(), np.ones(3)).moebius(3)) == [
        a for size in (1, 2, 3) for a in itertools.combinations(range(3), size)
    ]
