"""Metrics that run the method again: another seed, a nearby input, a random model."""

import numpy as np
import pytest
import torch
from torch import nn

from gralis import GralisError, methods
from gralis.faithfulness import infidelity, max_sensitivity, model_randomisation, rank_agreement, stability
from untouched import untouched


def network(seed: int = 0) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))
    return net.double().eval()


X = torch.linspace(-1, 1, 8).double()


def test_max_sensitivity_of_a_linear_model_by_hand() -> None:
    """phi = w x, so phi(x + d) - phi(x) = w d with d from the same generator."""
    w, x = np.array([2.0, -1.0, 0.5]), np.array([1.0, 1.0, 4.0])
    score = max_sensitivity(
        lambda z: z @ torch.from_numpy(w), x, w * x, method="occlusion", radius=0.1, n_perturbations=6, seed=2
    )
    rng = np.random.default_rng(2)
    moves = [np.linalg.norm(w * rng.uniform(-0.1, 0.1, 3)) / np.linalg.norm(w * x) for _ in range(6)]
    assert score.value == pytest.approx(max(moves))
    assert score.curve.values == pytest.approx(moves)
    assert score.better == "lower"


def test_max_sensitivity_against_captum() -> None:
    metrics, attr = pytest.importorskip("captum.metrics"), pytest.importorskip("captum.attr")
    net, rng = network(), np.random.default_rng(0)
    steps = torch.from_numpy(np.stack([rng.uniform(-0.05, 0.05, 8) for _ in range(5)]))
    ig = attr.IntegratedGradients(net)
    theirs = metrics.sensitivity_max(
        lambda inputs: ig.attribute(inputs, target=1, n_steps=60, method="riemann_middle"),
        X[None],
        lambda inputs: inputs + steps,
        n_perturb_samples=5,
    )
    phi = methods.integrated_gradients(net, X, target=1, budget=60)
    ours = max_sensitivity(
        net,
        X,
        phi,
        method="integrated_gradients",
        target=1,
        radius=0.05,
        n_perturbations=5,
        seed=0,
        budget=60,
    )
    assert ours.value == pytest.approx(theirs.item(), rel=1e-6)


def test_stability_is_zero_without_randomness_and_the_noise_with_it() -> None:
    net = network()
    still = methods.occlusion(net, X, target=0)
    assert stability(net, X, still, method="occlusion", target=0).value == 0.0

    def drifting(model, x, *, seed=0, **options):
        return _Values(np.array([10.0 + seed] + [10.0] * 7))

    runs = np.stack([[10.0 + s] + [10.0] * 7 for s in range(4)])
    score = stability(net, X, runs[0], method=drifting, target=0, n_runs=4)
    assert score.value == pytest.approx(np.std([0, 1, 2, 3], ddof=1) / np.linalg.norm(runs.mean(0)))
    assert score.better == "lower"
    pairs = [np.sum((a - b) ** 2) for i, a in enumerate(runs) for b in runs[:i]]
    assert score.value == pytest.approx(np.sqrt(np.mean(pairs) / 2) / np.linalg.norm(runs.mean(0)))


class _Values:
    def __init__(self, values: np.ndarray) -> None:
        self.values = values


def test_more_budget_is_more_stable() -> None:
    net = network(3)
    regions = [0, 1, 2, 3, 4, 5, 6, 7]
    values = []
    for budget in (90, 240):
        one = methods.gralis(net, X, target=0, features=regions, budget=budget)
        assert not one.exact
        values.append(stability(net, X, one, method="gralis", target=0, n_runs=4, budget=budget).value)
    assert values[1] < values[0]


def test_rank_agreement_by_hand() -> None:
    f, x = (lambda z: z.sum(1)), np.ones(4)
    phi = np.array([4.0, 3.0, 2.0, 1.0])
    swapped = np.array([3.0, 4.0, 2.0, 1.0])
    assert rank_agreement(f, x, phi, others=[swapped]).value == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert rank_agreement(f, x, phi, others=[swapped], kind="kendall").value == pytest.approx((5 - 1) / 6)
    assert rank_agreement(f, x, phi, others=[-phi, phi]).value == pytest.approx(0.0)
    assert rank_agreement(f, x, phi, others=[[0.0, 9, 8, 1]], kind="top", k=2).value == 0.5
    assert rank_agreement(f, x, phi, others=[np.ones(4)]).value == 0.0  # no order at all
    with pytest.raises(GralisError, match="'others'"):
        rank_agreement(f, x, phi, others=[np.ones(3)])


