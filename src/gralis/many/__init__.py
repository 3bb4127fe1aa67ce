"""Data sets: `explain_many` and its folder of results.

items          inputs with their ids, and the sources they come from
streams        inputs of any kind as one stream of items; pictures, rows, parquet_rows: those from files
blocks         which inputs are explained together
block_worker   explains a block; local_engine and ray_engine decide where
run_many       `explain_many`: the blocks that are not finished yet; run_settings: what they depend on
store          the folder of results; result_tables: its Parquet files
result         the folder, read
importance     the whole data set in a few numbers per feature; moments: the sums behind them
mean_intervals the errors of means, and of differences between classes
split          one giant input on many workers
"""

from gralis.many.importance import Importance, global_importance
from gralis.many.items import Item, Source
from gralis.many.pictures import Pictures, every_picture, folder, read_labels
from gralis.many.result import Failure, Results
from gralis.many.rows import means, table
from gralis.many.run_many import explain_many
from gralis.many.split import explain_split

__all__ = [
    "Failure",
    "Importance",
    "Item",
    "Pictures",
    "Results",
    "Source",
    "every_picture",
    "explain_many",
    "explain_split",
    "folder",
    "global_importance",
    "means",
    "read_labels",
    "table",
]
