"""Charts other than bars and heat map: the way from F(x') to F(x), interactions of pairs, and phi over sigma."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.results.explanation import Explanation
from gralis.results.sweep import Sweep
from gralis.views.bars import doubt_count
from gralis.views.colours import AGAINST, DIVERGING, FOR, GREY, INK, LINES
from gralis.views.names import literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["GREY", "INK", "LINES", "convergence", "interactions", "network", "sweep", "waterfall"]


def waterfall(e: Explanation, ax: Axes, *, top: int, **_: Any) -> None:
    """From F(x') to F(x): the `top` largest phi in turn, the rest, then the parts of the residual in grey."""
    order = np.argsort(-np.abs(e.values), kind="stable")[:top]
    steps = [(literal(e.labels[int(i)]), float(e.values[i]), False) for i in order]
    rest = float(e.values.sum() - e.values[order].sum())
    if e.n_features > len(order):
        steps.append((f"{e.n_features - len(order)} more", rest, False))
    steps += _residual_steps(e)
    sizes = np.array([size for _, size, _ in steps])
    ends = e.f_baseline + np.cumsum(sizes)
    starts = ends - sizes
    colours = [GREY if is_residual else FOR if size > 0 else AGAINST for _, size, is_residual in steps]
    places = np.arange(len(steps))
    ax.barh(places, sizes, left=starts, color=colours, height=0.72)
    for place, end in zip(places[:-1], ends[:-1], strict=True):
        ax.plot([end, end], [place, place + 1], color=INK, linewidth=0.5, alpha=0.6)
    for value, label in ((e.f_baseline, "F(x')"), (e.f_x, "F(x)")):
        ax.axvline(value, color=INK, linewidth=0.8, linestyle=":")
        side = "left" if value == max(e.f_x, e.f_baseline) else "right"  # so that the labels do not overlap
        text = f" {label} = {value:.4g} "
        ax.text(value, 1.01, text, transform=ax.get_xaxis_transform(), ha=side, fontsize="small")
    for place, size in zip(places, sizes, strict=True):
        right = (max(starts[place], ends[place]), place)
        ax.annotate(f"{size:+.3g}", right, (3, 0), textcoords="offset points", va="center", fontsize="x-small")
    ax.set_yticks(places, [name for name, _, _ in steps])
    ax.set_ylim(len(steps) - 0.4, -0.6)
    ax.use_sticky_edges = False
    ax.margins(x=0.12)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)


def _residual_steps(e: Explanation) -> list[tuple[str, float, bool]]:
    """The parts of the residual, or the whole residual as one step if it cannot be split."""
    try:
        parts = e.residual
    except GralisError:
        return [("residual", float(e.delta - e.values.sum()), True)]
    named = (("joint path", parts.path), ("numerical", parts.numerical), ("kernel", parts.kernel))
    return [(name, term.value, True) for name, term in named]


def interactions(e: Explanation, ax: Axes, *, top: int, **_: Any) -> None:
    """The Shapley interaction index of pairs, for the `top` features that interact most; the diagonal is empty."""
    table, chosen, how = _strongest_pairs(e, top)
    shown = table[np.ix_(chosen, chosen)]
    np.fill_diagonal(shown, np.nan)
    limit = float(np.nanmax(np.abs(shown))) if len(chosen) > 1 else 1.0
    drawn = ax.imshow(shown, cmap=DIVERGING, vmin=-(limit or 1.0), vmax=limit or 1.0)
    names = [literal(e.names[int(i)]) for i in chosen]
    ax.set_xticks(np.arange(len(chosen)), names, rotation=90, fontsize="small")
    ax.set_yticks(np.arange(len(chosen)), names, fontsize="small")
    ax.set_title(f"Shapley interaction index of pairs ({how})", fontsize="medium")
    ax.figure.colorbar(drawn, ax=ax, fraction=0.046, pad=0.03)


