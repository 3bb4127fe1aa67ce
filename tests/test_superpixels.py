"""Superpixels: connected, about as many as asked for, the same for every layout of the same picture."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from skimage import data, measure, segmentation, transform

from gralis.errors import GralisError
from gralis.features import Features, slic


def image(size: int = 96) -> np.ndarray:
    """A photograph as uint8 HWC."""
    small = transform.resize(data.coffee(), (size, size + 16), anti_aliasing=True)
    return np.round(255 * small).astype(np.uint8)


def assert_connected(features: Features, regions: np.ndarray) -> None:
    for label in range(features.n_features):
        assert measure.label(regions == label, connectivity=1).max() == 1, f"region {label} is in pieces"


@pytest.mark.parametrize("n_segments", [8, 30])
@pytest.mark.parametrize("photograph", [data.coffee, data.astronaut])
def test_slic_gives_about_the_asked_number_of_connected_regions(photograph, n_segments):
    picture = transform.resize(photograph(), (96, 112), anti_aliasing=True)
    features = slic(picture, n_segments=n_segments)
    assert 0.6 * n_segments <= features.n_features <= 1.6 * n_segments
    regions = features.labels[0][..., 0]
    assert_connected(features, regions)
    assert features.sizes.min() > 3 * regions.size / n_segments / 10
    assert features.kind == "slic"
    assert features.names[0] == "region 0"
    assert features.meta["segments_shape"] == [96, 112]
    assert features.meta["n_segments"] == n_segments
    assert features.meta["compactness"] == 50.0


def test_slic_does_not_depend_on_layout_container_or_range() -> None:
    hwc = image()
    features = slic(hwc)
    regions = features.labels[0][..., 0]
    assert features.shapes == ((96, 112, 3),)
    assert all(np.array_equal(features.labels[0][..., c], regions) for c in range(3))
    chw = slic(torch.from_numpy(hwc).permute(2, 0, 1))
    assert chw.shapes == ((3, 96, 112),)
    assert all(np.array_equal(chw.labels[0][c], regions) for c in range(3))
    for other in (hwc / 255, hwc.astype(np.float32) / 50 - 2, torch.tensor(hwc).to(torch.bfloat16)):
        assert np.mean(slic(other).labels[0][..., 0] == regions) > 0.999
    onto = slic(hwc, shape=(3, 96, 112))
    assert onto.fingerprint() == chw.fingerprint()


def test_slic_follows_colour_when_compactness_is_small() -> None:
    halves = np.zeros((32, 32, 3))
    halves[:, 13:] = (1.0, 0.2, 0.1)
    regions = slic(halves, n_segments=4, compactness=0.1).labels[0][..., 0]
    assert not set(regions[:, :13].ravel()) & set(regions[:, 13:].ravel())


def test_slic_takes_grey_images_with_the_same_meaning_of_compactness() -> None:
    grey = np.zeros((32, 32))
    grey[:, 13:] = 1.0
    features = slic(grey, n_segments=4, compactness=10)
    regions = features.labels[0]
    assert not set(regions[:, :13].ravel()) & set(regions[:, 13:].ravel())
    for with_axis in (grey[None], grey[..., None]):
        assert np.array_equal(slic(with_axis, n_segments=4, compactness=10).labels[0].squeeze(), regions)
    assert slic(np.zeros((8, 8)), n_segments=4).n_features == 4  # no contrast at all: plain squares
    assert slic(np.zeros((4, 16, 16)), n_segments=8, channel_axis=None).shapes == ((4, 16, 16),)


@pytest.mark.parametrize(("compactness", "sigma"), [(50, 0), (10, 0), (10, 3)])
def test_slic_is_that_of_scikit_image_on_rgb(compactness, sigma):
    reference = segmentation.slic(image(), n_segments=20, compactness=compactness, sigma=sigma, start_label=0)
    mine = slic(image(), n_segments=20, compactness=compactness, sigma=sigma).labels[0][..., 0]
    assert np.mean(mine == reference) > 0.999


def test_slic_takes_the_channel_axis_that_is_given():
    narrow = np.moveaxis(image(16)[:, :3], -1, 0)  # (3, 16, 3): "auto" cannot know
    assert slic(narrow, n_segments=4, channel_axis=0).meta["segments_shape"] == [16, 3]
    assert slic(narrow, n_segments=4, channel_axis=-1).meta["segments_shape"] == [3, 16]
    assert slic(narrow, n_segments=4, channel_axis=-1).shapes == ((3, 16, 3),)


def test_slic_names_start_where_asked_and_labels_at_zero() -> None:
    features = slic(np.zeros((8, 8)), n_segments=4, start_label=1)
    assert features.names == ("region 1", "region 2", "region 3", "region 4")
    assert features.labels[0].min() == 0


@pytest.mark.parametrize(
    ("shape", "options", "parameter"),
    [
        ((3, 16, 3), {}, "channel_axis"),
        ((16, 16, 16), {}, "channel_axis"),
        ((3, 16, 16), {"channel_axis": 3}, "channel_axis"),
        ((16,), {}, "image"),
        ((3, 16, 16), {"n_segments": 0}, "n_segments"),
        ((3, 16, 16), {"n_segments": 2.5}, "n_segments"),
        ((3, 16, 16), {"compactness": 0}, "compactness"),
        ((3, 16, 16), {"compactness": "high"}, "compactness"),
        ((3, 16, 16), {"sigma": -1}, "sigma"),
        ((3, 16, 16), {"start_label": -1}, "start_label"),
        ((3, 16, 16), {"shape": (3, 8, 8)}, "labels"),
    ],
)
def test_bad_slic_arguments_are_one_sentence(shape, options, parameter):
    with pytest.raises(GralisError, match=f"'{parameter}' parameter of slic"):
        slic(np.zeros(shape), **options)


def test_slic_refuses_nan_and_says_what_to_install(monkeypatch):
    picture = np.zeros((8, 8))
    with pytest.raises(GralisError, match="'image' parameter of slic must be an array of real"):
        slic(np.array([["a"]]))
    monkeypatch.setitem(sys.modules, "skimage.segmentation", None)
    with pytest.raises(GralisError, match=r"pip install gralis\[image\]"):
        slic(picture)
    picture[1, 1] = np.nan
    with pytest.raises(GralisError, match="'image' parameter of slic must be finite"):
        slic(picture)


def test_a_volume_is_cut_in_all_three_directions() -> None:
    volume = np.zeros((8, 12, 12))
    volume[:4, :, :6] = 1.0  # a bright block: half of the depth, half of the width
    features = slic(volume, n_segments=8, compactness=0.1, channel_axis=None, shape=(2, 8, 12, 12))
    assert features.shapes == ((2, 8, 12, 12),)
    labels = features.labels[0]
    assert (labels[0] == labels[1]).all()
    for region in range(features.n_features):
        assert len(np.unique(volume[labels[0] == region])) == 1  # no region crosses the block's border


def test_a_volume_without_a_word_about_its_channels() -> None:
    with pytest.raises(GralisError, match=r"'channel_axis' .*'auto' for shape \(8, 12, 12\).*None means no channels"):
        slic(np.zeros((8, 12, 12)))
    with pytest.raises(GralisError, match=r"two \(or three\) spatial axes"):
        slic(np.zeros((2, 2, 8, 12, 12)), channel_axis=0)
