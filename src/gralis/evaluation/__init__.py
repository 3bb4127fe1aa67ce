"""The adapted model is evaluated here and nowhere else: points are built, batched, evaluated, checked and counted.

questions        which question a row belongs to         batching, memory  how many points at once
point_builder    points on rays, and back to features    calls             the only caller of the model
point_sequences  the points of one task, in order        evaluator         rays in, ledger rows out
cost             what was spent                          progress, clock   the bar and the time
function_probe   whether the model is a function         speed             time and memory of a few points
"""

from gralis.evaluation.cost import Cost
from gralis.evaluation.evaluator import Evaluator
from gralis.evaluation.questions import Questions

__all__ = ["Cost", "Evaluator", "Questions"]
