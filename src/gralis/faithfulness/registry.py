"""The metrics of one attribution by name: those of gralis, and those that other code registers."""

from __future__ import annotations

from collections.abc import Callable

from gralis.checks import function
from gralis.faithfulness.curves import deletion, insertion, road_gap, road_lerf, road_morf
from gralis.faithfulness.fidelity import completeness, infidelity
from gralis.faithfulness.overlap import iou, mass_inside, pointing_game
from gralis.faithfulness.repeats import stability
from gralis.faithfulness.sanity import model_randomisation
from gralis.faithfulness.score import Score
from gralis.faithfulness.sensitivity import max_sensitivity
from gralis.faithfulness.sparsity import entropy, gini, locality
from gralis.registry import Registry

__all__ = ["METRICS", "register"]

_BUILT_IN = (
    *(deletion, insertion, road_morf, road_lerf, road_gap, infidelity, completeness),
    *(gini, entropy, locality, max_sensitivity, stability, model_randomisation, pointing_game, iou, mass_inside),
)

#: Every metric of one attribution by name, in the order of the paper's table, then those that were registered.
METRICS: Registry[Callable[..., Score]] = Registry(
    "faithfulness.register", {metric.__name__: metric for metric in _BUILT_IN}
)


def register(name: str, metric: Callable[..., Score]) -> None:
    """Let `gralis bench` find a metric of your own.

    Parameters
    ----------
    name : str
        The name of the metric. It replaces a metric that was registered under it before; the names of the metrics of
        gralis itself are taken.
    metric : callable
        A function with the signature of `gralis.faithfulness.gini` that returns a `Score`. A metric with a keyword
        `annotation` gets the mask of the expert, a metric with a keyword `method` gets the method that made the
        attribution; other keywords need defaults.

    Examples
    --------
    A registration is one line, `gralis.faithfulness.register("top", top)`. Names of gralis itself are refused:

    >>> register("gini", entropy)
    Traceback (most recent call last):
        ...
    gralis.errors.GralisError: The 'name' parameter of faithfulness.register must be a string other than ...
    """
    METRICS[name] = function(metric, "metric", "faithfulness.register", "with the signature of a metric of gralis")
