"""Plain-text tables: what print(explanation) shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gralis.errors import GralisError

if TYPE_CHECKING:
    from gralis.results.explanation import Explanation
    from gralis.results.sweep import Sweep

_MOST_ROWS = 15


def explanation_table(explanation: Explanation) -> str:
    """Feature, phi, +- (half-width of the simultaneous 95% interval), share; residual line; cost line."""
    e = explanation
    half = np.diff(e.interval(0.95), axis=1)[:, 0] / 2
    order = np.argsort(-np.abs(e.values), kind="stable")[:_MOST_ROWS]
    width = max([7, *(len(e.names[int(i)]) for i in order)])
    kernel = "" if e.plan["estimator"] == "shapley" else f"{e.kernel}, "  # Shapley values have none
    title = f"GRALIS explanation, {e.n_features} features, {kernel}{e.method}"
    lines = [title, f"F(x) = {e.f_x:.6g}   F(x') = {e.f_baseline:.6g}   difference {e.delta:.6g}", ""]
    lines.append(f"{'feature':<{width}}  {'phi':>11}  {'+-':>9}  {'share':>6}")
    for i in order:
        share = f"{e.values[i] / e.delta:6.1%}" if e.delta else "     -"
        lines.append(f"{e.names[int(i)]:<{width}}  {e.values[i]:>11.5g}  {_half(half[i]):>9}  {share}")
    if e.n_features > len(order):
        rest = e.values.sum() - e.values[order].sum()
        lines.append(f"{f'({e.n_features - len(order)} more)':<{width}}  {rest:>11.5g}")
    lines.append("")
    lines.append(f"sum of phi {e.values.sum():.6g}; {residual_line(e)}")
    lines.append(cost_line(e))
    if not e.complete:
        lines.append("stopped before the plan was done: the numbers stand for what was evaluated so far")
    if e.reached is not None:
        lines.append(tolerance_line(e))
    return "\n".join(lines)


def residual_line(e: Explanation) -> str:
    """The residual and its split, or the residual alone where coalition values are missing."""
    try:
        return repr(e.residual)
    except GralisError:
        return f"residual F(x) - F(x') - sum = {e.delta - e.values.sum():.6g}"


def tolerance_line(e: Explanation) -> str:
    """Whether the tolerance was reached, and if not, what would do it."""
    options = e.provenance
    tolerance, atol, level = float(options["tolerance"]), float(options["atol"]), float(options["level"])
    wanted = f"tolerance {tolerance:g}"
    if e.reached:
        return f"{wanted} reached"
    goal = max(tolerance, atol / abs(e.delta)) if e.delta else 0.0
    if not goal or np.isnan(e.stderr).any():
        return f"{wanted} not reached within the budget"
    unit = "gradients" if e.cost.n_gradients else "forwards"
    return f"{wanted} not reached within the budget: about {e.budget_for(goal, level):.2g} {unit} would do it"


def cost_line(e: Explanation) -> str:
    """What it cost, in one line."""
    c = e.cost
    spent = f"{c.n_gradients} gradients on {c.n_rays} rays, {c.n_forwards} forwards"
    return f"{spent}, {c.seconds:.1f} s, plan {e.plan['name']}"


def sweep_table(sweep: Sweep) -> str:
    """One row per sigma: the sum of phi, the effective rays of the least covered feature, and the largest features."""
    first = sweep.explanations[0]
    order = np.argsort(-np.abs(sweep.values).max(0), kind="stable")[:6]
    names = [first.names[int(i)][:12] for i in order]
    lines = [f"{'sigma':>8}  {'sum':>10}  {'rays':>7}  " + "  ".join(f"{name:>18}" for name in names)]
    for sigma, e in zip(sweep.sigmas, sweep.explanations, strict=True):
        cells = (f"{e.values[i]:>9.4g} +-{e.stderr[i]:<7.2g}" for i in order)
        lines.append(f"{sigma:>8.3g}  {e.values.sum():>10.5g}  {_effective(e):>7}  " + "  ".join(cells))
    return "\n".join(lines)


def _effective(e: Explanation) -> str:
    """The least number of effective rays behind a value."""
    try:
        return f"{e.effective_rays.min():.3g}"
    except GralisError:  # folded
        return "-"


def _half(half: float) -> str:
    if np.isnan(half):
        return "unknown"
    return "exact" if half == 0 else f"{half:.2g}"
