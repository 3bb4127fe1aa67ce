"""Mutants of the sums over trees."""

from __future__ import annotations

from mutants.mutant import Mutant

_PHI, _INDICES, _PREDICTION = (
    f"tests/trees/{name}.py" for name in ("test_phi", "test_tree_indices", "test_prediction")
)

MUTANTS = (
    Mutant(
        "trees-member-measure",
        "explain",
        "trees/along_rays.py",
        "measure[0, m] = weights[m] * product / u",
        "measure[0, m] = weights[m] * product",
        "a member that crosses keeps its own factor",
        (_PHI,),
    ),
    Mutant(
        "trees-tied-entry",
        "explain",
        "trees/along_rays.py",
        "w * t ** (n_in - 1)",
        "w * t ** n_in",
        "the feature that enters counts among those that must have entered",
        (_PHI,),
    ),
    Mutant(
        "trees-jump-moment",
        "explain",
        "trees/along_rays.py",
        "at = 0.5 if jumps[number, c]",
        "at = 0.0 if jumps[number, c]",
        "categories and missing values jump at the start",
        (_PHI,),
    ),
    Mutant(
        "trees-early-leavers",
        "explain",
        "trees/along_rays.py",
        "            if span[1, top, j] < last:\n                b += 1",
        "            if span[1, top, j] < last:\n                b += 0",
        "those that must stay away are not counted",
        (_PHI,),
    ),
    Mutant(
        "trees-size-table",
        "explain",
        "trees/weights.py",
        "log = _log_comb(n - a - b, sizes - a)",
        "log = _log_comb(n - a, sizes - a)",
        "features that must stay away may be members",
        (_PHI,),
    ),
    Mutant(
        "trees-letter-owner",
        "explain",
        "trees/leaf_by_leaf.py",
        "others = np.arange(k) != i",
        "others = np.arange(k) >= 0",
        "the feature that crosses is among the others",
        (_PHI,),
    ),
    Mutant(
        "trees-shapley-sign",
        "Explanation.shapley",
        "trees/indices.py",
        "by_z[a, b] = -float(weight(a + b, 1, a))",
        "by_z[a, b] = float(weight(a + b, 1, a))",
        "features that keep the leaf of the baseline count as if they brought it",
        (_INDICES,),
    ),
    Mutant(
        "trees-repeated-feature",
        "Explanation.shapley",
        "trees/coalition_sums.py",
        "node = to_x if way[1, top, r] == 1 else to_z",
        "node = to_x",
        "a feature that occurs twice on a path may stand on both sides",
        (_INDICES,),
    ),
    Mutant(
        "trees-patterns",
        "Explanation.shapley",
        "trees/coalition_sums.py",
        "both = (both - 1) & of_z",
        "both = (both - 1) & everyone",
        "patterns that no baseline has",
        (_INDICES,),
    ),
    Mutant(
        "trees-total",
        "Explanation.residual",
        "trees/indices.py",
        "else -sum(1 / k for k in range(1, b + 1))",
        "else -sum(1 / k for k in range(1, b))",
        "the leaf of the baseline misses the last harmonic term",
        (_INDICES,),
    ),
    Mutant(
        "trees-threshold",
        "models.trees",
        "trees/decisions.py",
        "entry <= trees.threshold if trees.inclusive else entry < trees.threshold",
        "entry <= trees.threshold",
        "XGBoost sends equal numbers right",
        (_PREDICTION,),
    ),
    Mutant(
        "trees-unknown-category",
        "models.trees",
        "trees/xgboost_json.py",
        "sides[to_right] = 0",
        "sides[to_right] = -1",
        "XGBoost's listed categories go right",
        (_PREDICTION,),
    ),
)
