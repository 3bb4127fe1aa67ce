"""Audits of other explainers: closed forms for affine surrogates, and no model call."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import gralis
from gralis import GralisError, explain
from reference import network

X = torch.linspace(-1, 1.5, 6, dtype=torch.float64)
BASELINE = torch.full((6,), 0.25, dtype=torch.float64)


class Counting:
    def __init__(self) -> None:
        self.calls, self.model = 0, network("softplus", 6, 2)

    def __call__(self, z: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.model(z)


def test_deficit_of_an_affine_surrogate() -> None:
    coefficients = np.array([1.0, -2.0, 0.5, 0.0, 3.0, 1.0])
    model = network("softplus", 6, 2)
    surrogate = lambda z: z @ torch.from_numpy(coefficients) + 7.0  # noqa: E731
    error = lambda z: model(z) - surrogate(z)  # noqa: E731
    options = {"baseline": BASELINE, "plan": "exhaustive"}
    audit = explain(model, X, **options).audit(SimpleNamespace(coef_=coefficients[None], intercept_=7.0))
    assert audit.other == pytest.approx(coefficients * (X - BASELINE).numpy())
    assert audit.deficit == pytest.approx(explain(error, X, **options).values, abs=1e-10)  # linearity: phi(F) - phi(g)
    delta = float(model(X[None]) - model(BASELINE[None]))
    assert audit.residual == pytest.approx(delta - audit.values.sum())
    assert audit.other_residual == pytest.approx(delta - coefficients @ (X - BASELINE).numpy())


def test_a_fit_on_zeros_and_ones_is_taken_as_it_is() -> None:
    """LIME's own coefficients are per feature; only those of a line in x itself are multiplied by x - x'."""
    found = explain(network("softplus", 6, 2), X, baseline=BASELINE, plan="exhaustive")
    lime = found.lime()
    assert found.audit(lime).other.tolist() == lime.values.tolist()
    assert found.audit(SimpleNamespace(coef_=lime.values)).other == pytest.approx(lime.values * (X - BASELINE).numpy())


def test_no_model_call() -> None:
    model = Counting()
    found = explain(model, X, budget=200)
    calls = model.calls
    found.audit(found.values)
    found.sweep([0.2, 0.75, np.inf])
    found.ranks()
    found.certificate()
    assert model.calls == calls


def test_disagreement_beyond_the_certificate() -> None:
    found = explain(network("relu", 6, 2), X + 0.1, budget=80)
    assert not found.estimate.exact
    half = np.diff(found.interval(), axis=1)[:, 0] / 2
    nudged = found.values + half * np.array([0.5, -0.5, 2.0, 0.0, -2.0, 0.9])
    audit = found.audit(nudged)
    assert audit.disagree.tolist() == [False, False, True, False, True, False]
    assert "2 disagree" in repr(audit)


def test_rank_agreement_by_hand() -> None:
    found = explain(lambda z: z @ torch.tensor([4.0, 3.0, 2.0, 1.0], dtype=torch.float64), torch.ones(4).double())
    audit = found.audit(np.array([3.0, 4.0, 2.0, 1.0]))  # one neighbouring pair swapped
    assert audit.spearman == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert audit.kendall == pytest.approx((5 - 1) / 6)
    assert np.isnan(found.audit(np.ones(4)).spearman)


def test_shapes_of_captum_and_shap() -> None:
    image = torch.rand(3, 4, 4, generator=torch.Generator().manual_seed(0))
    labels = np.repeat([[0, 0, 1, 1]], 4, axis=0)
    found = explain(lambda z: z.sum((1, 2, 3)), image, features=labels)
    captum_like = image[None].clone().requires_grad_()
    halves = [image[:, :, :2].sum(), image[:, :, 2:].sum()]
    assert found.audit(captum_like).other == pytest.approx([float(h) for h in halves], rel=1e-6)
    shap_like = SimpleNamespace(values=image[None].numpy(), base_values=0.0)
    assert found.audit(shap_like).other == pytest.approx([float(h) for h in halves], rel=1e-6)
    assert found.audit(found).other == pytest.approx(found.values)
    two = explain(lambda a, b: a.sum(1) + 2 * b.sum(1), (torch.ones(2), torch.ones(3)))
    assert two.audit((torch.ones(1, 2), 2 * torch.ones(1, 3))).deficit == pytest.approx(np.zeros(5), abs=1e-6)


@pytest.mark.parametrize(
    ("other", "match"),
    [
        (np.ones(5), r"shape \(6,\).*shape \(5,\)"),
        (np.array([np.nan] * 6), "NaN"),
        ("text", "'other'"),
        (SimpleNamespace(coef_=np.ones(4)), r"coef_.*\(6,\).*\(4,\)"),
    ],
)
def test_bad_input(other: object, match: str) -> None:
    with pytest.raises(GralisError, match=match):
        explain(network("softplus", 6, 2), X).audit(other)


def test_two_models_share_their_rays() -> None:
    a, b = network("softplus", 9, 2), network("softplus", 9, 2)
    tweaked = lambda z: b(z) + 0.1 * z[:, 0] * z[:, 1]  # noqa: E731
    x = torch.linspace(-1, 1.5, 9, dtype=torch.float64)
    found = gralis.compare(a, tweaked, x, budget=400, kernel=gralis.Uniform())
    truth = np.zeros(9)
    truth[:2] = 0.1 * float(x[0] * x[1]) / 4  # phi of z_0 z_1 under the uniform kernel
    assert found.change.values == pytest.approx(truth, abs=1e-6)  # a polynomial: nearly all of it is in the surrogate
    assert found.changed().tolist() == [True, True, *[False] * 7]
    assert found.b.values - found.a.values == pytest.approx(truth, abs=1e-4)
    assert found.change.delta == pytest.approx(0.1 * float(x[0] * x[1]))
    assert found.change.stderr.max() < 1e-2 * found.a.stderr.max()  # what both models share has cancelled
    assert np.array_equal(found.a.ledger.masks, found.b.ledger.masks)
    assert found.b.cost.n_gradients == found.a.cost.n_gradients


def test_compare_needs_rows_and_good_options() -> None:
    model = lambda z: z.flatten(1).sum(1)  # noqa: E731
    with pytest.raises(GralisError, match="folded"):
        gralis.compare(model, model, torch.rand(3, 100, 100), features="pixels", budget=130_000, batch_size=2)
    with pytest.raises(GralisError, match=r"'bugdet'.*compare"):
        gralis.compare(model, model, torch.ones(3), bugdet=100)
