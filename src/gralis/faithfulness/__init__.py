"""How good is an attribution? Metrics with one signature, batched, each with the direction that is better.

    metric(model, x, attribution, *, target, baseline, features, seed, batch_size, ...) -> Score

curves        deletion, insertion, ROAD MoRF and LeRF and their gap
impute        noisy linear imputation, the replacement of ROAD
fidelity      infidelity and the completeness residual
sensitivity   max-sensitivity
sparsity      Gini index, entropy, locality
repeats       run-to-run noise, rank agreement
overlap       pointing game, intersection over union and mass inside an expert's annotation
sanity        model randomisation
score         what a metric returns, and its mean with error bars over inputs
registry      the metrics by name, and `register` for a metric of your own
scored_input  one input with its attribution, and F where features are removed
rerun         a method once more, for the metrics that need it
"""

from gralis.faithfulness.curves import deletion, insertion, road_gap, road_lerf, road_morf
from gralis.faithfulness.fidelity import completeness, infidelity
from gralis.faithfulness.impute import NoisyLinear
from gralis.faithfulness.overlap import iou, mass_inside, pointing_game
from gralis.faithfulness.registry import METRICS, register
from gralis.faithfulness.repeats import rank_agreement, stability
from gralis.faithfulness.sanity import model_randomisation
from gralis.faithfulness.score import Curve, Score, Summary, over
from gralis.faithfulness.sensitivity import max_sensitivity
from gralis.faithfulness.sparsity import entropy, gini, locality

__all__ = [
    "METRICS",
    "Curve",
    "NoisyLinear",
    "Score",
    "Summary",
    "completeness",
    "deletion",
    "entropy",
    "gini",
    "infidelity",
    "insertion",
    "iou",
    "locality",
    "mass_inside",
    "max_sensitivity",
    "model_randomisation",
    "over",
    "pointing_game",
    "rank_agreement",
    "register",
    "road_gap",
    "road_lerf",
    "road_morf",
    "stability",
]
