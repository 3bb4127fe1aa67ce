"""What an explainer returns: one number per feature, with its error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gralis.arrays import Array
from gralis.estimators import Estimate
from gralis.features import Features
from gralis.results.result import FeatureResult, InputForm
from gralis.results.tables import error_text, largest_first, name_width, titled

__all__ = ["Attribution", "LinearSurrogate"]


@dataclass(frozen=True, eq=False, repr=False)
class Attribution(FeatureResult):
    """One number per feature by some method, exact or with errors from the replicates.

    Attributes
    ----------
    estimate : Estimate
        The values, and the deviation of each replicate from them.
    names : sequence of str
        The names of the features.
    delta : float
        F(x) - F(x').
    note : str
        What a reader should know about the method.
    features : Features or None
        What the values belong to; `to_input` needs it.
    form : InputForm or None
        How the user packs the arrays of the input.
    """

    estimate: Estimate
    names: Sequence[str]
    delta: float
    note: str = ""
    features: Features | None = None
    form: InputForm | None = None

    def __repr__(self) -> str:
        half, order = self.printed_half_widths, largest_first(self.values)
        width = name_width(self.names, order)
        lines = [titled(self.method, self.exact, self.note)]
        for i in order:
            error = "" if half[i] == 0 else f"+- {error_text(half[i])}"
            lines.append(f"{self.names[int(i)]:<{width}}  {self.values[i]:>11.5g}  {error}")
        if self.n_features > len(order):
            rest = self.values.sum() - self.values[order].sum()
            lines.append(f"{f'({self.n_features - len(order)} more)':<{width}}  {rest:>11.5g}")
        lines.append(f"sum {self.values.sum():.6g} of F(x) - F(x') = {self.delta:.6g}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class LinearSurrogate(Attribution):
    """A fitted linear model on 0/1 features: its coefficients are the values.

    Attributes
    ----------
    estimate, names, delta, note, features, form
        As in `Attribution`.
    intercept : float
        The prediction of the linear model if all features are at the baseline, minus F(x').
    r2 : float
        The weighted coefficient of determination.
    support : tuple of int
        The features with a coefficient; the coefficients of the others are zero.
    """

    intercept: float = 0.0
    r2: float = float("nan")
    support: tuple[int, ...] = ()

    @property
    def coef_(self) -> Array:
        """The coefficients on 0/1 features; `Explanation.audit` reads them as those of an affine surrogate."""
        return self.values

    def __repr__(self) -> str:
        return f"{super().__repr__()}\nintercept {self.intercept:.5g}, weighted R2 {self.r2:.4g}"
