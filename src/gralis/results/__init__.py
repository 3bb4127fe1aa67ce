"""The results that users receive: explanations, and what is derived from them.

result            what every result has: values, errors, intervals, and the way back to the shape of the input
explanation       phi of one prediction; certified, other_explainers and printed hold its methods by topic, and
                  evidence the fields that these share
explanations      several explanations from the same rays
attribution       one number per feature by another method
interactions      one number per coalition
sweep             phi over sigma, or over the number of nodes on a ray
difference        the difference of two explanations on the same rays
provenance        versions, hashes and options with which an explanation was made
replay            the comparison of an explanation with one that was computed again
both_answers      phi and Shapley values side by side; feature_table: both as the cells of a table
tables            plain-text tables
"""

from gralis.results.attribution import Attribution, LinearSurrogate
from gralis.results.explanation import Explanation
from gralis.results.explanations import Explanations
from gralis.results.interactions import Interactions
from gralis.results.sweep import Sweep

__all__ = ["Attribution", "Explanation", "Explanations", "Interactions", "LinearSurrogate", "Sweep"]
