"""The library's kernels and laws against sums over all coalitions in rational arithmetic.

q(T) is proportional to pi(T) / (|T| C(n, |T|)), and q_i(T) = w(S) pi(S) / Z_i with S = T without i. Draws are compared
with these probabilities.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import comb, prod

import numpy as np

from gralis.arrays import Array, Masks
from gralis.errors import GralisError
from gralis.kernels import (
    Gaussian,
    Kernel,
    MaskKernel,
    SizeKernel,
    TableOfSizes,
    Uniform,
    UnsavedKernel,
    as_kernel,
    from_dict,
    register,
    stored,
    to_dict,
)
from gralis.laws import Law, ProductLaw, SizeLaw, TableLaw, all_masks, log_shapley
from gralis.paper.claim_row import ClaimRow, at_most, collect, equal, near
from gralis.paper.rational import Coalition, RationalKernel, shapley_weight, subsets, without

_N, _DRAWS, _RAYS = 4, 4000, 5
_P = (Fraction(1, 5), Fraction(1, 2), Fraction(3, 4), Fraction(9, 10))
_SIZES = (Fraction(1), Fraction(1, 2), Fraction(3), Fraction(1, 4))
_DISTANCE = np.array([0.3, 1.2, 0.1, 2.0])
#: A pair that is followed by every number of others; the last column fills up a short row.
_SETS = np.array([[0, 4, 4], [0, 1, 4], [2, 3, 1], [3, 0, 2], [1, 3, 4]])


def rows() -> list[ClaimRow]:
    return collect(_weights, _bound_laws, _product, _size, _table, _masks, _stored)


def _table_of(kernel: RationalKernel) -> Callable[[Masks], Array]:
    return lambda masks: np.array([float(kernel(_members(mask))) for mask in masks])


def _members(mask: Masks) -> Coalition:
    return frozenset(int(j) for j in np.flatnonzero(mask))


def _any(s: Coalition) -> Fraction:
    """A kernel that is neither a product nor a function of the size."""
    return Fraction(1 + sum((j + 1) ** 2 for j in s), 2 + 3 * (0 in s))


def _weights() -> list[ClaimRow]:
    """log pi(S), from the formula of each kernel."""
    masks = np.concatenate([np.zeros((1, _N), dtype=bool), all_masks(_N)[:-1]])
    square = np.array([sum(_DISTANCE[j] for j in _members(mask)) for mask in masks])
    relative, literal = (np.exp(-square / scale / (2 * 0.6**2)) for scale in (_DISTANCE.sum(), 1.0))
    sizes = SizeKernel(lambda size: 1 / (1 + size))
    by_mask = MaskKernel(_table_of(_any))

    def weight(kernel: Kernel) -> Array:
        return np.exp(kernel.log_weight(masks, _DISTANCE))

    return [
        near("Uniform: pi = 1", np.ones(len(masks)), lambda: weight(Uniform()), "kernels.Uniform"),
        near("Gaussian: exp(-d^2 / ||d||^2 / 2 sigma^2)", relative, lambda: weight(Gaussian(0.6)), "kernels.Gaussian"),
        near(
            "Gaussian, euclidean: exp(-d^2 / 2 sigma^2)",
            literal,
            lambda: weight(Gaussian(0.6, "euclidean")),
            "kernels.Gaussian",
        ),
        near("SizeKernel: fn(|S|)", 1 / (1 + masks.sum(1)), lambda: weight(sizes), "kernels.SizeKernel"),
        near("MaskKernel: fn of the masks", _table_of(_any)(masks), lambda: weight(by_mask), "kernels.MaskKernel"),
        near(
            "as_kernel: a function of masks becomes a kernel, a kernel stays",
            (*_table_of(_any)(masks), *relative),
            lambda: (*weight(as_kernel(_table_of(_any))), *weight(as_kernel(Gaussian(0.6)))),
            "kernels.as_kernel",
        ),
    ]


def _bound_laws() -> list[ClaimRow]:
    """The normaliser of the law that each kernel binds, by enumeration of its own weights."""
    kernels: dict[str, tuple[Kernel, Callable[[Coalition], float]]] = {
        "Uniform": (Uniform(), lambda s: 1.0),
        "Gaussian": (Gaussian(0.6), lambda s: float(np.exp(-sum(_DISTANCE[list(s)]) / _DISTANCE.sum() / 0.72))),
        "SizeKernel": (SizeKernel(lambda size: float(_SIZES[size])), lambda s: float(_SIZES[len(s)])),
        "MaskKernel": (MaskKernel(_table_of(_any)), lambda s: float(_any(s))),
    }
    claims = []
    for name, (kernel, pi) in kernels.items():
        z = [sum(float(shapley_weight(_N, len(s))) * pi(s) for s in without(_N, i)) for i in range(_N)]
        claims.append(near(f"{name}.bind: Z", z, lambda k=kernel: k.bind(_DISTANCE).normaliser, f"kernels.{name}"))
    return claims


def _product() -> list[ClaimRow]:
    def pi(s: Coalition) -> Fraction:
        return prod((_P[j] for j in s), start=Fraction(1))

    return _law_rows("ProductLaw", ProductLaw(np.log([float(p) for p in _P])), pi, pi)


def _size() -> list[ClaimRow]:
    law = SizeLaw(np.array([float(g) for g in _SIZES]))
    return _law_rows("SizeLaw", law, lambda s: _SIZES[len(s)], lambda t: _SIZES[len(t) - 1])


def _table() -> list[ClaimRow]:
    return _law_rows("TableLaw", TableLaw(_table_of(_any), _N), _any, None)


def _law_rows(name: str, law: Law, pi: RationalKernel, common: RationalKernel | None) -> list[ClaimRow]:
    """Everything that a law answers. q(T) is proportional to common(T) / (|T| C(n, |T|)); without it, to sum_i q_i."""
    masks = all_masks(_N)
    coalitions = [_members(mask) for mask in masks]
    weight = [{s: shapley_weight(_N, len(s)) * pi(s) for s in without(_N, i)} for i in range(_N)]
    z = [sum(w.values(), Fraction(0)) for w in weight]
    given = [[weight[i][t - {i}] / z[i] if i in t else Fraction(0) for i in range(_N)] for t in coalitions]
    if common is None:
        whole = [sum(row, Fraction(0)) for row in given]
    else:
        whole = [common(t) / (len(t) * comb(_N, len(t))) for t in coalitions]
    q = [value / sum(whole) for value in whole]
    pairs = list(zip(given, coalitions, strict=True))
    inclusion = [sum(p for p, t in zip(q, coalitions, strict=True) if i in t) for i in range(_N)]
    moments = [sum(g[i] for g, t in pairs if t.issuperset(j for j in a if j < _N)) for i, *a in _SETS.tolist()]
    by_size = [[sum(g[i] * Fraction(len(t), _N) ** k for g, t in pairs) for i in range(_N)] for k in range(3)]
    source = f"laws.{name}"
    return [
        near(f"{name}: normaliser Z_i", z, lambda: law.normaliser, source),
        near(f"{name}: q(i in T)", inclusion, lambda: law.inclusion, source),
        near(f"{name}: q(T | i in T)", given, lambda: np.exp(law.log_conditional(masks)), source),
        near(f"{name}: q(T)", q, lambda: np.exp(law.log_probability(masks)), source),
        near(f"{name}: P(A in T | i in T)", moments, lambda: law.subset_moments(_SETS), source),
        near(f"{name}: moments of |T| / n given i in T", by_size, law.size_moments, source),
        at_most(
            f"{name}: {_DRAWS} draws against q, largest standard score",
            4.5,
            lambda: _score(law.sample(np.random.default_rng(0), _DRAWS), np.array(q, dtype=np.float64)),
            source,
        ),
        *_proposals(name, law, source),
    ]


def _proposals(name: str, law: Law, source: str) -> list[ClaimRow]:
    """The probabilities r(T) that the proposal states sum to one, and over many small designs T occurs that often."""
    claims = []
    for least in (1, 2):
        rng = np.random.default_rng(1)
        designs = [law.propose(rng, _RAYS, least) for _ in range(_DRAWS // 2 // _RAYS)]
        drawn, log_rate = (np.concatenate(column) for column in zip(*designs, strict=True))
        codes = drawn @ (1 << np.arange(_N)) - 1
        stated = np.zeros(2**_N - 1)
        stated[codes] = np.exp(log_rate)
        claims += [
            near(f"{name}: r(T) of the proposal sums to one, |T| >= {least}", 1.0, stated.sum(), source),
            at_most(f"{name}: draws against r, |T| >= {least}, largest score", 4.5, _score(drawn, stated), source),
        ]
    return claims


def _score(drawn: Masks, probability: Array) -> float:
    """The largest |count - expected| / standard deviation; infinite if a coalition occurs that cannot."""
    counts = np.bincount(drawn @ (1 << np.arange(_N)) - 1, minlength=len(probability))
    spread = np.sqrt(len(drawn) * probability * (1 - probability))
    off = np.abs(counts - len(drawn) * probability)
    return float(np.divide(off, spread, out=np.where(off > 0, np.inf, 0.0), where=spread > 0).max())


def _masks() -> list[ClaimRow]:
    listed = [[int(j in t) for j in range(3)] for t in subsets(range(3)) if t]
    by_code = sorted(listed, key=lambda row: sum(bit << j for j, bit in enumerate(row)))
    sizes = np.arange(1, 8)
    return [
        equal("all_masks: the 7 coalitions of 3, by binary code", by_code, lambda: all_masks(3) * 1, "laws.all_masks"),
        near(
            "log_shapley: |S|! (n - |S| - 1)! / n!",
            [shapley_weight(7, int(t) - 1) for t in sizes],
            lambda: np.exp(log_shapley(7, sizes)),
            "laws.log_shapley",
        ),
    ]


@dataclass(frozen=True)
class _Sharper(Gaussian):
    """A kernel of a class that is registered."""


def _stored() -> list[ClaimRow]:
    """A kernel that went through JSON weighs coalitions as before."""
    masks = all_masks(_N)[:-1]
    kernels: dict[str, Kernel] = {
        "Uniform": Uniform(),
        "Gaussian": Gaussian(0.4, "euclidean"),
        "SizeKernel": SizeKernel(lambda size: 2.0**-size),
        "a registered class": _Sharper(0.3),
    }
    claims = []
    for name, kernel in kernels.items():
        public = {"SizeKernel": "kernels.TableOfSizes", "a registered class": "kernels.register"}.get(name, "")
        claims.append(
            near(
                f"{name} through JSON: its weights",
                np.exp(kernel.log_weight(masks, _DISTANCE)),
                lambda k=kernel: np.exp(_through_json(k).log_weight(masks, _DISTANCE)),
                ", ".join(filter(None, ("kernels.to_dict", "kernels.from_dict", public))),
            )
        )
    return [
        *claims,
        equal(
            "TableOfSizes: the weight of a size", 0.25, lambda: TableOfSizes((1, 0.5, 0.25))(2), "kernels.TableOfSizes"
        ),
        equal("UnsavedKernel: keeps its name", "mine", lambda: to_dict(UnsavedKernel("mine"), _N)["name"]),
        equal("UnsavedKernel: is refused in a sentence", True, _refused, "kernels.UnsavedKernel"),
    ]


def _through_json(kernel: Kernel) -> Kernel:
    register("verify-sharper", _Sharper)
    try:
        return from_dict(json.loads(json.dumps(to_dict(kernel, _N))))
    finally:
        stored._REGISTERED.pop("verify-sharper", None)


def _refused() -> bool:
    try:
        UnsavedKernel("mine").bind(_DISTANCE)
    except GralisError as error:
        return "mine was Python code" in str(error)
    return False
