"""The two triples over predecessor coalitions S: the differences of SHAP and the rays of GRALIS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import comb
from typing import cast

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, Masks
from gralis.canonical.triple import Index, Triple
from gralis.errors import GralisError, bad
from gralis.evaluation.evaluator import Evaluator
from gralis.kernels import Gaussian, as_kernel
from gralis.laws import all_masks
from gralis.problem import Problem
from gralis.rays import RayRequest
from gralis.rays.quadrature import Rule, rule
from gralis.targets import Target

__all__ = ["fixed_rule", "gralis", "members", "problem_of", "shap"]

_MOST_FEATURES = 12


def shap(model: object, x: object, *, baseline: object = 0.0, target: Target = None, features: object = None) -> Triple:
    """phi_i = sum over S without i of |S|! (n - |S| - 1)! / n! (F(x_{S u i}) - F(x_S)).

    Parameters
    ----------
    model : object
        The model F, in any form that `gralis.explain` takes.
    x : object
        One input, without a batch axis.
    baseline : object, default=0.0
        The baseline x', in any form that `gralis.explain` takes, but a single one.
    target : int, tuple of int, callable or None, default=None
        Which number of the model's output is F.
    features : Features, array of int or None, default=None
        The features, at most 12 of them.

    Returns
    -------
    Triple

    Examples
    --------
    >>> triple = shap(lambda z: z[:, 0] * z[:, 1] + z[:, 1], np.array([2.0, 3.0]))
    >>> triple.attribution().tolist(), triple.index[0]
    ([3.0, 6.0], ((), (1,)))
    """
    with problem_of(model, x, baseline, target, features) as (problem, evaluator):
        n = problem.n_features
        evaluator.endpoints()
        value = np.append(0.0, evaluator.values(all_masks(n), np.zeros(2**n - 1, dtype=np.int64))[0])
    codes = [_without(n, i) for i in range(n)]
    marginals = np.stack([value[without | 1 << i] - value[without] for i, without in enumerate(codes)])
    weights = np.stack([_shapley_weights(n, without) for without in codes])
    return Triple(tuple(tuple(map(members, without)) for without in codes), weights, marginals, "SHAP")


def gralis(
    model: object,
    x: object,
    *,
    baseline: object = 0.0,
    target: Target = None,
    features: object = None,
    kernel: object = Gaussian(0.75),
    quadrature: str = "gauss-legendre",
    n_nodes: int = 16,
) -> Triple:
    """phi_i = sum over S without i, and nodes a, of w(S) pi(S) / Z_i w(a) (x_i - x'_i) dF/dx_i at x~(S u i, a).

    Parameters
    ----------
    model : object
        The model F, in any form that `gralis.explain` takes.
    x : object
        One input, without a batch axis.
    baseline : object, default=0.0
        The baseline x', in any form that `gralis.explain` takes, but a single one.
    target : int, tuple of int, callable or None, default=None
        Which number of the model's output is F.
    features : Features, array of int or None, default=None
        The features, at most 12 of them.
    kernel : Kernel, default=Gaussian(0.75)
        How coalitions are weighted.
    quadrature : {"gauss-legendre", "midpoint", "riemann"}, default="gauss-legendre"
        The rule for the nodes on each ray.
    n_nodes : int, default=16
        The number of nodes on each ray.

    Returns
    -------
    Triple

    Examples
    --------
    >>> from gralis import Uniform
    >>> gralis(lambda z: z[:, 0] * z[:, 1], np.array([2.0, 3.0]), kernel=Uniform()).attribution().round(12).tolist()
    [1.5, 1.5]
    """
    nodes = fixed_rule(quadrature, n_nodes)
    with problem_of(model, x, baseline, target, features) as (problem, evaluator):
        n = problem.n_features
        log_weight = as_kernel(kernel).log_weight(_with_empty(n), problem.squared_distance[0])
        request = RayRequest.of(all_masks(n), np.zeros(2**n - 1), 0, *nodes.on_rays(np.random.default_rng(0), 2**n - 1))
        (ledger,) = evaluator.evaluate(request, values=False)
    gradient = ledger.gradient.reshape(2**n - 1, nodes.n_nodes, n)  # rays in the order of their codes 1, 2, ...
    index: list[Index] = []
    weights, marginals = np.empty((2, n, 2 ** (n - 1) * nodes.n_nodes))
    for i in range(n):
        without = _without(n, i)
        share = _shapley_weights(n, without) * np.exp(log_weight[without])
        weights[i] = np.outer(share / share.sum(), nodes.weights).ravel()
        marginals[i] = gradient[(without | 1 << i) - 1, :, i].ravel()
        index.append(tuple((members(code), float(a)) for code in without for a in nodes.nodes))
    return Triple(tuple(index), weights, marginals, "GRALIS")


def members(code: int) -> tuple[int, ...]:
    """The coalition of a binary code.

    >>> members(5)
    (0, 2)
    """
    return tuple(j for j in range(int(code).bit_length()) if code >> j & 1)


@contextmanager
def problem_of(
    model: object, x: object, baseline: object, target: Target, features: object, most: float = _MOST_FEATURES
) -> Iterator[tuple[Problem, Evaluator]]:
    """One input against one baseline, with few enough features to write down every coalition."""
    problem = Problem.build(model, x, baseline=baseline, target=target, features=features)
    if problem.baselines.n_baselines != 1:
        raise bad("baseline", "a canonical triple", "a single one", f"{problem.baselines.n_baselines} of them")
    if problem.n_features > most:
        raise GralisError(
            f"A triple over coalitions writes down all of them, up to n_features = {most}; here n_features = "
            f"{problem.n_features}. Join coordinates with features=..., or use explain."
        )
    evaluator = Evaluator([problem])
    with evaluator.session():
        yield problem, evaluator


def fixed_rule(quadrature: str, n_nodes: int) -> Rule:
    """A quadrature rule with fixed nodes; with random nodes the index set would not be the same for every F."""
    fixed = rule(quadrature, n_nodes)
    if not isinstance(fixed, Rule):
        raise bad("quadrature", "a canonical triple", "'midpoint', 'riemann' or 'gauss-legendre'", repr(quadrature))
    return fixed


def _without(n: int, i: int) -> NDArray[np.int64]:
    """The codes of all coalitions without feature i."""
    codes = np.arange(2**n, dtype=np.int64)
    return np.asarray(codes[codes >> i & 1 == 0])


def _with_empty(n: int) -> Masks:
    """All coalitions in the order of their codes, the empty coalition first."""
    return np.concatenate([np.zeros((1, n), dtype=bool), all_masks(n)])


def _shapley_weights(n: int, codes: NDArray[np.int64]) -> Array:
    """|S|! (n - |S| - 1)! / n! = 1 / (n C(n - 1, |S|))."""
    return np.array([1 / (n * comb(n - 1, int(code).bit_count())) for code in cast("list[int]", codes.tolist())])
