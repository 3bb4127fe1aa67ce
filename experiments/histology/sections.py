"""The sections of the page that are tables of results."""

from __future__ import annotations

import os
import platform
from typing import Any

import figures
import numpy as np
import torch
from section import Section
from setting import Setting
from studies import read

from gralis.bench import comparisons, means, rows

PARTS = ("observed", "path", "numerical", "kernel")
LIMITS = ("singles", "gralis", "gralis_uniform")


def algorithm_1(setting: Setting) -> Section | None:
    """Both plans on the same images. The checksum shows the bias of the quadrature."""
    studied = read(setting, "paper")
    lines = []
    for index, one in enumerate(studied):
        for name in ("algorithm_1", "shared"):
            e = one[name]
            if e is not None:
                check = e["checksum"] or {"mean": float("nan"), "rms": float("nan")}
                start = (index, name.replace("_", " "), e["n_gradients"], e["seconds"])
                same = one.get("rank_correlation", float("nan")) if name == "shared" else float("nan")
                parts = ("{:.3g} ± {:.2g}".format(*e["parts"][part]) for part in PARTS)
                lines.append((*start, *parts, check["mean"], check["rms"], e["B"], same))
    says = (
        f"Algorithm 1 ran with {setting.n_permutations} permutations in antithetic pairs, {setting.n_nodes} midpoints "
        f"on every ray and sigma {setting.sigma}. The table compares it with the default plan. Residuals, with 95% "
        "half-widths, are relative to |F(x) - F(x')|. The checksum of a ray is the sum of its values minus v(T). It is "
        "zero for exact quadrature. With fixed nodes its mean is a bias; with random nodes it is chance."
    )
    head = ("image", "plan", "gradients", "seconds", *PARTS, "checksum mean", "rms", "B", "rank correlation")
    return Section("Algorithm 1", says, head, lines) if lines else None


def residual(setting: Setting) -> Section | None:
    studied = read(setting, "residual")
    if not studied:
        return None
    lines = []
    for part in PARTS:
        values = np.array([one["parts"][part][0] for one in studied])
        half = np.array([one["parts"][part][1] for one in studied])
        clear = float(np.mean(np.abs(values) > half))
        lines.append(
            (part, float(np.median(values)), float(values.mean()), *np.quantile(values, (0.1, 0.9)).tolist(), clear)
        )
    B = np.array([one["B"] for one in studied])
    sizes = np.array([[abs(one["parts"][part][0]) for part in PARTS[1:]] for one in studied])
    shares = np.median(sizes / np.maximum(sizes.sum(1, keepdims=True), 1e-300), axis=0)
    says = (
        f"The residual is observed = path + numerical + kernel, on {len(studied)} images, relative to |F(x) - F(x')|. "
        "The path part is what straight paths of coalitions leave out. The numerical part comes from quadrature and "
        "sampling. The kernel part is the effect of locality. In size, the three parts make up "
        f"{shares[0]:.0%}, {shares[1]:.0%} and {shares[2]:.0%} (medians over the images). The constant B of the "
        "bounds, measured from below on the same ledgers, has "
        f"median {np.median(B):.3g} and maximum {B.max():.3g}."
    )
    calibrated = [one["B"] for one in read(setting, "bound")]
    if calibrated:
        bounds = ", ".join(f"{b:.3g}" for b in calibrated)
        says += f" A separate calibration pass on {len(calibrated)} images gave {bounds}."
    head = ("part", "median", "mean", "10%", "90%", "share of images where it is not 0 at 95%")
    drawn = figures.save(setting.path("figures", "histology-residual.png"), figures.residual, studied)
    return Section("The residual in its parts", says, head, lines, drawn)


def limits(records: list[dict[str, Any]]) -> Section:
    """Is a finite sigma better than both limits?"""
    table = [row for row in rows(records) if row.method in LIMITS]
    known = {(one.metric, one.method): one for one in means(table)}
    lines = []
    for metric in dict.fromkeys(row.metric for row in table):
        tests = {frozenset((t.a, t.b)): t for t in comparisons(table) if t.metric == metric}
        values = [known[metric, name].mean if (metric, name) in known else float("nan") for name in LIMITS]
        ps = [tests.get(frozenset(("gralis", other))) for other in ("singles", "gralis_uniform")]
        better = known[metric, "gralis"].better if (metric, "gralis") in known else ""
        lines.append((f"{metric} ({better})", *values, *(t.p_holm if t else float("nan") for t in ps)))
    says = (
        "The paper proposes this test of its motivation. It compares each feature alone, coalitions weighted by the "
        "kernel, and all coalitions with Shapley's weights."
    )
    head = ("metric", "sigma -> 0", "finite sigma", "sigma -> infinity", "p against 0", "p against infinity")
    return Section("Sigma to 0, finite, to infinity", says, head, lines)


def sigma(setting: Setting) -> Section | None:
    studied = read(setting, "sigma")
    names = ("residual", "error", "with_single", "with_uniform", "deletion", "insertion")
    if not studied:
        return None
    lines = []
    for index, first in enumerate(studied[0]["lines"]):
        of_all = [[one["lines"][index][name] for one in studied] for name in names]
        means_of = [float(np.mean([v for v in values if v is not None] or [np.nan])) for values in of_all]
        lines.append((first["sigma"], *means_of))
    says = (
        f"The table has means over {len(studied)} images. Each image has one ledger for every sigma. Correlations are "
        "rank correlations."
    )
    head = ("sigma", "residual", "error", "with sigma -> 0", "with sigma -> infinity", "deletion", "insertion")
    drawn = figures.save(setting.path("figures", "histology-sigma.png"), figures.over_sigma, studied)
    return Section("The width of the kernel", says, head, lines, drawn)


def granularity(setting: Setting) -> Section | None:
    studied = read(setting, "scales")
    if not studied:
        return None
    names = ("regions", "gradients", "deletion", "insertion", "residual", "error", "seconds")
    lines = []
    for index, first in enumerate(studied[0]["lines"]):
        lines.append(
            (first["asked"], *(float(np.mean([one["lines"][index][name] for one in studied])) for name in names))
        )
    says = (
        f"The table has means over {len(studied)} images. Deletion and insertion work on pixels and are shares of "
        "F(x) - F(x')."
    )
    drawn = figures.save(setting.path("figures", "histology-regions.png"), figures.over_regions, studied)
    return Section("The number of regions", says, ("requested", *names), lines, drawn)


def clock(setting: Setting, trained: dict[str, Any], records: list[dict[str, Any]]) -> Section:
    """The time that each stage took, in seconds of one process."""
    spent: dict[str, float] = {"training": trained["seconds"]}
    for record in records:
        for what, seconds in record.get("timings", {}).items():
            spent[what] = spent.get(what, 0.0) + seconds
    spent["Algorithm 1"] = sum(one["algorithm_1"]["seconds"] for one in read(setting, "paper"))
    spent["stains and compression"] = sum(one["seconds"] for one in read(setting, "shifts"))
    spent["granularity"] = sum(line["seconds"] for one in read(setting, "scales") for line in one["lines"])
    total = spent.pop("all", 0.0)
    lines = [(what, float(round(seconds, 1))) for what, seconds in sorted(spent.items(), key=lambda pair: -pair[1])]
    machine = f"{os.cpu_count()} cores, {platform.machine()}, torch {torch.__version__}"
    return Section(
        "Time",
        f"The machine has {machine}. The ledgers, methods and metrics took {total:.0f} s in all processes together; "
        f"training, Algorithm 1, stains and granularity come on top. {setting.remark}".strip(),
        ("stage", "seconds"),
        lines,
    )
