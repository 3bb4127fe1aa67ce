"""Infidelity against captum on the same perturbations; completeness by hand."""

import numpy as np
import pytest
import torch
from torch import nn

from gralis import GralisError, methods
from gralis.faithfulness import completeness, infidelity
from untouched import untouched


def network() -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(7, 9), nn.Tanh(), nn.Linear(9, 3)).double().eval()


@pytest.mark.parametrize("normalise", [False, True])
def test_infidelity_against_captum(normalise: bool) -> None:
    metrics = pytest.importorskip("captum.metrics")
    net, rng = network(), np.random.default_rng(0)
    x, base, phi = (rng.standard_normal(7) for _ in range(3))
    removed = rng.random((40, 7)) < 0.5

    def perturb(inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        sets = torch.from_numpy(removed)
        return sets.double(), torch.where(sets, torch.from_numpy(base), inputs)

    with torch.no_grad():
        theirs = metrics.infidelity(
            net,
            perturb,
            torch.from_numpy(x)[None],
            torch.from_numpy(phi)[None],
            target=2,
            n_perturb_samples=40,
            normalize=normalise,
        )
    with untouched(net):
        ours = infidelity(net, x, phi, target=2, baseline=base, removed=removed, normalise=normalise)
    assert ours.value == pytest.approx(theirs.item(), rel=1e-9)


def test_infidelity_of_a_wrong_value_in_closed_form() -> None:
    """F = sum z, phi off by e on one feature: it is in half of all sets, so E = e^2 / 2."""
    every = (np.arange(16)[:, None] >> np.arange(4)) & 1
    phi = np.array([1.0, 1.0, 1.6, 1.0])
    score = infidelity(lambda z: z.sum(1), np.ones(4), phi, removed=every)
    assert score.value == pytest.approx(0.36 / 2)
    assert score.better == "lower"


def test_normalising_forgives_the_unit_and_nothing_else() -> None:
    f, x = (lambda z: 3 * z[:, 0] - z[:, 1]), np.ones(2)
    assert infidelity(f, x, np.array([300.0, -100.0]), normalise=True).value == pytest.approx(0.0, abs=1e-20)
    assert infidelity(f, x, np.array([300.0, -100.0])).value > 1
    assert infidelity(f, x, np.array([-1.0, 3.0]), normalise=True).value > 0.5


def test_infidelity_at_any_batch_size() -> None:
    net, x = network(), np.linspace(-1, 1, 7)
    phi = methods.gralis(net, x, target=0).values
    values = [infidelity(net, x, phi, target=0, batch_size=size).value for size in (1, 13, 500)]
    assert values == pytest.approx([values[0]] * 3, rel=1e-9)


def test_completeness_residual() -> None:
    f, x = (lambda z: z[:, 0] * z[:, 1]), np.array([2.0, 3.0])
    assert completeness(f, x, np.array([3.0, 3.0])).value == 0.0
    assert completeness(f, x, np.array([1.5, 1.5])).value == pytest.approx(0.5)  # GRALIS, uniform kernel
    assert completeness(f, x, methods.gralis_uniform(f, x)).value == pytest.approx(0.5)
    assert completeness(f, x, methods.integrated_gradients(f, x)).value == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(GralisError, match="no scale"):
        completeness(f, np.zeros(2), np.zeros(2))


def test_bad_sets() -> None:
    for wrong in (np.ones((3, 5)), np.full((3, 2), 0.5), np.empty((0, 2))):
        with pytest.raises(GralisError, match=r"'removed' .* 0/1 rows"):
            infidelity(lambda z: z.sum(1), np.ones(2), np.ones(2), removed=wrong)
