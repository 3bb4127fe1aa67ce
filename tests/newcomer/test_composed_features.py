"""Features compose, groups have names, and names say where a feature is."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gralis
from gralis import GralisError
from gralis.features import columns, groups, tokens, windows

TABLE, SIGNAL = torch.tensor([1.0, 2.0], dtype=torch.float64), torch.arange(1.0, 7.0, dtype=torch.float64)


def product(table: torch.Tensor, signal: torch.Tensor) -> torch.Tensor:
    return table.sum(1) + 10 * signal.sum(1)


def test_a_tuple_has_the_features_of_every_input() -> None:
    e = gralis.explain(product, (TABLE, SIGNAL), features=(columns(["age", "dose"]), windows(6, 3)))
    assert e.names == ("age", "dose", "t0-2", "t3-5")
    assert np.allclose(e.values, [1, 2, 60, 150])  # affine: phi is what each part adds
    assert np.allclose(e.to_input()[1], [60, 60, 60, 150, 150, 150])


def test_a_dict_has_them_by_name_and_in_any_order() -> None:
    x = {"table": TABLE, "signal": SIGNAL}
    e = gralis.explain(product, x, features={"signal": windows(6, 2), "table": None})
    assert e.names == ("table[0]", "table[1]", "t0-1", "t2-3", "t4-5")
    assert np.allclose(e.values, [1, 2, 30, 70, 110])


def test_names_that_occur_twice_get_the_name_of_their_input() -> None:
    both = {"left": windows(2, 1), "right": windows(2, 1)}
    x = {"left": TABLE, "right": TABLE + 1}
    e = gralis.explain(lambda left, right: (left * right).sum(1), x, features=both)
    assert e.names == ("left: t0-0", "left: t1-1", "right: t0-0", "right: t1-1")


def test_a_choice_of_discrete_features_holds_for_its_own_input() -> None:
    x = (torch.tensor([1.0, 2.0]), torch.tensor([3, 4]))
    chosen = columns(["age", "sex"], discrete=["sex"])
    e = gralis.explain(lambda a, b: a.sum(1) * b.sum(1), x, features=(chosen, columns(["n", "m"])))
    assert e.features.discrete.tolist() == [False, True, True, True]  # n and m are integers
    none = gralis.explain(lambda a, b: a.sum(1) * b.sum(1), x, features=(None, columns(["n", "m"], discrete=False)))
    assert none.features.discrete.tolist() == [False] * 4


def test_too_few_parts_are_refused_in_a_sentence() -> None:
    with pytest.raises(GralisError, match=r"one for every array of x, 2 in all\. Got 1 instead"):
        gralis.explain(product, (TABLE, SIGNAL), features=(columns(["age", "dose"]),))


def test_an_unknown_word_is_refused_in_a_sentence() -> None:
    with pytest.raises(GralisError, match=r"shaped like x, 'pixels', a value from gralis\.features"):
        gralis.explain(lambda z: z.sum(1), TABLE, features="superpixel")


def test_groups_by_name() -> None:
    by_index = groups({"vitals": [0, 2], "labs": [3]}, shape=5)
    assert by_index.names == ("vitals", "labs", "the rest")
    assert by_index.labels[0].tolist() == [0, 2, 0, 1, 2]
    face = np.zeros((4, 4), dtype=bool)
    face[1:3, 1:3] = True
    by_mask = groups({"face": face}, shape=(3, 4, 4))
    assert by_mask.names == ("face", "the rest")
    assert by_mask.sizes.tolist() == [12, 36]
    everything = groups({"a": [0], "b": [1]}, shape=2)
    assert everything.names == ("a", "b")


@pytest.mark.parametrize(
    ("labels", "shape", "sentence"),
    [
        ({"a": [0, 1], "b": [1]}, 3, "groups without common members. Got 'b' and 'a', which overlap"),
        ({"a": [7]}, 3, "indices from 0 to 2"),
        ({"a": [0]}, None, "that of an x with one axis if a group is a list of indices. Got no shape"),
        ({"a": "heart"}, 3, "for group 'a' a boolean mask"),
        ({}, 3, "a mapping with at least one group"),
    ],
)
def test_groups_that_cannot_be_are_refused_in_a_sentence(labels: object, shape: object, sentence: str) -> None:
    with pytest.raises(GralisError) as error:
        groups(labels, shape=shape)
    assert sentence in str(error.value)


def test_tokens_that_occur_twice_say_where_they_are() -> None:
    words = tokens([5, 8, 5, 9], names=["the", "cat", "the", "sat"])
    assert words.names == ("the [0]", "cat", "the [2]", "sat")
    e = gralis.explain(lambda z: z.sum(1), torch.ones(4), features=words)
    assert ">the</span>" in e.token_html()  # the text itself has no numbers
    assert "the [2]: phi" in e.token_html()


def test_windows_as_time() -> None:
    assert windows(500, 250, rate=250).names == ("0-1 s", "1-2 s")
    assert windows(3, 2, rate=0.5, unit="min").names == ("0-4 min", "4-6 min")
    with pytest.raises(GralisError, match="'rate' parameter of windows"):
        windows(3, 2, rate=0)
