"""The records of the photographs as text: one table over everything, what it cost, and one table for each cell."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Any

import numpy as np
from equal_cost import METHODS

from gralis.bench import ScoreRow, means, rows
from gralis.bench.text import gaps, losses, markdown_table, overview

Records = Sequence[dict[str, Any]]
STATES_NONE = "states none"


def written(records: Records, facts: dict[str, str], machine: str, remark: str) -> tuple[str, list[str]]:
    """The text of the page in Markdown, and the sentences that the HTML page begins with."""
    done = [record for record in records if "error" not in record]
    networks, baselines = ({one["about"][what]: None for one in done} for what in ("network", "baseline"))
    seconds = sum(one["seconds"] for one in done)
    about = [
        f"{facts['photographs']} photographs at {facts['side']} x {facts['side']} pixels, {len(networks)} networks "
        f"({', '.join(networks)}) and {len(baselines)} baselines ({', '.join(baselines)}). Every method explains the "
        "logit of the predicted class over the same superpixels; the curves follow the probability of that class.",
        f"GRALIS has {facts['gradients']} gradients for a photograph. A forward counts as a third of a gradient. "
        "Integrated Gradients has as many gradients, and KernelSHAP and LIME have as many forwards, as GRALIS costs in "
        "all. The other methods need less and cannot use more.",
        *gaps(records),
    ]
    table = rows(done)  # a photograph is a group: its four cells are averaged first
    parts = [
        "# Photographs",
        "    make photographs DATA=FOLDER",
        "Means over the photographs with 95% half-widths; the cells of a photograph are averaged first.",
        markdown_table(*overview(means(table))),
        best_means(table),
        *tested(table, int(facts["photographs"]), ("gralis", "integrated_gradients", "singles")),
        *about,
        "## Cost and uncertainty",
        "Means over photographs and cells. The stated error is the method's own standard error, and the error seen is "
        "the spread between two seeds; both are relative to a typical value of the method (root mean squares). "
        f"Times are seconds of one core ({machine}), which includes reading the ledger; singles has its share of the "
        f"ledger's time. The run took {seconds:.0f} s of one core. {remark}".strip(),
        markdown_table(*cost_table(done)),
    ]
    for network in networks:
        for baseline in baselines:
            cell = [one for one in done if (one["about"]["network"], one["about"]["baseline"]) == (network, baseline)]
            mine = rows(cell)
            parts += [f"## {network}, {baseline}", markdown_table(*overview(means(mine)))]
            parts += tested(mine, len(cell), ("gralis",))[:1]
    return "\n\n".join(parts) + "\n", about


def tested(table: Sequence[ScoreRow], n: int, methods: Sequence[str]) -> list[str]:
    """Which methods are better than these by more than chance, or that so few photographs cannot show it."""
    pairs = comb(len(METHODS), 2)
    if pairs * 2 / 2**n > 0.05:  # the smallest p of a paired sign test, after Holm's correction
        return [
            f"A paired test on {n} photographs, corrected for {pairs} pairs of methods, can hardly reach p < 0.05. The "
            "means are therefore all that can be compared here."
        ]
    return [f"Where {method} loses (Holm p < 0.05): {losses(table, method)}." for method in methods]


def best_means(table: Sequence[ScoreRow]) -> str:
    """The methods with the three best means of each curve, in words."""
    says = []
    for metric in ("deletion", "insertion"):
        mine = [one for one in means(table) if one.metric == metric]
        mine.sort(key=lambda one: one.mean if one.better == "lower" else -one.mean)
        says.append(f"{metric}: {', '.join(one.method for one in mine[:3])}")
    return f"The three best means, best first: {'; '.join(says)}."


def cost_table(done: Records) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """For every method: gradients, forwards, seconds, and its stated and seen errors."""
    lines: list[tuple[object, ...]] = []
    for method in METHODS:
        costs = [one["costs"][method] for one in done]
        spent = (float(np.mean([cost[what] for cost in costs])) for what in ("gradients", "forwards", "seconds"))
        of_method = [one["uncertainty"][method] for one in done]
        stated = [one["stated"] for one in of_method if one.get("stated") is not None]
        both = [(one["stated"], one["seen"]) for one in of_method if one.get("seen") is not None and one.get("stated")]
        says = f"{_rms(stated):.0%}" if stated else STATES_NONE
        twice = f"{_rms([b for _, b in both]):.0%} seen, {_rms([a for a, _ in both]):.0%} stated" if both else "–"
        lines.append((method, *(f"{number:.3g}" for number in spent), says, twice))
    return ("method", "gradients", "forwards", "seconds", "stated error", "where it ran twice"), lines


def _rms(numbers: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(numbers))))
