"""Features: which coordinates of x are switched together. Every coordinate belongs to exactly one feature."""

from gralis.features.features import Features
from gralis.features.given import resolve
from gralis.features.partitions import channels, columns, coordinates, groups
from gralis.features.regions import grid, slic, slic_ensemble
from gralis.features.sequences import tokens, windows

__all__ = [
    "Features",
    "channels",
    "columns",
    "coordinates",
    "grid",
    "groups",
    "resolve",
    "slic",
    "slic_ensemble",
    "tokens",
    "windows",
]
