"""Several scales: levels combined into one attribution, and the scan over numbers of regions."""

from gralis.scales.granularity import Granularity, granularity
from gralis.scales.multiscale import multiscale
from gralis.scales.result import LevelResult, MultiScale
from gralis.scales.weights import minimum_variance

__all__ = ["Granularity", "LevelResult", "MultiScale", "granularity", "minimum_variance", "multiscale"]
