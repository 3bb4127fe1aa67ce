"""What the time allows: the default budget of a slow model, and a sentence for limits that are too short.

By default a run takes 1 024 gradients. If these would take longer than a minute, it stops as soon as every half-width
is 5% of |F(x) - F(x')|, or after a minute. A plan of forwards evaluates all coalitions if they are at most 4 096 and
quick, because the fit to fewer of them would take longer. What was decided is stored with the result, so that a replay
does the same.
"""

from __future__ import annotations

from dataclasses import replace

from gralis.errors import GralisError, bad
from gralis.options import DEFAULT_BUDGET, Options
from gralis.run.work import Work

__all__ = [
    "AUTOMATIC_SECONDS",
    "AUTOMATIC_TOLERANCE",
    "BACKWARD",
    "DEFAULT_BUDGET",
    "FOREVER",
    "enumerated",
    "paced",
    "too_short",
    "unlimited",
]

AUTOMATIC_SECONDS = 60.0
FOREVER = 1e9  # seconds
AUTOMATIC_TOLERANCE = 0.05
_MOST_ENUMERATED = 4 * DEFAULT_BUDGET  # forwards
#: All coalitions may take this long, measured by single calls. In batches they usually take a small part of it.
_SECONDS_ENUMERATED = 20.0
BACKWARD = 2.0  # forwards that a backward usually takes
_PER_FEATURE, _BESIDE = 8, 64  # gradients that a slow model gets at least


def enumerated(options: Options, forward: float, n_moving: int, n_baselines: int) -> Options:
    """The options of a run without gradients with the default budget: all coalitions if they are few and quick.

    Parameters
    ----------
    options : Options
        The options. They stay as they are unless the budget is the default and the time is not limited.
    forward : float
        The seconds of one forward.
    n_moving, n_baselines : int
        The numbers of features that differ from a baseline, and of baselines.
    """
    if not options.automatic or options.max_seconds is not None or n_moving > _MOST_ENUMERATED.bit_length():
        return options
    n_forwards = (2**n_moving - 2) * n_baselines + 1 + n_baselines  # F(x) and every F(x') among them
    if not DEFAULT_BUDGET < n_forwards <= _MOST_ENUMERATED or forward * n_forwards > _SECONDS_ENUMERATED:
        return options
    return replace(options, budget=n_forwards)


def paced(options: Options, forward: float, n_features: int, n_targets: int, counts_forwards: bool) -> Options:
    """The options of a run with the default budget, given the seconds of one forward.

    Parameters
    ----------
    options : Options
        The options. They stay as they are unless the budget is the default.
    forward : float
        The seconds of one forward, measured after the first batch.
    n_features, n_targets : int
        The numbers of features and of targets.
    counts_forwards : bool
        Whether the plan has no gradients.
    """
    if not options.automatic:
        return options
    # A point has a forward and a backward for each target, and the value of its coalition another forward.
    of_one = forward if counts_forwards else forward * (2 + BACKWARD * n_targets) / n_targets
    if not of_one * DEFAULT_BUDGET > AUTOMATIC_SECONDS:
        return options
    least = (_PER_FEATURE * n_features + _BESIDE) * (1 if counts_forwards else n_targets)
    affordable = max(int(AUTOMATIC_SECONDS / of_one), least)
    tolerance = AUTOMATIC_TOLERANCE if options.tolerance is None else options.tolerance
    seconds = AUTOMATIC_SECONDS if options.max_seconds is None else options.max_seconds
    budget = min(DEFAULT_BUDGET, affordable)
    return replace(options, budget=budget, tolerance=tolerance, max_seconds=seconds, paced=True)


def unlimited(options: Options) -> Options:
    """The options with which a run goes on: the user asks for a budget now, so the limits of the default fall.

    The time stays limited in name, because a run whose time is limited draws smaller replicates.
    """
    if not options.paced:
        return options
    return replace(options, tolerance=None, max_seconds=FOREVER, paced=False)


def too_short(max_seconds: float, least: Work, forward: float, point: float) -> GralisError:
    """The error for a time in which not even two replicates could be evaluated; it says which time would suffice."""
    seconds = least.seconds(forward, point)
    work = f"{least.n_points} gradients and {least.n_forwards} forwards"
    allowed = f"at least about {seconds:.2g} for this model, whose least result takes {work}"
    return bad("max_seconds", "explain", allowed, max_seconds, "Give more time, fewer features or a smaller budget.")
