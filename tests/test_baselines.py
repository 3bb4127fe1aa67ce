"""Baselines: everything explain(baseline=...) may be, and the sentence for everything it may not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gralis.baselines import Baselines, blur, mean_color, noise, resolve, sample
from gralis.errors import GralisError

quick = settings(max_examples=40, deadline=None)
rng = np.random.default_rng(7)
CHW = rng.normal(size=(3, 20, 30))


def only(baseline, *leaves, **options) -> np.ndarray:
    """The single point on the single leaf, without the row axis."""
    baselines = resolve(baseline, leaves, **options)
    assert baselines.n_baselines == 1
    assert baselines.weights.tolist() == [1.0]
    return baselines.points[0][0].numpy()


# --- numbers and arrays ----------------------------------------------------------------------------------------------


@quick
@given(
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=0, max_dims=3, max_side=4), elements=st.floats(-9, 9)),
    st.floats(-9, 9),
)
def test_a_number_fills_x_and_an_array_is_itself(x, value):
    assert np.array_equal(only(value, x), np.full(x.shape, value))
    for same in (x, torch.tensor(x), x.tolist()):
        assert np.array_equal(only(same, x), x)


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.array(2), torch.tensor(2.0)])
def test_numbers_of_any_kind_serve_every_leaf(value):
    baselines = resolve(value, (np.zeros((2, 2)), torch.zeros(3)))
    assert [points.tolist() for points in baselines.points] == [[[[2.0, 2.0], [2.0, 2.0]]], [[2.0, 2.0, 2.0]]]


def test_arrays_broadcast_to_x_but_never_beyond_it():
    per_channel = np.array([1.0, 2.0, 3.0]).reshape(3, 1, 1)
    assert np.array_equal(only(per_channel, CHW), np.broadcast_to(per_channel, CHW.shape))
    for shape in [(1, 3, 20, 30), (5, 3, 20, 30), (3, 20), (2,)]:
        with pytest.raises(
            GralisError, match=r"'baseline' parameter of explain must be of shape \(3, 20, 30\)"
        ) as caught:
            resolve(np.zeros(shape), (CHW,))
        assert str(shape) in str(caught.value)
        assert "sample" in str(caught.value)


def test_points_take_the_dtype_of_their_leaf_and_are_copies():
    leaves = (np.zeros(2, np.float32), torch.zeros(2, dtype=torch.float64), torch.zeros(2).half(), np.zeros(2, int))
    points = resolve(0.5, leaves).points
    assert [p.dtype for p in points] == [torch.float32, torch.float64, torch.float16, torch.get_default_dtype()]
    mine = torch.zeros(2)
    made = resolve(mine, (torch.ones(2),)).points[0]
    mine += 5
    assert made.tolist() == [[0.0, 0.0]]
    tracked = torch.zeros(2, requires_grad=True)
    assert not resolve(tracked, (tracked,)).points[0].requires_grad


# --- several leaves --------------------------------------------------------------------------------------------------


def test_a_tuple_or_a_dict_gives_one_baseline_per_leaf():
    leaves = (np.ones((1, 8, 8)), np.ones(2))
    parts = resolve(("mean-color", 3), leaves).points
    assert [p.shape for p in parts] == [(1, 1, 8, 8), (1, 2)]
    assert parts[1].tolist() == [[3.0, 3.0]]
    by_key = resolve({"row": [4.0, 5.0], "image": blur(2)}, leaves, keys=("image", "row"))
    assert by_key.points[1].tolist() == [[4.0, 5.0]]
    assert by_key.name == "row: array, image: blur(sigma=2)"
    assert resolve((np.zeros(2),), (np.ones(2),)).points[0].tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize(
    ("baseline", "keys", "sentence"),
    [
        ((0.0,), None, "one per leaf of x, 2 in all. Got 1"),
        (np.zeros(2), None, "a tuple of arrays, for the 2 leaves of x"),
        ({"a": 0.0}, ("a", "b"), r"a dict with the keys \['a', 'b'\]. Got keys \['a'\]"),
        ({"a": 0.0, "b": 0.0}, None, "a dict only when x is one"),
        ((sample(np.zeros((4, 2))), 0.0), None, r"sample\(\(X0, X1, ...\)\)"),
        ((0.0, "grey"), None, "'zeros', 'mean', 'mean-color', 'blur', 'noise'. Got 'grey'"),
        ((0.0, np.zeros(3)), None, r"of shape \(2,\), as x. Got shape \(3,\)"),
    ],
)
def test_what_several_leaves_refuse(baseline, keys, sentence):
    with pytest.raises(GralisError, match=f"'baseline' parameter of explain must be .*{sentence}"):
        resolve(baseline, (np.zeros(2), np.zeros(2)), keys=keys)


# --- callables -------------------------------------------------------------------------------------------------------


def test_a_callable_sees_x_as_the_user_gave_it():
    x = {"a": np.arange(2.0), "b": np.ones(1)}
    leaves = (x["a"], x["b"])
    baselines = resolve(lambda given: {"b": 7.0, "a": given["a"] + 1}, leaves, keys=("a", "b"), x_user=x)
    assert [p.tolist() for p in baselines.points] == [[[1.0, 2.0]], [[7.0]]]
    assert baselines.name == "callable <lambda>"
    assert only(lambda given: given * 2, CHW).tolist() == (CHW * 2).tolist()
    assert resolve(lambda given: sample(np.zeros((3, 2))), (np.ones(2),)).n_baselines == 3
    assert only(lambda given: "mean", np.array([1.0, 3.0])).tolist() == [2.0, 2.0]


def test_a_callable_that_fails_is_named():
    def broken(given):
        return given["nothing"]

    with pytest.raises(GralisError, match="'baseline' parameter of explain, callable broken, failed on x"):
        resolve(broken, (np.ones(2),))
    with pytest.raises(GralisError, match="'baseline' parameter of explain"):
        resolve(lambda given: broken, (np.ones(2),))


# --- bad arguments ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "parameter"),
    [
        (lambda: blur(0), "sigma"),
        (lambda: blur(-1), "sigma"),
        (lambda: blur("8"), "sigma"),
        (lambda: noise(-1), "seed"),
        (lambda: noise(1.5), "seed"),
        (lambda: resolve(blur(channel_axis=3), (CHW,)), "channel_axis"),
        (lambda: resolve(mean_color(channel_axis=0), (np.ones(4),)), "channel_axis"),
        (lambda: resolve("blur", (np.array(1.0),)), "x"),
        (lambda: sample(np.zeros((0, 3))), "X"),
        (lambda: sample(3.0), "X"),
        (lambda: sample((np.zeros((4, 2)), np.zeros((5, 2)))), "X"),
        (lambda: sample(np.zeros((4, 3)), n=5), "n"),
        (lambda: sample(np.zeros((4, 3)), n=0), "n"),
        (lambda: sample(np.zeros((4, 3)), seed=-1), "seed"),
        (lambda: resolve(sample(np.zeros((4, 3))), (np.zeros(2),)), "X"),
        (lambda: resolve("gray", (CHW,)), "baseline"),
        (lambda: resolve(None, (CHW,)), "baseline"),
        (lambda: resolve(1j, (CHW,)), "baseline"),
        (lambda: resolve([[0.0], [0.0, 1.0]], (CHW,)), "baseline"),
        (lambda: resolve(object(), (CHW,)), "baseline"),
    ],
)
def test_bad_arguments_are_one_sentence(build, parameter):
    with pytest.raises(GralisError, match=f"The '{parameter}' parameter of "):
        build()


# --- distributions ---------------------------------------------------------------------------------------------------


@quick
@given(st.integers(1, 12), st.data())
def test_a_sample_draws_without_replacement_and_weighs_alike(n_rows, draw):
    n = draw.draw(st.none() | st.integers(1, n_rows))
    seed = draw.draw(st.integers(0, 5))
    X = np.arange(2.0 * n_rows).reshape(n_rows, 2)
    baselines = resolve(sample(X, n=n, seed=seed), (np.zeros(2),))
    drawn = baselines.points[0].numpy()
    assert baselines.n_baselines == (n_rows if n is None else n)
    assert np.allclose(baselines.weights, 1 / baselines.n_baselines)
    assert baselines.weights.sum() == pytest.approx(1.0, abs=1e-12)
    rows = [tuple(row) for row in drawn]
    assert len(set(rows)) == len(rows)
    assert set(rows) <= {tuple(row) for row in X}
    again = resolve(sample(torch.tensor(X), n=n, seed=seed), (np.zeros(2),))
    assert torch.equal(again.points[0], baselines.points[0])
    if n is None:
        assert np.array_equal(drawn, X)


def test_every_row_is_drawn_equally_often():
    counts = np.zeros(5)
    for seed in range(600):
        counts[resolve(sample(np.arange(5.0)[:, None], n=2, seed=seed), (np.zeros(1),)).points[0].long()] += 1
    # 600 draws of 2 from 5: 240 each, standard deviation 12
    assert np.all(np.abs(counts - 240) < 60)


def test_rows_of_several_leaves_are_drawn_together():
    X = (np.arange(9.0)[:, None], 10 * np.arange(9.0)[:, None, None])
    leaves = (np.zeros(1), np.zeros((1, 1)))
    for given_X, keys in ((X, None), ({"b": X[1], "a": X[0]}, ("a", "b"))):
        first, second = resolve(sample(given_X, n=4), leaves, keys=keys).points
        assert torch.equal(10 * first.ravel(), second.ravel())
    with pytest.raises(GralisError, match="for the 2 leaves of x"):
        resolve(sample(X[0]), leaves)


def test_a_sample_and_its_baselines_say_what_they_are():
    assert repr(sample(np.zeros((200, 3)))) == "sample(200 rows, all rows)"
    baselines = resolve(sample(np.zeros((200, 3)), n=50, seed=4), (np.zeros(3),))
    assert repr(baselines) == "Baselines(sample(200 rows, n=50, seed=4), 50 points)"
    assert resolve(0.0, (np.zeros(3),)).name == "constant 0.0"
    assert resolve(np.zeros(3), (np.zeros(3),)).name == "array"
    with pytest.raises(ValueError, match="read-only"):
        baselines.weights[0] = 1.0


@pytest.mark.parametrize(
    ("points", "weights", "parameter"),
    [
        ((torch.zeros(2, 3),), [0.5, 0.6], "weights"),
        ((torch.zeros(2, 3),), [1.5, -0.5], "weights"),
        ((torch.zeros(2, 3),), [1.0], "points"),
        ((torch.zeros(2, 3), torch.zeros(1, 3)), [0.5, 0.5], "points"),
        ((), [1.0], "points"),
    ],
)
def test_baselines_check_their_own_table(points, weights, parameter):
    with pytest.raises(GralisError, match=f"'{parameter}' parameter of Baselines"):
        Baselines(points, np.array(weights), "mine")


# --- finite ----------------------------------------------------------------------------------------------------------


def test_the_first_value_that_is_not_finite_is_located():
    broken = np.zeros((2, 3))
    broken[1, 0], broken[1, 2] = np.nan, np.inf
    with pytest.raises(GralisError, match=r"'baseline' .* must be finite. Got nan in x at index \(1, 0\)"):
        resolve(broken, (np.zeros((2, 3)),))
    with pytest.raises(GralisError, match=r"Got nan in x\[1\] at index \(1, 0\)"):
        resolve((0.0, broken), (np.zeros(2), np.zeros((2, 3))))
    with pytest.raises(GralisError, match=r"Got nan in row at index \(1, 0\)"):
        resolve({"age": 0.0, "row": broken}, (np.zeros(2), np.zeros((2, 3))), keys=("age", "row"))
    with pytest.raises(GralisError, match=r"Got nan in x at index \(0,\) of row 1"):
        resolve(sample(broken), (np.zeros(3),))
    with pytest.raises(GralisError, match=r"Got inf in x at index \(0,\)"):  # finite as given, not in float32
        resolve(1e300, (np.zeros(3, np.float32),))


def test_a_constant_that_is_kept_for_the_next_input_belongs_to_no_inference_mode_and_no_other_type() -> None:
    with torch.inference_mode():
        inside = resolve(0.625, (torch.ones(3),))
    outside, again = resolve(0.625, (torch.ones(3),)), resolve(0.625, (torch.zeros(3),))
    assert again is outside is not inside
    assert not outside.points[0].is_inference()
    wider = resolve(0.625, (torch.ones(3, dtype=torch.float64),))
    assert (outside.points[0].dtype, wider.points[0].dtype) == (torch.float32, torch.float64)
    assert [resolve(number, (torch.ones(2),)).name for number in (0.0, -0.0, 0)] == [
        "constant 0.0", "constant -0.0", "constant 0",
    ]  # fmt: skip
