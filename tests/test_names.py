"""Coordinates and their names: every name says where its coordinate is, and costs nothing until read."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp

from gralis.errors import GralisError
from gralis.features import columns, coordinates


@settings(max_examples=40, deadline=None)
@given(hnp.array_shapes(min_dims=1, max_dims=3, max_side=6))
def test_coordinates_number_in_c_order_and_names_say_where(shape):
    features = coordinates(shape)
    assert features.labels[0].ravel().tolist() == list(range(int(np.prod(shape))))
    for place in np.ndindex(shape):
        assert features.names[features.labels[0][place]] == f"x[{','.join(map(str, place))}]"
    assert len(list(features.names)) == features.n_features


def test_coordinates_take_shapes_arrays_and_several_leaves() -> None:
    assert coordinates(5).shapes == coordinates((5,)).shapes == coordinates(torch.zeros(5)).shapes == ((5,),)
    several = coordinates((np.zeros((2, 1)), torch.zeros(3)))
    assert several.shapes == ((2, 1), (3,))
    assert tuple(several.names) == ("x0[0,0]", "x0[1,0]", "x1[0]", "x1[1]", "x1[2]")
    assert several.names[-1] == "x1[2]"
    assert several.names[1:3] == ("x0[1,0]", "x1[0]")
    assert tuple(coordinates(((), (2,))).names) == ("x0", "x1[0]", "x1[1]")
    assert coordinates(2, names=["a", "b"]).names == ("a", "b")
    with pytest.raises(IndexError):
        several.names[5]
    with pytest.raises(GralisError, match="'names' parameter"):
        coordinates(2, names=["a"])


@pytest.mark.parametrize("shape", [(2, 0), (-1,), "ab", 2.5, (2, (3,)), None, True])
def test_bad_shapes_are_one_sentence(shape):
    with pytest.raises(GralisError, match="'shape' parameter of coordinates"):
        coordinates(shape)


def test_many_coordinates_cost_their_labels_and_little_more() -> None:
    tracemalloc.start()
    try:
        features = coordinates((3, 224, 224))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < features.labels[0].nbytes + 100_000
    assert features.names[-1] == "x[2,223,223]"


@pytest.mark.parametrize("hole", [None, float("nan")])
def test_a_hole_in_a_header_is_one_sentence(hole: object) -> None:
    with pytest.raises(GralisError, match=r"'names' .* a name for every feature\. Got (None|nan) at place 1"):
        columns(["age", hole, "dose"])  # type: ignore[list-item]
    assert columns(["nan", "None"]).names == ("nan", "None")  # words
