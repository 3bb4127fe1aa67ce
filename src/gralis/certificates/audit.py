"""rho_E = phi(F) - phi(g): what another explainer leaves out, feature by feature, without any model call (C2).

g is any explainer with attributions. They may be one number per feature, one number per coordinate of the input
(captum, shap), or an affine surrogate, whose phi is beta_p (x_p - x'_p) for every kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, to_numpy
from gralis.baselines.endpoints import Endpoints
from gralis.errors import GralisError, bad
from gralis.features import Features
from gralis.notebook import InNotebooks, more, n_shown

_ALLOWED = (
    "attributions per feature or on the input's own shape (array, tensor, tuple of them, or a shap or captum result), "
    "or an affine surrogate with coef_"
)


@dataclass(frozen=True, eq=False)
class Audit(InNotebooks):
    """Our values, those of another explainer, and where they disagree by more than the error of ours.

    Attributes
    ----------
    names : sequence of str
        The names of the features.
    values : array of shape (n_features,)
        Our values.
    other : array of shape (n_features,)
        The values of the other explainer.
    half_widths : array of shape (n_features,)
        The simultaneous half-widths of our values.
    delta : float
        F(x) - F(x').
    level : float
        The level of the half-widths.
    """

    names: Sequence[str]
    values: Array
    other: Array
    half_widths: Array
    delta: float
    level: float

    @property
    def deficit(self) -> Array:
        """rho_E = phi - other, per feature."""
        return np.asarray(self.values - self.other)

    @property
    def residual(self) -> float:
        """F(x) - F(x') minus the sum of our values."""
        return float(self.delta - self.values.sum())

    @property
    def other_residual(self) -> float:
        """F(x) - F(x') minus the sum of the other explainer's values."""
        return float(self.delta - self.other.sum())

    @property
    def disagree(self) -> NDArray[np.bool_]:
        """The features where |rho_E| exceeds our half-width, so that sampling error does not explain the difference."""
        scale = 1e-12 * (np.abs(self.values) + np.abs(self.other))
        return np.asarray(np.abs(self.deficit) > np.nan_to_num(self.half_widths, nan=np.inf) + scale)

    @property
    def spearman(self) -> float:
        """Spearman's rank correlation of the signed values; NaN if either side is constant."""
        from scipy.stats import spearmanr  # takes long to import

        return _agreement(spearmanr, self.values, self.other)

    @property
    def kendall(self) -> float:
        """Kendall's tau of the signed values; NaN if either side is constant."""
        from scipy.stats import kendalltau

        return _agreement(kendalltau, self.values, self.other)

    def _frame_columns(self) -> Mapping[str, Any]:
        return {
            "feature": list(self.names),
            "value": self.values,
            "other": self.other,
            "deficit": self.deficit,
            "half_width": self.half_widths,
            "disagree": self.disagree,
        }

    def __repr__(self) -> str:
        order = np.argsort(-np.abs(self.deficit), kind="stable")[: n_shown(len(self.values))]
        width = max([7, *(len(self.names[int(i)]) for i in order)])
        lines = [
            f"audit of {len(self.values)} attributions: {int(self.disagree.sum())} disagree beyond the certificate "
            f"({self.level:.4g}); Spearman {self.spearman:.3g}, Kendall {self.kendall:.3g}",
            f"F(x) - F(x') - sum: ours {self.residual:.4g}, theirs {self.other_residual:.4g}",
            f"{'feature':<{width}}  {'phi':>11}  {'other':>11}  {'rho_E':>11}  {'+-':>9}",
        ]
        for i in order:
            mark = "  disagrees" if self.disagree[i] else ""
            row = f"{self.values[i]:>11.5g}  {self.other[i]:>11.5g}  {self.deficit[i]:>11.5g}  "
            lines.append(f"{self.names[int(i)]:<{width}}  {row}{self.half_widths[i]:>9.2g}{mark}")
        return "\n".join([*lines, *more(len(self.values), len(order))])


def attributions(other: object, features: Features, endpoints: Endpoints) -> Array:
    """Any explainer's result as one number per feature."""
    # If an object has both, the attributions in `values` take precedence over the coefficients in `coef_`.
    if hasattr(other, "coef_") and not hasattr(other, "values"):
        return _affine(other, features, endpoints)
    given = getattr(other, "values", other) if not callable(getattr(other, "values", None)) else other
    if isinstance(given, dict):
        given = tuple(given.values())
    parts = given if isinstance(given, tuple) else (given,)
    leaves = [_numbers(part) for part in parts]
    if len(leaves) == 1 and _squeezed(leaves[0], (features.n_features,)) is not None:
        return np.asarray(_squeezed(leaves[0], (features.n_features,)))
    fitted = [_squeezed(leaf, shape) for leaf, shape in zip(leaves, features.shapes, strict=False)]
    if len(leaves) != len(features.shapes) or any(leaf is None for leaf in fitted):
        shapes = " and ".join(str(leaf.shape) for leaf in leaves)
        expected = f"({features.n_features},) or {' and '.join(map(str, features.shapes))}"
        raise bad("other", "audit", f"{_ALLOWED}: shape {expected}", f"shape {shapes}")
    return features.collect([leaf for leaf in fitted if leaf is not None])


def _numbers(part: object) -> NDArray[Any]:
    try:
        array = to_numpy(part)
    except (TypeError, ValueError, RuntimeError) as error:
        raise bad("other", "audit", _ALLOWED, f"{type(part).__name__} ({error})") from error
    if array.dtype.kind not in "biuf":
        raise bad("other", "audit", _ALLOWED, f"a {type(part).__name__} of {array.dtype}")
    if not np.isfinite(array).all():
        raise GralisError("The 'other' parameter of audit must be finite; it holds NaN or infinite attributions.")
    return array.astype(np.float64)


def _squeezed(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any] | None:
    """The array in this shape, without a batch dimension of one (captum, shap); None if it does not fit."""
    if array.shape == shape:
        return array
    return array[0] if array.shape == (1, *shape) else None


def _affine(surrogate: Any, features: Features, endpoints: Endpoints) -> Array:
    """phi(g) = beta (x - x') for g = beta . x + b on coordinates, or phi(g) = beta on 0/1 features."""
    coefficients = _numbers(surrogate.coef_)
    coefficients = coefficients[0] if coefficients.ndim == 2 and len(coefficients) == 1 else coefficients
    n_coordinates = sum(leaf.size for leaf in endpoints.x)
    if coefficients.shape == (n_coordinates,):
        moved = coefficients * np.concatenate([leaf.ravel() for leaf in endpoints.displacement])
        ends = np.cumsum([leaf.size for leaf in endpoints.x])[:-1]
        leaves = [part.reshape(leaf.shape) for part, leaf in zip(np.split(moved, ends), endpoints.x, strict=True)]
        return features.collect(leaves)
    if coefficients.shape == (features.n_features,):
        return coefficients
    allowed = f"coef_ of shape ({n_coordinates},), or ({features.n_features},) on 0/1 features"
    raise bad("other", "audit", allowed, f"shape {coefficients.shape}")


def _agreement(measure: Any, ours: Array, theirs: Array) -> float:
    if len(ours) < 2 or np.ptp(ours) == 0 or np.ptp(theirs) == 0:
        return float("nan")
    return float(measure(ours, theirs).statistic)
