"""Images and volumes without features are cut into regions, and the table says so."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
import torch

import gralis
from gralis.features import grid, slic
from gralis.features.pictures import picture_axes


def mean_of(z: torch.Tensor) -> torch.Tensor:
    return z.flatten(1).mean(1)


def scene(*shape: int) -> torch.Tensor:
    """A smooth picture, as photographs are."""
    axes = torch.meshgrid(*(torch.linspace(0, 3, size) for size in shape), indexing="ij")
    return sum(torch.sin(axis + k) for k, axis in enumerate(axes))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("shape", "noun"), [((3, 48, 48), "superpixels"), ((40, 40, 3), "superpixels"), ((1, 16, 16, 16), "supervoxels")]
)
def test_a_picture_is_cut_and_the_table_says_so(shape: tuple[int, ...], noun: str) -> None:
    e = gralis.explain(mean_of, scene(*shape), budget=300)
    assert 10 <= e.n_features <= 60
    assert e.features.kind == "slic"
    assert f"so it was cut into {e.n_features} {noun}" in repr(e)
    assert e.to_input().shape == shape
    axis = shape.index(min(shape))
    assert (np.ptp(e.features.labels[0], axis=axis) == 0).all()  # regions span the channels


def test_without_scikit_image_there_are_patches(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec

    def without(name: str, *rest: Any) -> Any:
        return None if name == "skimage" else real(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    for shape in ((3, 48, 48), (40, 40, 3), (1, 16, 16, 16)):
        e = gralis.explain(mean_of, scene(*shape), budget=300)
        assert e.features.kind == "grid"
        assert 20 <= e.n_features <= 64
        assert "patches, because superpixels need scikit-image" in repr(e)


def test_noise_has_no_superpixels_so_it_is_cut_into_patches() -> None:
    noise = torch.rand(3, 64, 64, generator=torch.Generator().manual_seed(0))
    e = gralis.explain(mean_of, noise, budget=300)
    assert e.features.kind == "grid"
    assert "because superpixels found too few regions" in repr(e)


def test_pixels_for_those_who_mean_it() -> None:
    e = gralis.explain(mean_of, scene(1, 20, 20), features="pixels", budget=2000)
    assert e.n_features == 400
    assert "note:" not in repr(e)


def test_what_is_no_picture_keeps_its_coordinates() -> None:
    for shape in ((12, 64, 64), (3, 8, 8), (5, 7), (3, 64), (64, 64)):
        assert picture_axes(shape) is None
    assert gralis.explain(mean_of, scene(3, 4, 4), budget=300).n_features == 48


def test_the_picture_among_several_inputs_is_cut_and_the_table_beside_it_is_not() -> None:
    x = {"photo": scene(3, 32, 32), "table": torch.tensor([1.0, 2.0])}
    e = gralis.explain(lambda photo, table: mean_of(photo) * table.sum(1), x, budget=400)
    assert "photo is an image of shape (3, 32, 32)" in repr(e)
    assert list(e.names[-2:]) == ["table[0]", "table[1]"]
    assert e.names[0] == "region 0"


def test_slic_warns_if_it_finds_far_fewer_regions_than_asked_for() -> None:
    noise = torch.rand(3, 64, 64, generator=torch.Generator().manual_seed(0))
    with pytest.warns(UserWarning, match=r"slic found 2 regions where n_segments=30 asked for more"):
        slic(noise, 30)


def test_a_grid_of_a_volume_cuts_cubes() -> None:
    cubes = grid((2, 4, 6, 8), 2)
    assert cubes.n_features == 2 * 3 * 4
    assert set(cubes.sizes.tolist()) == {2 * 2**3}  # both channels
    assert cubes.names[0] == "d0r0c0"
    assert grid((3, 4, 4), 2).n_features == 4  # an image is cut into squares as ever
