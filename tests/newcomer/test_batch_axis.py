"""A batch axis of 1 left on x: it is taken off where the model shows that it is one, and the table says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import gralis
from gralis import GralisError
from gralis.features import grid

SENTENCE = "x has a batch axis of 1, which was left out: x[0] is explained"


def cnn(channels: int) -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Conv2d(channels, 4, 5, stride=4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 4 * 4, 3)]
    return nn.Sequential(*layers).eval()


def mlp() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)).eval()


class Tokens(nn.Module):
    """It fails on an axis too many, as models of transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(9, 4)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        _rows, _length = ids.shape
        return (self.table(ids) * mask[..., None]).sum((1, 2))


CASES: dict[str, tuple[Any, Any, Any]] = {
    "an image": (cnn(3), torch.rand(3, 18, 18), 1),
    "a row of a table": (mlp(), torch.rand(5), 2),
    "a function": (lambda z: z.sum(1) ** 2, torch.rand(5), None),
    "a function as target": (mlp(), torch.rand(5), lambda outputs: outputs[:, 0] - outputs[:, 1]),
    "a black box": (gralis.models.blackbox(lambda z: np.einsum("ij,j->i", z, np.ones(5))), torch.rand(5), None),
}


@pytest.mark.parametrize("case", CASES)
def test_a_batch_of_one_gives_the_values_of_its_input(case: str) -> None:
    model, x, target = CASES[case]
    options = {"target": target, "budget": 400, "plan": "values" if case == "a black box" else "shared"}
    if case == "an image":
        options["features"] = grid(x.shape, 9)
    alone, batch = gralis.explain(model, x, **options), gralis.explain(model, x[None], **options)
    assert np.array_equal(alone.values, batch.values)
    assert batch.to_input().shape == x.shape
    assert f"note: {SENTENCE}" in repr(batch)
    assert SENTENCE in batch._repr_html_()
    assert "batch axis" not in repr(alone)


def test_baseline_and_features_lose_the_axis_with_x() -> None:
    x = torch.rand(1, 3, 18, 18)
    e = gralis.explain(cnn(3), x, target=0, baseline=torch.ones_like(x), features=grid(x.shape, 9), budget=200)
    assert e.features.shapes == ((3, 18, 18),)
    assert e.endpoints.baselines[0].shape == (1, 3, 18, 18)  # one baseline
    assert np.allclose(e.endpoints.baselines[0], 1)


def test_a_dict_of_token_ids_and_mask() -> None:
    torch.manual_seed(0)
    model = Tokens().eval()
    x = {"ids": torch.tensor([[3, 1, 4]]), "mask": torch.ones(1, 3, dtype=torch.int64)}
    e = gralis.explain(model, x, baseline={"ids": torch.tensor([0, 0, 0]), "mask": torch.ones(3, dtype=torch.int64)})
    assert SENTENCE in repr(e)
    assert e.to_input()["ids"].shape == (3,)


def test_an_axis_of_one_that_belongs_to_the_input_stays() -> None:
    grey = torch.rand(1, 18, 18)
    e = gralis.explain(cnn(1), grey, target=0, features=grid(grey.shape, 9), budget=200)
    assert e.to_input().shape == (1, 18, 18)
    assert "batch axis" not in repr(e)


def test_the_question_for_a_target_is_asked_as_without_the_axis() -> None:
    with pytest.raises(GralisError, match=r"returns 3 outputs per row; choose one with target=k \(0..2\)"):
        gralis.explain(mlp(), torch.rand(1, 5))


def test_what_is_not_certain_is_said_and_not_guessed() -> None:
    flat = nn.Sequential(nn.Flatten(), nn.Linear(12, 1)).eval()  # reads both
    with pytest.raises(GralisError, match=r"x has a batch axis of 1; give x\[0\]"):
        gralis.explain(flat, torch.rand(1, 3, 4), features=grid((3, 4), 2))
