"""Tree ensembles as plain arrays, and their explanations as finite sums.

ensemble            the arrays, and the prediction
columns, decisions  how a table becomes numbers, and which way a row goes at a node
reading             which reader an estimator needs: sklearn_*, xgboost_json, lightgbm_dump, catboost_json
along_rays          phi: the jumps along all rays, compiled; leaf_by_leaf is the same by NumPy
coalition_sums      indices of the game of coalition values, compiled
weights             what a kernel means for these sums
exact, indices      the sums for one or many rows; many_rows does both for tables
"""

from gralis.trees.ensemble import TreeEnsemble
from gralis.trees.exact import phi_of_rows
from gralis.trees.indices import pairs_of_row, shapley_weight, singles_of_rows, sum_of_values
from gralis.trees.many_rows import ExactRows, exact_many
from gralis.trees.reading import has_trees, read, why_unread

__all__ = [
    "ExactRows",
    "TreeEnsemble",
    "exact_many",
    "has_trees",
    "pairs_of_row",
    "phi_of_rows",
    "read",
    "shapley_weight",
    "singles_of_rows",
    "sum_of_values",
    "why_unread",
]
