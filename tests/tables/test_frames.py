"""`to_frame` of every result: one line for each line of its table, with the numbers that the result has."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gralis
from gralis import explain

pytest.importorskip("pandas")


def product(z):
    return 2 * z[:, 0] + z[:, 1] * z[:, 2]


@pytest.fixture(scope="module")
def found() -> gralis.Explanation:
    return explain(product, torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))


RESULTS = {
    "explanation": (lambda e: e, "value", lambda e: e.values),
    "shapley": (lambda e: e.shapley(), "value", lambda e: e.shapley().values),
    "lime": (lambda e: e.lime(), "value", lambda e: e.lime().values),
    "interactions": (lambda e: e.interactions(2), "value", lambda e: list(e.interactions(2).values())),
    "moebius": (lambda e: e.moebius(2), "value", lambda e: list(e.moebius(2).values())),
    "residual": (
        lambda e: e.residual,
        "value",
        lambda e: [e.residual.observed.value, e.residual.path.value],
    ),
    "sweep": (lambda e: e.sweep([0.5, 1.0]), "value", lambda e: e.sweep([0.5, 1.0]).values.ravel()),
    "ranks": (lambda e: e.ranks(), "highest", lambda e: e.ranks().highest),
    "audit": (lambda e: e.audit(np.ones(3)), "deficit", lambda e: e.values - 1),
    "weight mass": (lambda e: e.weight_mass(), "effective", lambda e: e.weight_mass().effective),
    "certificate": (lambda e: e.certificate(), "half_width", lambda e: e.certificate().half_widths),
    "calibration": (lambda e: e.calibration, "slope", lambda e: e.calibration.slope),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_as_a_frame(found, name) -> None:
    make, column, truth = RESULTS[name]
    frame, expected = make(found).to_frame(), np.asarray(truth(found), dtype=float)
    assert frame[column].to_numpy()[: len(expected)] == pytest.approx(expected)
    assert len(frame) >= len(expected)


def test_intervals_stand_beside_the_values(found) -> None:
    frame = found.to_frame()
    assert frame["feature"].tolist() == list(found.names)
    assert frame[["low", "high"]].to_numpy() == pytest.approx(found.interval())


def test_frames_of_other_functions(found) -> None:
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    change = gralis.compare(product, lambda z: 3 * z[:, 0], x)
    assert change.to_frame()["change"].to_numpy() == pytest.approx(change.change.values)
    indices = gralis.sensitivity(product, [(-1, 1)] * 3)
    assert indices.to_frame()["total"].to_numpy() == pytest.approx(indices.total)
    terms = gralis.hoeffding(product, x, [(-1, 1)] * 3)
    assert terms.to_frame()["term"].to_numpy() == pytest.approx(terms.terms_estimate.values)
    both = explain(lambda z: z @ torch.ones(3, 2, dtype=torch.float64), x, target="all")
    assert both.to_frame().shape == (2, 3)
    assert gralis.cost(product, x).to_frame()["n_gradients"].tolist() == [gralis.cost(product, x).n_gradients]
