"""Baselines: the reference x' to which features are switched, one point or a distribution of points.

A recipe makes x' from x: `zeros()`, `mean()`, `mean_color()`, `blur(sigma)`, `noise(seed)`, or its name as a string.
`sample(X, n)` is a distribution: attributions are averaged over its rows. A recipe of your own is any object with the
method `point`; a function x -> x' works as well.
"""

from gralis.baselines.argument import resolve
from gralis.baselines.baselines import Baselines
from gralis.baselines.distribution import Sample, sample
from gralis.baselines.recipes import Recipe, blur, mean, mean_color, noise, zeros

__all__ = ["Baselines", "Recipe", "Sample", "blur", "mean", "mean_color", "noise", "resolve", "sample", "zeros"]
