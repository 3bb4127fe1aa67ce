"""Explanations and pictures in files.

archive   an explanation in one `.gralis` file; archive_checks: what such a file must look like
row_archive  many explanations in one file
images    pictures as inputs of a network
"""

from gralis.files.archive import save
from gralis.files.images import Preprocessing
from gralis.files.row_archive import load

__all__ = ["Preprocessing", "load", "save"]
