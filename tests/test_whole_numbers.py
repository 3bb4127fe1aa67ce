"""Integers and booleans jump from x' to x by themselves, the model sees them in their own type, and a choice wins."""

from __future__ import annotations

from itertools import combinations
from math import factorial

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import gralis
from gralis import GralisError, explain
from gralis.features import columns, coordinates

IDS = torch.tensor([3, 1, 4, 2])


class Words(nn.Module):
    """Looks tokens up, as a network for text does: it takes integers only."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(6, 8)
        self.head = nn.Sequential(nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, ids: Tensor) -> Tensor:
        assert ids.dtype == torch.int64
        return self.head(self.embed(ids).flatten(1))[:, 0]


def enumerated(value, n: int) -> np.ndarray:
    """phi under the uniform kernel of a game on n jumping features, over all coalitions and orders."""
    phi = np.zeros(n)
    for size in range(1, n + 1):
        for members in combinations(range(n), size):
            outer = factorial(size - 1) * factorial(n - size) / factorial(n)
            for i in members:
                for k in range(size):
                    for before in combinations([j for j in members if j != i], k):
                        inner = factorial(k) * factorial(size - k - 1) / factorial(size)
                        phi[i] += outer * inner * (value({*before, i}) - value(set(before)))
    return phi


def test_token_ids_are_explained_as_they_are(tmp_path) -> None:
    model = Words().eval()
    found = explain(model, IDS, kernel=gralis.Uniform())
    off = torch.zeros(4, dtype=torch.int64)

    def value(members: set[int]) -> float:
        point = off.clone()
        point[list(members)] = IDS[list(members)]
        return float(model(point[None]).detach())

    assert found.features.discrete.all()
    assert found.values == pytest.approx(enumerated(value, 4), abs=1e-6)
    assert found.provenance["discrete"] == ["x[0]", "x[1]", "x[2]", "x[3]"]
    assert found.provenance["input_dtype"] == ["int64"]
    assert "4 features (4 discrete)" in repr(found)
    assert found.cost.n_gradients == 0
    assert gralis.replay(gralis.load(found.save(tmp_path / "ids.gralis")), model).same
    assert gralis.cost(model, IDS).n_gradients == 0
    sampled = explain(model, IDS.repeat(1), kernel=gralis.Uniform(), plan="independent", budget=400)
    assert np.abs(sampled.values - found.values).max() < 6 * sampled.stderr.max()


def test_an_integer_entry_beside_a_floating_one() -> None:
    table = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)

    def model(dose: Tensor, city: Tensor) -> Tensor:
        assert city.dtype == torch.int64
        return torch.sin(dose[:, 0]) * table[city[:, 0]] + dose[:, 1]

    x = {"dose": torch.tensor([0.7, 0.2], dtype=torch.float64), "city": torch.tensor([2])}
    found = explain(model, x, kernel=gralis.Uniform())
    assert found.features.discrete.tolist() == [False, False, True]
    assert found.ledger.checksum == pytest.approx(np.zeros(7), abs=1e-4)
    both = torch.sin(torch.tensor(0.7)).item()
    # city alone gets 0 at dose 0; together half-way: sin(0.35) (table[2] - table[0]); dose alone: sin(0.7) table[0]
    jump = np.sin(0.35) * 1.5
    assert found.values[2] == pytest.approx(jump / 2, abs=1e-9)
    assert found.values[0] == pytest.approx((both * 0.5 + (both * 2 - jump)) / 2, abs=1e-3)


def test_booleans_jump_and_arrive_as_booleans() -> None:
    def model(z: Tensor) -> Tensor:
        assert z.dtype == torch.bool
        return (z[:, 0] & z[:, 1]).double() + 2.0 * z[:, 2]

    found = explain(model, np.array([True, True, True]), kernel=gralis.Uniform())
    assert found.values == pytest.approx([0.25, 0.25, 2.0])


def test_a_choice_wins_over_the_type() -> None:
    def smooth(z: Tensor) -> Tensor:
        assert z.is_floating_point()
        return z[:, 0] ** 2 * z[:, 1]

    x = np.array([2, 3])
    moving = explain(smooth, x, features=columns(["a", "b"], discrete=False), kernel=gralis.Uniform())
    assert not moving.features.discrete.any()
    assert moving.values == pytest.approx([4.0, 2.0], abs=1e-5)  # ray of both: 2/3 and 1/3 of 12, else nothing
    assert explain(smooth, x, features=coordinates(2).jumping([])).features.discrete.tolist() == [False, False]
    some = explain(smooth, x, features=columns(["a", "b"], discrete=["b"]))
    assert some.features.discrete.tolist() == [False, True]
    floating = explain(smooth, x.astype(np.float64))
    assert not floating.features.discrete.any()
    with pytest.raises(GralisError, match="discrete"):
        columns(["a", "b"], discrete="b")


def test_groups_of_integers_jump_as_one() -> None:
    found = explain(lambda z: z.prod(1).double(), np.array([2, 3, 5]), features=[0, 0, 1], baseline=1)
    assert found.features.discrete.all()
    assert found.names == ("group 0", "group 1")


def test_bytes_with_two_axes_are_pictures_unless_declared() -> None:
    picture = np.arange(6, dtype=np.uint8).reshape(2, 3)
    with pytest.raises(GralisError, match=r"picture.*uint8.*x\.float\(\)"):
        explain(lambda z: z.double().sum((1, 2)), picture)
    board = coordinates(picture).jumping(list(range(6)))
    assert explain(lambda z: z.double().sum((1, 2)), picture, features=board).values == pytest.approx(np.arange(6.0))
    line = explain(lambda z: z.double().sum(1), picture.ravel())  # one axis: categories
    assert line.features.discrete.all()


def test_a_row_of_a_frame() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [41.5, 3.0], "city": [2, 1], "married": [True, False]})
    seen: list[np.ndarray] = []

    def predict(rows: np.ndarray) -> np.ndarray:
        seen.append(rows)
        return np.sin(rows[:, 0]) + rows[:, 1] * rows[:, 2]

    model = gralis.models.function(predict, lambda rows: np.stack([np.cos(rows[:, 0]), rows[:, 2], rows[:, 1]], axis=1))
    found = explain(model, frame.iloc[[0]], kernel=gralis.Uniform())
    assert found.names == ("age", "city", "married")
    assert found.features.discrete.tolist() == [False, True, True]
    assert set(np.concatenate(seen)[:, 1]) == {0.0, 2.0}
    assert found.values[1:] == pytest.approx([0.5, 0.5])
    mixed = explain(model, frame.astype(object).iloc[0], kernel=gralis.Uniform())
    assert mixed.features.discrete.tolist() == [False, True, True]
    off = explain(model, frame.iloc[[0]], features=columns(list(frame.columns), discrete=False))
    assert not off.features.discrete.any()
    with pytest.raises(GralisError, match=r"'x'.*2 rows"):
        explain(model, frame)
    with pytest.raises(GralisError, match=r"'x'.*'Rome' in column 'city'"):
        explain(model, frame.assign(city=["Rome", "Oslo"]).iloc[[0]])


def test_a_black_box_of_categories_has_rays() -> None:
    model = gralis.models.blackbox(lambda rows: rows.prod(1))
    assert explain(model, np.ones(3, dtype=np.int64), kernel=gralis.Uniform()).values == pytest.approx(
        np.full(3, 1 / 9)
    )
