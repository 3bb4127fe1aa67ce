"""Data sets: `explain_many` and its folder of results.

items, files   inputs of any kind as a stream         work        what a worker does with a block
blocks         which inputs belong together           local, ray_engine   who does the work
store          the folder: nothing lost, none twice   result      the folder, read
tables         Parquet, with a version                importance  the whole data set in a few numbers
rows           CSV and Parquet, row by row            split       one giant input over many workers
"""

from gralis.many.explain_many import explain_many
from gralis.many.files import folder, means, table
from gralis.many.importance import Importance, global_importance
from gralis.many.result import Failure, Results
from gralis.many.split import explain_split

__all__ = [
    "Failure",
    "Importance",
    "Results",
    "explain_many",
    "explain_split",
    "folder",
    "global_importance",
    "means",
    "table",
]
