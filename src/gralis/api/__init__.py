"""The functions that users call, such as `gralis.explain` and `gralis.cost`. Each checks its input and makes a run.

explain    one prediction
cost       what an explanation would cost
batch      several inputs on the same coalitions
compare    two models on the same rays
replay     a saved explanation computed again
signature  shows the options of `explain` in the signatures of functions that pass them on
"""

__all__: list[str] = []  # the functions have the names of their modules, so they are exported by `gralis` itself
