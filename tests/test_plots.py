"""Pictures: what is drawn is what was found, on the user's axes or on its own figure, and pyplot is left alone."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

import gralis
from gralis.errors import GralisError
from gralis.features import Features, channels, coordinates, grid, groups
from gralis.results.explanation import Explanation
from gralis.views import plots
from gralis.views.plots import plot


def with_values(features: Features, values, departures=None, exact: bool = False) -> Explanation:
    """An explanation with these values, whatever made them."""
    values = np.asarray(values, dtype=np.float64)
    departures = np.zeros((2, len(values))) if departures is None else departures
    x = torch.ones(features.shapes[0]) if len(features.shapes) == 1 else tuple(map(torch.ones, features.shapes))
    flat = lambda *leaves: sum(leaf.flatten(1).sum(1) for leaf in leaves)  # noqa: E731
    found = gralis.explain(flat, x, features=features, plan="endpoint", budget=8 * features.n_features)
    return replace(found, estimate=gralis.estimators.Estimate(values, departures, "made up", exact))


def quarters(values=(1.0, -2.0, 0.5, 0.25)) -> Explanation:
    return with_values(grid((3, 4, 6), (2, 3)), values)


def bars(figure: Figure) -> list[tuple[str, float]]:
    """Names and lengths, from top to bottom."""
    (ax,) = figure.axes
    names = [label.get_text() for label in ax.get_yticklabels()]
    lengths = [patch.get_width() for patch in ax.patches]
    down = ax.yaxis_inverted()
    assert down
    return list(zip(names, lengths, strict=True))


def shown_map(figure: Figure):
    return np.asarray(figure.axes[0].images[-1].get_array())


# --- bars ------------------------------------------------------------------------------------------------------------


def test_bars_show_the_largest_features_first() -> None:
    explanation = with_values(coordinates((5,)), [0.5, -3.0, 2.0, 0.0, 1.0])
    assert bars(plot(explanation, top=3)) == [("x[1]", -3.0), ("x[2]", 2.0), ("x[4]", 1.0)]
    assert len(bars(plot(explanation))) == 5
    assert "2 more features, together 0.5" in plot(explanation, top=3).axes[0].get_xlabel()
    assert "more" not in plot(explanation).axes[0].get_xlabel()


def test_bars_differ_in_colour_by_sign() -> None:
    figure = plot(with_values(coordinates((3,)), [1.0, -3.0, 2.0]))
    against, *others = [patch.get_facecolor() for patch in figure.axes[0].patches]
    assert others[0] == others[1] != against
    red, _, blue, _ = others[0]
    assert red > blue
    assert against[2] > against[0]


def test_error_bars_are_the_simultaneous_intervals() -> None:
    departures = np.array([[1.0, 0.1, 0.0], [-1.0, -0.1, 0.0]])
    explanation = with_values(coordinates((3,)), [1.0, 5.0, -2.0], departures)
    for level in (0.8, 0.95):
        (lines,) = [c for c in plot(explanation, level=level).axes[0].collections if isinstance(c, LineCollection)]
        ends = np.array([segment[:, 0] for segment in lines.get_segments()])
        assert np.allclose(ends, explanation.interval(level)[[1, 0]])  # the third has no error, so no line
    assert "simultaneous 80% intervals" in plot(explanation, level=0.8).axes[0].get_xlabel()
    with pytest.raises(GralisError, match="'level' parameter"):
        plot(explanation, level=95)


@pytest.mark.parametrize(("exact", "said"), [(True, "no error above rounding"), (False, "errors unknown")])
def test_no_error_bars_where_there_is_nothing_to_show(exact, said) -> None:
    figure = plot(with_values(coordinates((2,)), [1.0, 2.0], np.zeros((1, 2)), exact))
    assert not figure.axes[0].collections
    assert said in figure.axes[0].get_xlabel()
    figure.canvas.draw()


@pytest.mark.parametrize("kind", ["bars", "heatmap"])
def test_the_title_has_both_ends_and_the_residual(kind) -> None:
    explanation = replace(quarters(), f_x=10.25, f_baselines=np.array([0.5]))
    title = plot(explanation, kind).axes[0].get_title()
    assert title.split() == ["F(x)", "=", "10.25", "F(x')", "=", "0.5", "residual", "10"]


def test_bars_have_a_line_at_zero() -> None:
    (line,) = plot(quarters()).axes[0].lines
    assert list(line.get_xdata()) == [0, 0]


def test_long_names_are_cut() -> None:
    names = ["a" * 32, "b" * 30 + "2023", "b" * 30 + "2024"]
    shown = [name for name, _ in bars(plot(with_values(groups([0, 1, 2], names=names), [3.0, 2.0, 1.0])))]
    assert shown == ["a" * 32, "b" * 15 + "…" + "b" * 11 + "2023", "b" * 15 + "…" + "b" * 11 + "2024"]


# --- heat map --------------------------------------------------------------------------------------------------------


def test_features_shared_by_the_channels_show_their_own_value() -> None:
    expected = np.kron([[1.0, -2.0], [0.5, 0.25]], np.ones((2, 3)))
    assert np.array_equal(shown_map(plot(quarters(), "heatmap")), expected)
    last = groups(grid((4, 6), (2, 3)).labels[0], shape=(4, 6, 1))
    assert np.array_equal(shown_map(plot(with_values(last, [1.0, -2.0, 0.5, 0.25]), "heatmap")), expected)


@pytest.mark.parametrize(("shape", "axis"), [((3, 2, 5), 0), ((2, 5, 3), 2), ((1, 2, 5), 0), ((2, 5, 4), 2)])
def test_channels_with_features_of_their_own_are_summed(shape, axis) -> None:
    values = np.random.default_rng(0).normal(size=math.prod(shape))
    figure = plot(with_values(coordinates(shape), values), "heatmap")
    assert np.allclose(shown_map(figure), values.reshape(shape).sum(axis))
    assert not figure.axes[0].collections  # no borders between single pixels


def test_a_feature_that_owns_some_channels_is_counted_once() -> None:
    explanation = with_values(groups(np.array([0, 0, 1])[:, None, None] * np.ones((3, 2, 2), dtype=int)), [1.0, 10.0])
    assert np.array_equal(shown_map(plot(explanation, "heatmap")), np.full((2, 2), 11.0))
    explanation = with_values(channels((3, 2, 2)), [1.0, 10.0, 100.0])
    assert np.array_equal(shown_map(plot(explanation, "heatmap")), np.full((2, 2), 111.0))


def test_many_channels_are_known_by_what_they_share() -> None:
    regions = np.kron([[0, 0, 1], [2, 2, 1]], np.ones((3, 2), dtype=int))  # (6, 6)
    for shared in (np.broadcast_to(regions, (16, 6, 6)), np.broadcast_to(regions[..., None], (6, 6, 16))):
        explanation = with_values(groups(shared), [1.0, 2.0, 3.0])
        assert np.array_equal(shown_map(plot(explanation, "heatmap")), regions + 1.0)


def test_where_both_ends_could_be_channels_sharing_decides_and_else_the_first_is_taken() -> None:
    regions = np.arange(4 * 6).reshape(4, 6) // 12
    explanation = with_values(groups(np.broadcast_to(regions[..., None], (4, 6, 3))), [1.0, 2.0])
    assert np.array_equal(shown_map(plot(explanation, "heatmap")), regions + 1.0)
    values = np.arange(4.0 * 6 * 3)
    figure = plot(with_values(coordinates((4, 6, 3)), values), "heatmap")
    assert np.array_equal(shown_map(figure), values.reshape(4, 6, 3).sum(0))


def test_a_grey_image_is_its_own_map() -> None:
    assert np.array_equal(shown_map(plot(with_values(coordinates((2, 2)), [1, 2, 3, 4]), "heatmap")), [[1, 2], [3, 4]])


def test_the_colours_are_symmetric_about_zero_and_named_phi() -> None:
    figure = plot(quarters((3.0, -2.0, 0.5, 0.25)), "heatmap")
    drawn = figure.axes[0].images[-1]
    assert (drawn.norm.vmin, drawn.norm.vmax) == (-3.0, 3.0)
    strong, zero = drawn.to_rgba(np.array([3.0, -3.0])), drawn.to_rgba(np.array([0.0]))[0]
    assert strong[0, 0] > strong[0, 2]
    assert strong[1, 2] > strong[1, 0]
    assert zero[:3].min() > 0.95
    assert figure.axes[1].get_ylabel() == "phi"


def test_a_map_of_zeros_can_be_drawn() -> None:
    figure = plot(quarters((0.0, 0.0, 0.0, 0.0)), "heatmap", image=np.zeros((4, 6)))
    figure.canvas.draw()
    assert figure.axes[0].images[-1].norm.vmax == 1.0


def test_borders_run_between_features() -> None:
    (borders,) = plot(quarters(), "heatmap").axes[0].collections
    segments = np.array(borders.get_segments())
    upright = segments[segments[:, 0, 0] == segments[:, 1, 0]]
    flat = segments[segments[:, 0, 1] == segments[:, 1, 1]]
    assert len(upright) + len(flat) == len(segments) == 4 + 6
    assert set(upright[:, 0, 0]) == {2.5}
    assert set(flat[:, 0, 1]) == {1.5}
    assert sorted(upright[:, :, 1].mean(1)) == [0, 1, 2, 3]
    assert sorted(flat[:, :, 0].mean(1)) == [0, 1, 2, 3, 4, 5]


def test_the_largest_features_are_named_where_they_are() -> None:
    features = gralis.features.grid((3, 10, 10), 5)
    named = Features(features.labels, ("region 0", "sky", "region 12", "region 3"), "slic")
    explanation = with_values(named, [1.0, -3.0, 2.0, 0.0])
    assert not plot(explanation, "heatmap").axes[0].texts
    texts = {t.get_text(): t.get_position() for t in plot(explanation, "heatmap", mark=2).axes[0].texts}
    assert texts == {"sky": (7, 2), "12": (2, 7)}


# --- the picture under it --------------------------------------------------------------------------------------------

RAMP = np.linspace(0, 1, 24).reshape(4, 6)


@pytest.mark.parametrize(
    "image",
    [
        RAMP,
        RAMP * 255,
        np.round(RAMP * 23).astype(np.uint8),
        RAMP * 2 - 1,
        np.stack([RAMP] * 3),
        np.stack([RAMP] * 3, axis=-1),
        RAMP[None],
        RAMP[..., None],
        np.dstack([RAMP] * 3 + [np.ones_like(RAMP)]),  # opaque
        torch.tensor(RAMP).expand(3, 4, 6),
        RAMP.tolist(),
    ],
    ids=["HW", "255", "uint8", "-1..1", "CHW", "HWC", "1HW", "HW1", "RGBA", "tensor", "list"],
)
def test_the_picture_lies_under_the_map_in_grey(image) -> None:
    ax = plot(quarters(), "heatmap", image=image).axes[0]
    under, over = ax.images
    assert np.allclose(under.get_array(), RAMP)
    assert np.array_equal(over.get_array(), shown_map(plot(quarters(), "heatmap")))
    assert under.get_cmap().name == "gray"
    alpha = over.get_alpha()
    assert alpha.max() < 1  # the picture shows through, most where phi is small
    assert np.argmax(alpha) == np.argmax(np.abs(over.get_array()))


def test_colours_count_by_how_bright_they_look() -> None:
    image = np.zeros((4, 6, 3))
    image[0, 0], image[0, 1], image[0, 2] = (1, 0, 0), (0, 1, 0), (1, 1, 1)
    grey = plot(quarters(), "heatmap", image=image).axes[0].images[0].get_array()
    assert 0 < grey[0, 0] < grey[0, 1] < grey[0, 2] == 1


@pytest.mark.parametrize("image", [np.zeros((6, 4)), np.zeros((4, 6, 3, 1)), np.zeros(24), np.zeros((3, 6, 4))])
def test_a_picture_of_another_size_gets_a_sentence(image) -> None:
    with pytest.raises(GralisError, match=r"'image' parameter of plot must be a picture of 4 x 6 pixels.*Got shape"):
        plot(quarters(), "heatmap", image=image)


@pytest.mark.parametrize("image", ["photo.png", np.full((4, 6), np.nan), object()])
def test_a_picture_that_is_none_gets_a_sentence(image) -> None:
    with pytest.raises(GralisError, match="'image' parameter of plot"):
        plot(quarters(), "heatmap", image=image)


@pytest.mark.parametrize("shapes", [((6,),), ((2, 2, 2, 3),), ((2, 2), (3,)), ((5, 5, 5),)])
def test_what_is_not_an_image_is_sent_to_bars(shapes) -> None:
    explanation = with_values(coordinates(shapes), np.arange(sum(map(math.prod, shapes))))
    with pytest.raises(GralisError, match=r"'kind' parameter of plot must be 'bars' unless x is one image.*heatmap"):
        plot(explanation, "heatmap")
    assert len(bars(plot(explanation))) == min(15, explanation.n_features)


# --- figures and options ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bars", "heatmap"])
def test_pyplot_is_left_alone_and_a_file_can_be_written(kind, tmp_path) -> None:
    before = plt.get_fignums(), matplotlib.get_backend(), dict(matplotlib.rcParams)
    figure = quarters().plot(kind)
    figure.savefig(tmp_path / "picture.png")
    assert (plt.get_fignums(), matplotlib.get_backend(), dict(matplotlib.rcParams)) == before
    assert type(figure.canvas).__name__ == "FigureCanvasAgg"
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("kind", ["bars", "heatmap"])
def test_the_users_axes_are_used(kind) -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert plot(quarters(), kind, ax=right) is figure
    assert right.get_title()
    assert not left.get_title()
    assert not left.has_data()
    inner = Figure().subfigures(1, 2)[1]
    assert plot(quarters(), kind, ax=inner.subplots()) is inner.figure
    inner.figure.canvas.draw()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"kind": "pie"},
            r"'kind' parameter of plot must be one of 'bars', 'heatmap', 'waterfall'.*'text'.* Got 'pie'",
        ),
        ({"top": 0}, r"'top' parameter of plot must be a whole number >= 1. Got 0"),
        ({"top": 2.5}, r"'top' parameter"),
        ({"mark": -1}, r"'mark' parameter of plot must be a whole number >= 0. Got -1"),
        ({"ax": 3}, r"'ax' parameter of plot must be a matplotlib Axes. Got 3"),
    ],
)
def test_bad_options_get_a_sentence(options, sentence) -> None:
    with pytest.raises(GralisError, match=sentence):
        plot(quarters(), **options)


def test_without_matplotlib_the_extra_is_named(monkeypatch) -> None:
    explanation = quarters()
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(GralisError, match=r'pip install "gralis\[plot\]"'):
        explanation.plot()


def test_matplotlib_is_not_imported_with_gralis() -> None:
    import subprocess

    code = "import sys, gralis, gralis.views.plots; print([m for m in sys.modules if m.startswith('matplotlib')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"


def test_a_waterfall_ends_at_f_of_x() -> None:
    found = gralis.explain(lambda z: z[:, 0] * z[:, 1] + z[:, 2] ** 2, torch.tensor([1.0, 2.0, 3.0, 0.5]).double())
    ax = found.plot("waterfall", top=2).axes[0]
    last = ax.patches[-1]
    ends = (last.get_x(), last.get_x() + last.get_width())
    assert min(abs(end - found.f_x) for end in ends) < 1e-9
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["x[2]", labels[1], "2 more", "joint path", "numerical", "kernel"]


def test_interactions_show_the_pair() -> None:
    found = gralis.explain(lambda z: z[:, 0] * z[:, 1] + z[:, 2], torch.tensor([1.0, 2.0, 3.0]).double())
    image = found.plot("interactions").axes[0].images[0].get_array()
    assert image[0, 1] == pytest.approx(2.0)
    assert np.ma.is_masked(image[0, 0]) or np.isnan(image[0, 0])


def test_a_sweep_has_a_line_per_feature() -> None:
    found = gralis.explain(lambda z: z[:, 0] * z[:, 1] + z[:, 2], torch.tensor([1.0, 2.0, 3.0]).double())
    ax = found.sweep([0.3, 1.0]).plot(top=2).axes[0]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "x[2]",
        "x[1]",
    ]  # phi_2 = ab p1 / 2 (1 + p1) is the larger


def test_pictures_can_share_a_scale() -> None:
    found = [gralis.explain(lambda z, k=k: k * z.sum((1, 2)), torch.ones(4, 4)) for k in (1.0, 3.0)]
    drawn = [one.plot("heatmap", limit=5.0).axes[0].images[0] for one in found]
    assert [image.get_clim() for image in drawn] == [(-5.0, 5.0)] * 2
    with pytest.raises(gralis.GralisError, match="limit"):
        found[0].plot("heatmap", limit=0)


# --- kinds from outside ----------------------------------------------------------------------------------------------


def test_a_registered_kind_is_drawn_with_the_options_of_plot() -> None:
    calls = []

    def dots(explanation, ax, *, top, level, **_) -> None:
        calls.append((top, level))
        ax.plot(explanation.values[:top], "o")

    plots.register_plot("dots", dots, size=lambda explanation, top: (2.0, float(top)))
    figure = quarters().plot("dots", top=3, level=0.9)
    assert calls == [(3, 0.9)]
    assert figure.get_size_inches().tolist() == [2.0, 3.0]
    assert len(figure.axes[0].lines) == 1
    assert "dots" in plots.plot_kinds()
    with pytest.raises(GralisError, match="'dots'"):
        quarters().plot("nothing")


@pytest.mark.parametrize(("kind", "draw", "name"), [("bars", print, "kind"), ("", print, "kind"), ("dots", 3, "draw")])
def test_a_bad_registration_gets_a_sentence(kind, draw, name) -> None:
    with pytest.raises(GralisError, match=f"'{name}' parameter of register_plot"):
        plots.register_plot(kind, draw)
