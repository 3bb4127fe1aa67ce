"""Features: which coordinates of x are switched together. Every coordinate belongs to exactly one feature.

coordinates    each coordinate is a feature
groups         coordinates with the same integer label, or listed under one name, are a feature
columns        the columns of a table, some of them merged
channels       the indices of one axis
grid           patches of an image
slic           superpixels of an image; `slic_ensemble` makes several segmentations
tokens         the tokens of a text
windows        the windows of a time series
patches        the tokens of a layer, each on its patch of the image
heads          the attention heads of a layer
composition    the features of an input of several arrays; pictures: images without features are cut into regions
batch_axis     a batch axis of 1 that was left on x
"""

from gralis.features.argument import resolve
from gralis.features.features import Features
from gralis.features.partitions import channels, columns, coordinates, groups
from gralis.features.regions import grid, slic, slic_ensemble
from gralis.features.sequences import tokens, windows
from gralis.features.transformer import heads, patches

__all__ = [
    "Features",
    "channels",
    "columns",
    "coordinates",
    "grid",
    "groups",
    "heads",
    "patches",
    "resolve",
    "slic",
    "slic_ensemble",
    "tokens",
    "windows",
]
