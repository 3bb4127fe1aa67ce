"""How good is an attribution? Metrics with one signature, batched, each with the direction that is better.

    metric(model, x, attribution, *, target, baseline, features, batch_size, seed, ...) -> Score

curves       deletion, insertion, ROAD MoRF and LeRF and their gap
impute       noisy linear imputation, the replacement of ROAD
infidelity   infidelity and the completeness residual
sensitivity  max-sensitivity
sparsity     Gini index, entropy, locality
stability    run-to-run noise, rank agreement
overlap      pointing game, intersection over union and mass inside an expert's annotation
sanity       model randomisation
score        Score, and its mean with error bars over images
"""

from gralis.faithfulness.curves import deletion, insertion, road_gap, road_lerf, road_morf
from gralis.faithfulness.fidelity import completeness, infidelity
from gralis.faithfulness.impute import NoisyLinear
from gralis.faithfulness.overlap import iou, mass_inside, pointing_game
from gralis.faithfulness.repeats import rank_agreement, stability
from gralis.faithfulness.sanity import model_randomisation
from gralis.faithfulness.score import Curve, Score, Summary, over
from gralis.faithfulness.sensitivity import max_sensitivity
from gralis.faithfulness.sparsity import entropy, gini, locality

__all__ = [
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
    "road_gap",
    "road_lerf",
    "road_morf",
    "stability",
]
