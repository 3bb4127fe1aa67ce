"""One run: it settles the plan, evaluates the replicates together or one by one, and makes the explanations.

settings     the problems, the plan and the options, and the task that follows from them
expected     what a run is expected to take
run          from problems and options to explanations
collectors   what is kept of the rows: all of them, or their sums
stage        a settled plan in execution
work         how many rays, gradients and forwards a settled plan takes
pace         what the time allows: the default budget of slow models, and limits that are too short
"""

from gralis.run.pace import FOREVER
from gralis.run.run import Run

__all__ = ["FOREVER", "Run"]
