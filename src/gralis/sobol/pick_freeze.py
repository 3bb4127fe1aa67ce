"""Sampled indices: ratios of pick-freeze moments that are pooled over independent replicates, with jackknife errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from gralis.arrays import Array
from gralis.errors import BudgetError, GralisError
from gralis.estimators.estimate import Estimate
from gralis.sobol.design import PickFreezeDesign, cost_of_a_row
from gralis.sobol.found import Found
from gralis.sobol.input_sets import InputSet, subsets
from gralis.sobol.inputs import Inputs
from gralis.sobol.moments import VarianceMoments, blocks, each, known_moments, row_moments
from gralis.sobol.rare_events import Coincidences, rare_event_doubts
from gralis.sobol.settings import Settings
from gralis.sobol.surrogate import LegendreSurrogate, fit
from gralis.sobol.values import PointValues


def estimate(values: PointValues, inputs: Inputs, settings: Settings, sets: tuple[InputSet, ...]) -> Found:
    """Every index with its jackknife error, and with what rare events add to it.

    The indices of sets that are no pairs need more points per row.
    """
    extra = tuple(t for t in sets if len(t) != 2)
    exchanged = _exchanged(extra, settings)
    n_replicates, n_rows = settings.split(cost_of_a_row(inputs.n_inputs, len(exchanged)), values.n_evaluations)
    seeds = np.random.SeedSequence(settings.seed).spawn(n_replicates)
    designs = [PickFreezeDesign.draw(inputs, seed, n_rows, exchanged) for seed in seeds]
    outputs = [values(design.n_points, design.points) for design in designs]
    if np.ptp(np.concatenate(outputs)) <= 64 * values.eps * max(float(np.abs(part).max()) for part in outputs):
        raise constant_model()
    centre = float(outputs[0].mean())
    sample = _Sample(designs, [part - centre for part in outputs], extra)
    pooled = np.full((1, n_replicates), 1 / n_replicates)
    without = (1 - np.eye(n_replicates)) / (n_replicates - 1)
    whole, left = (
        _indices(each(lambda part, w=w: np.tensordot(w, part, 1), sample.moments)) for w in (pooled, without)
    )
    carriers = sample.carriers(whole)
    result = {}
    for name, value in whole.items():
        departures = (n_replicates - 1) * (left[name].mean(0) - left[name])
        shown = value[0] + (centre if name == "mean" else 0.0)
        result[name] = Estimate(shown, departures, "pick-freeze", carriers=carriers[name])
    margins = sample.margins(settings.level)
    return Found(result, margins, rare_event_doubts(result, margins, n_replicates * n_rows), False, None)


def constant_model() -> GralisError:
    """The error for a model without variance."""
    return GralisError("The model does not vary over the inputs (Var F = 0), so it has no sensitivity indices.")


def _exchanged(extra: tuple[InputSet, ...], settings: Settings) -> tuple[InputSet, ...]:
    """The sets of two or more columns that the design exchanges: the subsets of the sets that are asked for."""
    largest = max((len(t) for t in extra), default=0)
    assert settings.budget is not None
    if 2**largest > settings.budget:
        raise BudgetError(
            f"The 'budget' parameter of {settings.owner} must be at least {settings.least(2**largest)} here, because "
            f"a set of {largest} inputs has {2**largest} subsets. Got {settings.budget} instead."
        )
    return tuple(dict.fromkeys(part for t in extra for part in subsets(t, 2)))


@dataclass(frozen=True, eq=False)
class _Sample:
    """F (minus a constant) at the points of every replicate."""

    designs: list[PickFreezeDesign]
    outputs: list[Array]
    sets: tuple[InputSet, ...]

    @cached_property
    def surrogates(self) -> list[tuple[LegendreSurrogate, Array] | None]:
        """The surrogate of every replicate and its values at the points."""
        pair = None if self.designs[0].tables.levels is None else fit(self.designs, self.outputs)
        if pair is None:
            return [None] * len(self.designs)
        chosen = [pair[number % 2] for number in range(len(self.designs))]
        return [
            (one, one.at(design.levels(slice(0, design.n_points))))
            for one, design in zip(chosen, self.designs, strict=True)
        ]

    def rows(self, number: int) -> Iterator[VarianceMoments]:
        """The contributions of the rows of one replicate, block by block.

        With a surrogate M they are the moments of F, minus those of M in the same row, plus the known moments of M.
        """
        design, surrogate = self.designs[number], self.surrogates[number]
        for part in blocks(design):
            seen = row_moments(self.outputs[number], design, self.sets, part)
            if surrogate is not None:
                of_m = row_moments(surrogate[1], design, self.sets, part)
                known = known_moments(surrogate[0], self.sets)
                seen = each(lambda f, m, k: f - m + k, seen, of_m, known)
            yield seen

    @cached_property
    def moments(self) -> VarianceMoments:
        """The moments of every replicate, (n_replicates, ...)."""
        replicates = []
        for number, design in enumerate(self.designs):
            sums = [each(lambda part: part.sum(0), rows) for rows in self.rows(number)]
            n_rows = len(design.place)
            replicates.append(each(lambda *parts, n=n_rows: np.asarray(sum(parts)) / n, *sums))
        return each(lambda *parts: np.stack(parts), *replicates)

    def carriers(self, indices: dict[str, Array]) -> dict[str, Array]:
        """The number of rows that carry the error of each index: (sum of psi^2)^2 / sum of psi^4.

        psi is what a row adds to the error: its numerator minus the index times its denominator.
        """
        second, fourth = ({name: np.zeros(value.shape[1]) for name, value in indices.items()} for _ in range(2))
        for number in range(len(self.designs)):
            for rows in self.rows(number):
                for name, (above, below) in _ratios(rows).items():
                    squares = (above - indices[name] * below) ** 2
                    second[name] += squares.sum(0)
                    fourth[name] += (squares**2).sum(0)
        return {
            name: np.divide(
                second[name] ** 2, fourth[name], out=np.full(len(fourth[name]), np.inf), where=fourth[name] > 0
            )
            for name in indices
        }

    def margins(self, level: float) -> dict[str, Array]:
        """What unseen coincidences of rare events may add to every index."""
        seen = Coincidences()
        for number, design in enumerate(self.designs):
            surrogate = self.surrogates[number]
            values = self.outputs[number] - (0.0 if surrogate is None else surrogate[1])
            for part in blocks(design):
                seen.include(values, design, self.sets, part)
        margin = seen.margins(level, self.sets)
        pooled = each(lambda part: part.mean(0)[None], self.moments)
        below = {name: low for name, (_, low) in _ratios(pooled).items()}
        return {name: (above / below[name])[0] for name, (above, _) in _ratios(margin).items()}


def _indices(m: VarianceMoments) -> dict[str, Array]:
    """Every index, (n_rows, n_indices), one row per entry of the leading axis of the moments."""
    if not (m.variance > 0).all():
        raise BudgetError(
            "The rows are too few to estimate the variance of the model; raise the 'budget' of sensitivity."
        )
    return {name: above / below for name, (above, below) in _ratios(m).items()}


def _ratios(m: VarianceMoments) -> dict[str, tuple[Array, Array]]:
    """The numerator (n_rows, n_indices) and the denominator (n_rows, 1) of every index, both linear in the moments."""
    n = m.single.shape[1]
    i, j = np.array(list(combinations(range(n), 2)), dtype=np.int64).reshape(-1, 2).T
    variance, pairs, effects = m.variance[:, None], m.pair[:, i, j], _shapley(m)
    closed = m.single[:, i] + m.single[:, j] + pairs
    one = np.ones_like(variance)
    return {
        "mean": (m.mean[:, None], one),
        "variance": (variance, one),
        "first": (m.single, variance),
        "total": (m.total, variance),
        "pairs": (pairs, variance),
        "interactions": (np.concatenate([pairs, m.own], axis=1), variance),
        "closed": (np.concatenate([closed, m.explained], axis=1), variance),
        "shapley": (effects, effects.sum(1, keepdims=True)),
    }


def _shapley(m: VarianceMoments) -> Array:
    """Sh_i Var F = (1 / n) sum over k of the mean gain of i on coalitions of k others.

    k = 0: single; k = 1: single + mean_j pair; k = n - 2: total - mean_j overlap; k = n - 1: total; between: walk.
    """
    n = m.single.shape[1]
    others = max(n - 1, 1)
    second, last_but_one = m.single + m.pair.sum(2) / others, m.total - m.overlap.sum(2) / others
    if n <= 2:
        return np.asarray((m.single + m.total) / 2)
    if n == 3:
        return np.asarray((m.single + (second + last_but_one) / 2 + m.total) / 3)
    return np.asarray((m.single + second + last_but_one + m.total) / n + m.walk)
