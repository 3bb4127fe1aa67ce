"""Explanations and pictures in files.

archive   an explanation in one `.gralis` file; archive_checks: what such a file must look like
images    pictures as inputs of a network
"""

from gralis.files.archive import load, save
from gralis.files.images import Preprocessing

__all__ = ["Preprocessing", "load", "save"]
