"""Baselines: the reference x' that features are switched to, one point or a distribution of points.

A recipe makes x' from x: `zeros()`, `mean()`, `mean_color()`, `blur(sigma)`, `noise(seed)`, or its name as a string.
`sample(X, n)` is a distribution: attributions are averaged over its rows.
"""

from gralis.baselines.baselines import Baselines, Sample, resolve, sample
from gralis.baselines.recipes import Recipe, blur, mean, mean_color, noise, zeros

__all__ = ["Baselines", "Recipe", "Sample", "blur", "mean", "mean_color", "noise", "resolve", "sample", "zeros"]