@pytest.mark.parametrize("mode", ["cascading", "full"])
def test_randomising_the_model_moves_gradients_and_not_what_ignores_the_model(mode) -> None:
    net = network()
    options = {"target": 1, "mode": mode, "seed": 1}
    with untouched(net):
        ig = methods.integrated_gradients(net, X, target=1)
        moved = model_randomisation(net, X, ig, method="integrated_gradients", **options)
        chance = methods.random(net, X, target=1, seed=1)
        fixed = model_randomisation(net, X, chance, method="random", **options)
    assert fixed.value == pytest.approx(1.0)
    assert moved.value == pytest.approx(np.abs(moved.curve.values).mean())
    assert 0.0 <= moved.value < 0.8
    assert moved.better == "lower"
    shares = [1 / 3, 2 / 3, 1.0] if mode == "cascading" else [1.0]
    assert moved.curve.at.tolist() == pytest.approx(shares)


def test_the_opposite_order_is_as_wrong_as_the_same() -> None:
    opposite = model_randomisation(
        network(), X, np.arange(8.0), method=lambda *a, **k: _Values(-np.arange(8.0)), target=0
    )
    assert opposite.value == pytest.approx(1.0)
    assert opposite.curve.values.tolist() == pytest.approx([-1.0] * 3)


def test_cascading_starts_at_the_output() -> None:
    seen = []

    def record(model, x, **options):
        seen.append([part.weight.clone() for part in model if isinstance(part, nn.Linear)])
        return _Values(np.arange(8.0))

    net = network()
    own = [part.weight.clone() for part in net if isinstance(part, nn.Linear)]
    model_randomisation(net, X, np.arange(8.0), method=record, target=0)
    changed = [[not torch.equal(a, b) for a, b in zip(stage, own, strict=True)] for stage in seen]
    assert changed == [[False, False, True], [False, True, True], [True, True, True]]
    size = [stage[0].square().mean().sqrt().item() for stage in seen]
    assert size[2] == pytest.approx(size[0], rel=0.3)  # random numbers of the same size


def test_a_method_may_return_an_array() -> None:
    plain = lambda model, x, *, seed=0, **options: np.array([10.0 + seed] + [10.0] * 7)  # noqa: E731
    runs = np.stack([plain(None, None, seed=seed) for seed in range(2)])
    score = stability(network(), X, runs[0], method=plain, target=0, n_runs=2)
    assert score.value == pytest.approx(np.sqrt(0.5) / np.linalg.norm(runs.mean(0)))


def test_bad_input() -> None:
    net = network()
    with pytest.raises(GralisError, match=r"'method' .* 'gralis'"):
        stability(net, X, np.ones(8), method="grails", target=0)
    with pytest.raises(GralisError, match="'n_runs'"):
        stability(net, X, np.ones(8), method="random", target=0, n_runs=1)
    with pytest.raises(GralisError, match="'radius'"):
        max_sensitivity(net, X, np.ones(8), method="random", target=0, radius=0.0)
    with pytest.raises(GralisError, match="'mode'"):
        model_randomisation(net, X, np.ones(8), method="random", target=0, mode="some")  # type: ignore[arg-type]
    with pytest.raises(GralisError, match="which has parameters"):
        model_randomisation(lambda z: z.sum(1), X, np.ones(8), method="random")
    for wrong in (None, 3, [], ["ab"], [np.array([np.nan] + 7 * [1.0])], [[1.0, [2.0]]]):
        with pytest.raises(GralisError, match="'others' parameter of rank_agreement"):
            rank_agreement(net, X, np.ones(8), others=wrong, target=0)
    for wrong in (lambda *a, **k: np.ones(7), lambda *a, **k: "ab", lambda *a, **k: np.full(8, np.nan)):
        with pytest.raises(GralisError, match=r"'method' .* one finite number for each of 8 features"):
            stability(net, X, np.ones(8), method=wrong, target=0)
    for metric in (max_sensitivity, infidelity):
        own = {"method": "random"} if metric is max_sensitivity else {}
        with pytest.raises(GralisError, match=f"'n_perturbations' parameter of {metric.__name__}"):
            metric(net, X, np.ones(8), n_perturbations=0, target=0, **own)
    with pytest.raises(GralisError, match="zero"):
        stability(net, X, np.zeros(8), method=lambda *a, **k: _Values(np.zeros(8)), target=0)