def _strongest_pairs(e: Explanation, top: int) -> tuple[Array, NDArray[np.int64], str]:
    """The interaction index of all pairs, the `top` features that take part in the largest, and how sure they are."""
    found = e.interactions(order=2)
    table: Array = found.matrix()
    np.fill_diagonal(table, 0.0)
    how = "exact" if found.exact else "estimated"
    strongest = np.sort(np.argsort(-np.abs(table).max(0), kind="stable")[:top])
    return table, strongest, f"{how}; {doubt_count(e.doubts)}" if e.doubts else how


def network(e: Explanation, ax: Axes, *, top: int, **_: Any) -> None:
    """The features that interact most, on a circle: dots as large as |phi|, lines as wide as |SII| of the pair."""
    table, chosen, how = _strongest_pairs(e, top)
    angle = np.pi / 2 - 2 * np.pi * np.arange(len(chosen)) / max(len(chosen), 1)
    place = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    widest = float(np.abs(table).max()) or 1.0
    for a in range(len(chosen)):
        for b in range(a):
            size = float(table[chosen[a], chosen[b]])
            if abs(size) > 0.05 * widest:
                ends = place[[a, b]].T
                colour, width = (FOR if size > 0 else AGAINST), 5 * abs(size) / widest
                ax.plot(*ends, color=colour, linewidth=width, alpha=0.75, solid_capstyle="round", zorder=1)
    phi = e.values[chosen]
    area = 40 + 360 * np.abs(phi) / (np.abs(phi).max() or 1.0)
    ax.scatter(
        place[:, 0],
        place[:, 1],
        s=area,
        c=[FOR if value > 0 else AGAINST for value in phi],
        edgecolors="white",
        zorder=2,
    )
    for (x, y), i in zip(place, chosen, strict=True):
        side = "left" if x > 0.1 else "right" if x < -0.1 else "center"
        ax.text(1.16 * x, 1.16 * y, literal(e.names[int(i)]), ha=side, va="center", fontsize="small")
    ax.set_xlim(-1.9, 1.9)
    ax.set_ylim(-1.4, 1.4)
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.set_title(f"phi (dots) and pairs that interact (lines; {how})", fontsize="medium")


def convergence(e: Explanation, ax: Axes, *, top: int, level: float, **_: Any) -> None:
    """How the intervals of the largest features narrow towards the final values as replicates come in."""
    steps = e.as_it_grew()
    final = steps[-1]
    order = np.argsort(-np.abs(final.values), kind="stable")[: min(top, len(LINES))]
    cost = [step.cost.n_gradients or step.cost.n_forwards for step in steps]
    for rank, i in enumerate(order):
        ends = np.stack([step.interval(level)[i] for step in steps])
        colour = LINES[rank % len(LINES)]
        ax.fill_between(cost, ends[:, 0], ends[:, 1], color=colour, alpha=0.2, linewidth=0)
        ax.plot(
            cost,
            [step.values[i] for step in steps],
            "o-",
            color=colour,
            markersize=3,
            label=literal(final.names[int(i)]),
        )
    ax.axhline(0, color=INK, linewidth=0.8)
    ax.set_xscale("log")
    ax.set_xlabel(
        f"{'gradients' if final.cost.n_gradients else 'forwards'} (bands: {level:.0%} intervals, all together)"
    )
    ax.set_ylabel("phi")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))


def sweep(s: Sweep, ax: Axes, *, top: int) -> None:
    """phi of the largest features over the settings, with simultaneous 95% intervals as bands."""
    phi, half = s.values, np.nan_to_num(s.half_widths())
    order = np.argsort(-np.abs(phi).max(0), kind="stable")[:top]
    places, names = np.arange(len(s.settings)), s.explanations[0].names
    for rank, i in enumerate(order):
        values, error = phi[:, i], half[:, i]
        colour = LINES[rank % len(LINES)]
        ax.plot(places, values, "o-", color=colour, markersize=3, label=literal(names[int(i)]))
        ax.fill_between(places, values - error, values + error, color=colour, alpha=0.2, linewidth=0)
    ax.axhline(0, color=INK, linewidth=0.8)
    ax.set_xticks(places, ["uniform" if np.isinf(setting) else f"{setting:g}" for setting in s.settings])
    ax.set_xlabel(f"{s.parameter} (bands: 95% intervals for all features together)")
    ax.set_ylabel("phi")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
