"""Features: every coordinate has one owner, and every bad input gets one sentence."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gralis import features
from gralis.errors import GralisError
from gralis.features import Features, channels, columns, grid, groups, resolve

shapes = hnp.array_shapes(min_dims=1, max_dims=3, max_side=6)
sides = st.integers(1, 7)
quick = settings(max_examples=40, deadline=None)


def two_leaves() -> Features:
    """Feature 1 owns coordinates of both leaves."""
    return Features((np.array([[0, 1], [1, 1]]), np.array([1, 2, 2])), ("a", "b", "c"), "groups", {"made": "here"})


# --- the value -------------------------------------------------------------------------------------------------------


def test_features_know_their_counts_shapes_and_sizes() -> None:
    features = two_leaves()
    assert features.n_features == 3
    assert features.shapes == ((2, 2), (3,))
    assert features.sizes.tolist() == [1, 4, 2]
    assert features.names == ("a", "b", "c")
    assert repr(features) == "Features(groups, 3 features over (2, 2) and (3,))"
    assert repr(groups([0, 0])) == "Features(groups, 1 feature over (2,))"


@quick
@given(st.lists(shapes, min_size=1, max_size=3), st.integers(1, 9), st.integers(0, 2**32))
def test_to_input_gives_each_coordinate_the_value_of_its_feature(leaf_shapes, n_labels, seed):
    rng = np.random.default_rng(seed)
    leaves = [rng.integers(n_labels, size=shape) for shape in leaf_shapes]
    features = groups(leaves, relabel=True)
    values = rng.integers(-100, 100, size=features.n_features)  # integers: sums are exact
    on_input = features.to_input(values)
    assert [leaf.shape for leaf in on_input] == leaf_shapes
    for leaf, labels in zip(on_input, features.labels, strict=True):
        for place in np.ndindex(labels.shape):
            assert leaf[place] == values[labels[place]]
    assert sum(leaf.sum() for leaf in on_input) == values @ features.sizes
    assert set(np.concatenate([leaf.ravel() for leaf in features.labels])) == set(range(features.n_features))


def test_to_input_checks_the_shape_of_values() -> None:
    with pytest.raises(GralisError, match=r"'values' parameter of Features.to_input must be of shape \(3,\).*\(2,\)"):
        two_leaves().to_input(np.zeros(2))


def test_labels_are_a_read_only_copy() -> None:
    given_labels = np.array([0, 1])
    features = groups(given_labels)
    given_labels[0] = 1
    assert features.labels[0].tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        features.labels[0][0] = 1
    direct = Features((given_labels - given_labels,), ("a",), "groups")
    assert direct.labels[0].dtype == np.int64


def test_fingerprint_follows_the_partition_and_nothing_else() -> None:
    features = two_leaves()
    same = Features(features.labels, ("x", "y", "z"), "other")
    assert features.fingerprint() == same.fingerprint()
    assert len(features.fingerprint()) == 64
    assert groups([0, 1, 1]).fingerprint() != groups([0, 0, 1]).fingerprint()
    assert groups([[0, 1]]).fingerprint() != groups([0, 1]).fingerprint()
    assert groups(np.array([0, 1], dtype=np.uint8)).fingerprint() == groups([0, 1]).fingerprint()


def test_features_survive_pickle_and_meta_is_json() -> None:
    features = pickle.loads(pickle.dumps(two_leaves()))
    assert features.fingerprint() == two_leaves().fingerprint()
    assert json.loads(json.dumps(features.meta)) == {"made": "here"}
    with pytest.raises(GralisError, match="'meta' parameter of Features"):
        Features((np.array([0]),), ("a",), "groups", {"array": np.zeros(1)})


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ((), "'labels' parameter of Features must be a tuple"),
        (np.array([0, 1]), "'labels' parameter of Features must be a tuple"),
        ((np.zeros((2, 0), dtype=int),), r"no labels \(shape \(2, 0\)\)"),
        ((np.array([0, 1]), np.array([[1, -2]])), r"-2 at index \(0, 1\)"),
        ((np.array([0.0, 1.0]),), "dtype float64"),
        ((np.array([True, False]),), "dtype bool"),
        ((np.array(["a", "b"]),), "'labels' parameter of Features.*dtype <U1"),
        ((np.array([0, 1, 2]), np.array([4, 7])), r"Label 3 is missing: labels must be 0\.\.7 without gaps; renumber"),
        ((np.array([1, 2]),), "Label 0 is missing"),
        ((np.array([0, 10**15]),), "Label 1 is missing"),
    ],
)
def test_bad_labels_are_one_sentence(labels, sentence):
    with pytest.raises(GralisError, match=sentence):
        Features(labels, ("a", "b"), "groups")


@pytest.mark.parametrize("names", [("a",), ("a", "b", "c"), "ab", None])
def test_names_are_counted(names):
    with pytest.raises(GralisError, match=r"'names' parameter of Features must be .* 2 in all"):
        Features((np.array([0, 1]),), names, "groups")
    assert Features((np.array([0, 1]),), ("same", "same"), "groups").names == ("same", "same")


# --- groups ----------------------------------------------------------------------------------------------------------


def test_groups_repeat_spatial_labels_over_the_channels() -> None:
    spatial = np.arange(20).reshape(4, 5)
    first, last = groups(spatial, shape=(3, 4, 5)), groups(spatial, shape=(4, 5, 3))
    assert all(np.array_equal(first.labels[0][c], spatial) for c in range(3))
    assert all(np.array_equal(last.labels[0][..., c], spatial) for c in range(3))
    assert np.array_equal(groups(spatial[None], shape=(3, 4, 5)).labels[0], first.labels[0])
    assert np.array_equal(groups(torch.tensor(spatial), shape=torch.zeros(3, 4, 5)).labels[0], first.labels[0])


def test_groups_refuse_labels_that_fit_twice_or_not_at_all() -> None:
    with pytest.raises(GralisError, match=r"'labels' parameter of groups must be unambiguous .*\(4, 4\).*\(4,\)"):
        groups(np.arange(4), shape=(4, 4))
    with pytest.raises(GralisError, match=r"'labels' parameter of groups.*\(3, 4, 5\).*\(5, 4\)"):
        groups(np.arange(20).reshape(5, 4), shape=(3, 4, 5))
    with pytest.raises(GralisError, match="'labels' parameter of groups must be one array per leaf, 2 in all"):
        groups([0, 1], shape=((2,), (3,)))
    with pytest.raises(GralisError, match="'labels' parameter of groups"):
        groups([[0, 1], [0]])


def test_groups_share_one_numbering_over_leaves() -> None:
    features = groups((np.array([0, 1]), np.array([[1, 2]])), names=["a", "b", "c"])
    assert features.sizes.tolist() == [1, 2, 1]
    assert features.shapes == ((2,), (1, 2))
    assert groups([0, 1, 1]).names == ("group 0", "group 1")


def test_groups_renumber_only_when_asked() -> None:
    with pytest.raises(GralisError, match="Label 0 is missing"):
        groups([5, 9, 5])
    features = groups((np.array([5, 9]), np.array([5, 7])), relabel=True)
    assert [leaf.tolist() for leaf in features.labels] == [[0, 2], [0, 1]]


# --- columns, grid, channels -----------------------------------------------------------------------------------------


def test_columns_merge_one_hot_codes_where_the_first_one_stands() -> None:
    names = ["age", "red", "dose", "blue", "green"]
    row = columns(names, groups={"color": ["blue", "red", "green"]})
    assert row.names == ("age", "color", "dose")
    assert row.labels[0].tolist() == [0, 1, 2, 1, 1]
    assert columns(names).names == tuple(names)
    assert columns(["a", "a"]).n_features == 2
    # a group may have the name of a column that stays outside: two features all the same
    assert columns(["a", "b", "c"], groups={"a": ["b", "c"]}).labels[0].tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("names", "merge", "parameter"),
    [
        ([], None, "names"),
        ("age", None, "names"),
        (["a", "b"], {"g": ["a", "z"]}, "groups"),
        (["a", "b"], {"g": ["a"], "h": ["a"]}, "groups"),
        (["a", "b"], {"g": []}, "groups"),
        (["a", "b"], {"g": "a"}, "groups"),
        (["a", "a"], {"g": ["a"]}, "groups"),
    ],
)
def test_bad_columns_are_one_sentence(names, merge, parameter):
    with pytest.raises(GralisError, match=f"'{parameter}' parameter of columns"):
        columns(names, groups=merge)


@quick
@given(st.integers(1, 3), st.lists(st.integers(1, 9), min_size=1, max_size=3), st.data())
def test_grid_patches_have_the_right_sizes(n_channels, spatial, draw):
    patch = [draw.draw(sides) for _ in spatial]
    features = grid((n_channels, *spatial), patch)
    pieces = [[min(p, s - start) for start in range(0, s, p)] for s, p in zip(spatial, patch, strict=True)]
    expected = np.array(pieces[0])
    for more in pieces[1:]:
        expected = np.multiply.outer(expected, more)
    assert features.sizes.tolist() == (n_channels * expected).ravel().tolist()
    for channel in features.labels[0]:
        assert np.array_equal(channel, features.labels[0][0])
    for label in range(features.n_features):  # a patch is a box: as many coordinates as its bounding box
        where = np.argwhere(features.labels[0][0] == label)
        assert len(where) == np.prod(where.max(axis=0) - where.min(axis=0) + 1)


def test_grid_names_and_forms() -> None:
    assert grid((3, 4, 6), 2).names == ("r0c0", "r0c1", "r0c2", "r1c0", "r1c1", "r1c2")
    assert grid((3, 4, 6), 2).names[grid((3, 4, 6), 2).labels[0][1, 2, 5]] == "r1c2"
    assert grid((2, 2, 2), (1, 2, 2)).names == ("d0r0c0", "d1r0c0")
    assert grid((6,), 4).names == ("c0", "c1")
    assert grid((2, 6), (3,)).labels[0].tolist() == [[0, 0, 0, 1, 1, 1]] * 2
    assert grid(torch.zeros(3, 8, 8), 100).n_features == 1


@pytest.mark.parametrize("patch", [0, -1, 2.5, (2, 0), (), (1, 1, 1, 1), True, None, "ab"])
def test_bad_patches_are_one_sentence(patch):
    with pytest.raises(GralisError, match="'patch' parameter of grid"):
        grid((3, 8, 8), patch)


def test_channels_follow_their_axis() -> None:
    first, last = channels((2, 3, 4)), channels((2, 3, 4), axis=-1, names=list("abcd"))
    assert first.labels[0][:, 0, 0].tolist() == [0, 1]
    assert first.names == ("channel 0", "channel 1")
    assert last.labels[0][1, 2].tolist() == [0, 1, 2, 3]
    assert last.sizes.tolist() == [6, 6, 6, 6]
    for axis in (3, -4, 0.0):
        with pytest.raises(GralisError, match="'axis' parameter of channels"):
            channels((2, 3, 4), axis=axis)


# --- resolve ---------------------------------------------------------------------------------------------------------


def test_resolve_takes_none_features_and_labels() -> None:
    assert resolve(None, [(2, 2)]).kind == "coordinates"
    assert tuple(resolve(None, [(2,), (1,)]).names) == ("x0[0]", "x0[1]", "x1[0]")
    mine = grid((3, 4, 4), 2)
    assert resolve(mine, [(3, 4, 4)]) is mine
    spatial = np.arange(6).reshape(2, 3)
    expected = groups(spatial, shape=(4, 2, 3)).fingerprint()
    for labels in (spatial, torch.tensor(spatial), spatial.tolist(), (spatial,), [*spatial], tuple(spatial.tolist())):
        assert resolve(labels, [(4, 2, 3)]).fingerprint() == expected
    assert resolve((0, 0, 1), [(3,)]).sizes.tolist() == [2, 1]


def test_resolve_takes_one_array_per_leaf_or_a_dict() -> None:
    parts = ([0, 1], np.array([[1, 2]]))
    features = resolve(parts, [(2,), (5, 1, 2)])
    assert features.sizes.tolist() == [1, 6, 5]
    by_key = resolve({"b": parts[1], "a": parts[0]}, [(2,), (5, 1, 2)], keys=["a", "b"])
    assert by_key.fingerprint() == features.fingerprint()
    assert resolve(None, [(1,), (1,)], keys=["a", "b"]).names[:] == ("a[0]", "b[0]")
    assert resolve((np.array([0, 1]), 1), [(2,), ()]).sizes.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("features", "sentence"),
    [
        (grid((3, 4, 4), 2), r"over x of shape \(3, 8, 8\). Got Features\(grid, 4 features over \(3, 4, 4\)\)"),
        ([0, 1], r"\(3, 8, 8\).*labels of shape \(2,\)"),
        ((np.zeros((8, 8), int), np.zeros(2, int)), "labels"),
        (np.full((8, 8), 2), "Label 0 is missing"),
        (np.zeros((8, 8)), "dtype float64"),
        ("slic", "None, an integer label array"),
        (3, "None, an integer label array"),
        ({"a": [0]}, "None, an integer label array"),
        ([[0, 1], [0]], "labels"),
    ],
)
def test_what_resolve_refuses_names_the_parameter_of_explain(features, sentence):
    with pytest.raises(GralisError, match=f"(?s)'features' parameter of explain.*{sentence}"):
        resolve(features, [(3, 8, 8)])


def test_resolve_refuses_wrong_keys_and_one_array_for_two_leaves() -> None:
    with pytest.raises(GralisError, match=r"'features' parameter of explain must be a dict with the keys \['a', 'b'\]"):
        resolve({"a": [0]}, [(1,), (1,)], keys=["a", "b"])
    with pytest.raises(GralisError, match="one array per leaf, 2 in all"):
        resolve(np.array([0, 1]), [(2,), (2,)])


def test_tokens_take_the_width_of_the_embedding() -> None:
    class Tokenizer:
        def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
            return [f"<{i}>" for i in ids]

    resolved = features.resolve(features.tokens(torch.tensor([5, 7, 5]), Tokenizer()), [(3, 4)])
    assert resolved.names == ("<5> [0]", "<7>", "<5> [2]")  # a token that occurs twice says where it is
    assert resolved.labels[0].tolist() == [[0] * 4, [1] * 4, [2] * 4]
    assert features.tokens([5, 7]).names == ("5", "7")
    with pytest.raises(GralisError, match=r"positions of x, of shape \(4, 3\)"):
        features.resolve(features.tokens([5, 7, 5]), [(4, 3)])
    with pytest.raises(GralisError, match=r"'ids'.*one by one"):
        features.tokens([[1, 2], [3, 4]])
    with pytest.raises(GralisError, match=r"'tokenizer'.*convert_ids_to_tokens"):
        features.tokens([1, 2], tokenizer=str)


def test_windows_of_a_time_series() -> None:
    assert features.windows(7, 3).labels[0].tolist() == [0, 0, 0, 1, 1, 1, 2]
    last = features.windows(7, 3, channels=2, layout="channels_last")
    assert last.labels[0].tolist() == [[0, 0], [0, 0], [0, 0], [1, 1], [1, 1], [1, 1], [2, 2]]
    assert (features.windows(7, 3, channels=2).labels[0] == last.labels[0].T).all()
    with pytest.raises(GralisError, match="'channels_first', 'channels_last'"):
        features.windows(7, 3, channels=2, layout="NWC")
    with pytest.raises(GralisError, match=r"'width'.*Got 0"):
        features.windows(7, 0)
