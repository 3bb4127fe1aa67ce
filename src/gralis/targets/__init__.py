"""Targets: how the output of a model becomes one number per row, outputs -> (rows,).

A target is None, an index, a tuple of indices, or a function of the outputs; `logit`, `probability`, `log_odds` and
`margin` make such functions.
"""

from gralis.targets.readouts import Readout, describe, log_odds, logit, margin, parse, probability
from gralis.targets.selection import select, total
from gralis.targets.target import OnTensors, Target, Targets, check, listed

__all__ = [
    "OnTensors",
    "Readout",
    "Target",
    "Targets",
    "check",
    "describe",
    "listed",
    "log_odds",
    "logit",
    "margin",
    "parse",
    "probability",
    "select",
    "total",
]
