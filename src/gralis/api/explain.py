"""`explain`: from a model and an input to an explanation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack, overload

import torch

from gralis.api.tree_run import TreeRun, trees_behind
from gralis.errors import bad
from gralis.kernels import Gaussian, Kernel, as_kernel
from gralis.models.estimator_model import EstimatorModel
from gralis.options import DEFAULT_BUDGET, Choices, Options
from gralis.plans import Plan, as_plan
from gralis.problem import Problem
from gralis.results.explanation import Explanation
from gralis.results.explanations import Explanations
from gralis.run import Run
from gralis.targets import Target, Targets
from gralis.trees import why_unread

#: Only these adapt the default budget to the speed of the model. What many inputs cost must not depend on it.
_PACED = ("explain", "cost")

__all__ = ["about", "begin", "complete", "explain", "kernels_of", "prepare"]


@overload
def explain(  # type: ignore[overload-overlap]
    model: object, x: object, *, target: Targets, **options: Unpack[Choices]
) -> Explanations: ...
@overload
def explain(model: object, x: object, *, target: Target | str = None, **options: Unpack[Choices]) -> Explanation: ...
def explain(
    model: object,
    x: object,
    *,
    baseline: object = 0.0,
    target: Target | Targets | str = None,
    features: object = None,
    kernel: object = Gaussian(0.75),
    plan: str | Plan = "shared",
    budget: int | Literal["auto"] | None = "auto",
    tolerance: float | None = None,
    level: float = 0.95,
    quadrature: str | None = None,
    n_nodes: int | None = None,
    replicates: int | None = None,
    coalition_values: bool = True,
    layer: object = None,
    atol: float = 0.0,
    max_seconds: float | None = None,
    seed: int | None = 0,
    batch_size: int | Literal["auto"] = "auto",
    max_memory: int | None = None,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
    on_interrupt: Literal["raise", "return"] = "raise",
) -> Explanation | Explanations:
    """phi_i = E_q[ray_i(T) | i in T]: how much each feature contributes to F(x) - F(x'), with errors.

    x is the input and x' the baseline. T is a coalition of features, which move together from x' to x while the others
    stay at x'. ray_i(T) is the integral of the gradient of feature i along this line. The mean is over the coalitions
    with i, and the law q of the coalitions follows from the kernel.

    Parameters
    ----------
    model : torch.nn.Module, callable, estimator or Model
        The model F. A callable gets a batch of points (rows, *x.shape) and returns (rows,) or (rows, classes, ...). An
        estimator has `predict_proba`, `decision_function` or `predict`, as those of scikit-learn, xgboost, lightgbm and
        catboost do; the raw outputs of tree ensembles are explained in closed form, without sampling. `gralis.models`
        has adapters for NumPy, JAX, Keras and black boxes.
    x : tensor, array, or a tuple or dict of them; or one row of a table
        One input, without a batch axis. A batch axis of 1 is left out if the model shows that it is one: it reads x as
        a batch, and fails with one more axis. The table says so. For an estimator, a row: a data frame with one row, a
        series, a dict or an array. Texts, categories and missing values are fine.
    baseline : float, array, callable, str, recipe, sample or table, default=0.0
        The reference x'. A string names a recipe of `gralis.baselines`. `gralis.baselines.sample(X, n)` averages the
        explanation over several baselines. For a row of a table, a table: the explanation is averaged over its rows.
    target : int, tuple, callable, str, list of them, or "all", optional
        Which output to explain. An int selects one of several outputs, a tuple selects an entry of an output with
        several axes, a callable turns the outputs into one number per row, and None is for a model with one output.
        "predicted" is the class with the largest output at x, and other texts name a class of an estimator. A list or
        "all" explains several outputs on the same rays: each point needs one forward for all of them and one
        backward each, and the budget counts every backward.
    features : Features, array of int, "pixels", or a tuple or dict of them, optional
        Which coordinates of x are switched together as one feature. `gralis.features` has superpixels, patches,
        columns, tokens and more. If x has several arrays, a tuple or dict has one of these for each of them. By default
        images and volumes are cut into about 30 superpixels, or into patches if scikit-image is missing, and every
        coordinate of anything else is a feature; the table says if something was cut. "pixels" makes every coordinate
        of a picture a feature.
    kernel : Kernel, callable, or a list of kernels, default=Gaussian(0.75)
        The locality kernel. A list is useful only with so many features that the ledger keeps sums instead of rows:
        the values belong to the first kernel, and `with_kernel` can then switch to the others.
    plan : str or Plan, default="shared"
        Which rays to evaluate: "shared", "exhaustive", "permutation", "independent", "endpoint", "values", or a plan
        from `gralis.plans`. An estimator has no gradients, so there are no rays: in place of "shared" it gets "values",
        which gives Shapley values from predictions alone.
    budget : int, "auto" or None, default="auto"
        The largest number of gradients, including the pilot, all replicates and all baselines. Plans without
        gradients count forwards. "auto" takes 1024. If these would take more than a minute, the run stops as soon as
        every half-width is 5% of |F(x) - F(x')|, or after 60 seconds, and the result says how to go on. A plan without
        gradients takes all coalitions if they are at most 4096 and quick. "values" takes 65 536 forwards if these are
        quicker than the fit to 1024, and then fits nothing; see `plans.values`. None lets the plan take what it needs.
    tolerance : float, optional
        Stop as soon as every simultaneous half-width at `level` is at most max(atol, tolerance * |F(x) - F(x')|).
    level : float, default=0.95
        The confidence level of the half-widths that are compared with `tolerance`.
    quadrature : {"random", "midpoint", "riemann", "gauss-legendre", "fejer"}, optional
        The rule for the nodes on each ray. By default the plan chooses: midpoints in Algorithm 1, Gauss-Legendre nodes
        if all coalitions are evaluated and the model is smooth along the rays, and random nodes otherwise. Use "fejer"
        for `sweep_nodes`, because its rules contain smaller rules.
    n_nodes : int, optional
        The number of nodes on each ray. By default the plan chooses.
    replicates : int, optional
        The number of independent replicates from which errors are estimated. By default the plan chooses.
    coalition_values : bool, default=True
        Whether to evaluate v(T) = F(x_T) - F(x') too, with one forward per coalition. Shapley values, LIME,
        interactions and the split of the residual need it, and it lowers the error of phi.
    layer : torch.nn.Module or str, optional
        Explain from the output of this layer instead of the input. The features then divide the activation. A name
        that ends in ":input" means what goes into the module: attention heads before their projection, or the units of
        a dense layer. These are switched to their activations at the baseline, and the rest stays as it is at x.
    atol : float, default=0.0
        A half-width that is small enough whatever F(x) - F(x') is; see `tolerance`.
    max_seconds : float, optional
        Begin no further batch after this time and return the result so far. A time in which not even two replicates
        can be evaluated raises an error that says which time would suffice.
    seed : int or None, default=0
        The seed of every random choice. None draws a fresh seed, which the result stores.
    batch_size : int or "auto", default="auto"
        The number of points in one call of the model. "auto" measures which size is fastest.
    max_memory : int, optional
        The number of bytes that one batch may hold at once. Batches are weighed from the first point on. A limit below
        what one point takes raises an error that says how much that is. By default half of the free memory.
    device : torch.device or str, optional
        Where a torch model runs. By default where its parameters are.
    dtype : torch.dtype, optional
        The type in which points are evaluated. By default that of the model, or of x.
    progress : bool or callable, optional
        True shows a progress bar, False none. None shows one after two seconds, on a terminal or in a notebook. A
        callable gets (gradients done, gradients in all) after every batch, or forwards if the plan has no gradients.
    on_interrupt : {"raise", "return"}, default="raise"
        What Ctrl-C does: raise KeyboardInterrupt, or return the result so far.

    Returns
    -------
    Explanation or Explanations
        `Explanations` if `target` is a list or "all".

    Raises
    ------
    GralisError
        If an argument is not allowed; the message says what is allowed.
    ModelError
        If the model fails or returns something that cannot be explained.
    BudgetError
        If the budget is too small for the plan; the message names the least that works.

    Examples
    --------
    >>> from gralis import Uniform
    >>> f = lambda z: 2 * z[:, 0] + 3 * z[:, 1] + z[:, 2] + z[:, 1] * (4 * z[:, 0] + 2 * z[:, 2]) - z[:, 0] * z[:, 2]
    >>> explanation = explain(f, torch.ones(3, dtype=torch.float64), kernel=Uniform())
    >>> explanation.values.round(12).tolist()
    [2.75, 4.5, 1.25]
    """
    options = dict(locals())
    del options["model"], options["x"]
    several = isinstance(target, list) or (isinstance(target, str) and target == "all")
    run = exactly(model, x, options)
    if run is not None:
        explanations = run.results()
        return Explanations(explanations, run.labels) if several else explanations[0]
    sampled = prepare(model, x, options, "explain")
    if several:
        return Explanations(sampled.results(), sampled.problem.target_labels)
    return sampled.result()


def exactly(model: object, x: object, options: Mapping[str, Any]) -> TreeRun | None:
    """The run that sums up a tree ensemble in closed form; None if the model or the options need sampling."""
    trees = trees_behind(model, options)
    if trees is None:
        return None
    return TreeRun(trees, x, kernels_of(options["kernel"]), as_plan(options["plan"]), options)


def prepare(model: object, x: object, options: Mapping[str, Any], owner: str) -> Run:
    """The run that `explain` would make with these options. They are checked, and the run has not begun."""
    completed = complete(options, owner)
    return begin([Problem.build(model, x, target=completed["target"], **about(completed))], completed)


def complete(options: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """The options, completed with the defaults of `explain`. An unknown name raises an error."""
    defaults: dict[str, Any] = dict(explain.__kwdefaults__ or {})
    unknown = set(options) - set(defaults)
    if unknown:
        raise bad(sorted(unknown)[0], owner, f"one of {', '.join(sorted(defaults))}", "an unknown name")
    completed = {**defaults, **options}
    if isinstance(completed["budget"], str) and completed["budget"] == "auto" and owner not in _PACED:
        completed["budget"] = DEFAULT_BUDGET
    return completed


def about(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that belong to the problem."""
    return {**{name: options[name] for name in ("baseline", "features", "layer", "device", "dtype")}, "cut": True}


def begin(problems: Sequence[Problem], options: Mapping[str, Any]) -> Run:
    """A run on these problems. All other options are checked."""
    plan = as_plan(options["plan"])
    if plan.name == "shared" and (instead := _without_gradients(problems[0])) is not None:
        plan, sentence = as_plan(instead[0]), instead[1]
        problems = [replace(p, choices=tuple(dict.fromkeys((*p.choices, sentence)))) for p in problems]
    return Run(problems, kernels_of(options["kernel"]), plan, Options.checked(options), options["progress"])


def kernels_of(kernel: Any) -> tuple[Kernel, ...]:
    """The kernels that the user named, at least one."""
    kernels = tuple(as_kernel(k) for k in (kernel if isinstance(kernel, list | tuple) else [kernel]))
    if not kernels:
        raise bad("kernel", "explain", "a kernel, or a list of at least one", "an empty list")
    return kernels


def _without_gradients(problem: Problem) -> tuple[str, str] | None:
    """The plan that takes the place of "shared" for an estimator or an ONNX file without gradients, and a sentence.

    None if the plan stays. A function that the user declares a black box says itself that it has no rays.
    """
    if reason := getattr(problem.model, "why_no_gradient", None):
        sentence = f"the model has no gradient here ({reason}), so plan='endpoint' takes the place of plan='shared'"
        return "endpoint", sentence
    if not isinstance(problem.model, EstimatorModel):
        return None
    sentence = "the model has no gradient, so plan='values' takes the place of plan='shared': Shapley values"
    unread = why_unread(problem.model.estimator)
    return "values", f"{sentence}. The trees are not summed up exactly: {unread}" if unread else sentence
