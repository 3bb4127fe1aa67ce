"""Explanations at several scales: levels combined into one attribution, and a scan over numbers of regions.

combination       `multiscale` combines levels, of which `levels` says what they may be
weights           `minimum_variance`, the weights of the levels, and `between_levels`, their disagreement
result            `MultiScale`, which `multiscale` returns
granularity_scan  `granularity` explains and scores segmentations with different numbers of regions
"""

from gralis.scales.combination import multiscale
from gralis.scales.granularity_scan import Granularity, Scale, granularity
from gralis.scales.result import LevelResult, MultiScale
from gralis.scales.weights import between_levels, minimum_variance

__all__ = [
    "Granularity",
    "LevelResult",
    "MultiScale",
    "Scale",
    "between_levels",
    "granularity",
    "minimum_variance",
    "multiscale",
]
