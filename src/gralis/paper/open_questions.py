"""Questions that the paper leaves open and that the coalition-first view answers.

For every F, uniform kernel:              sum_i phi_i = sum_t vbar_t / t = sum_T m_v(T) / |T|
For every F, pi depends on the size only: sum_i phi_i = sum_t pi(t - 1) vbar_t / t / mean(pi)
Product kernels:                          phi_i = E_q[ray_i(T) | i in T],  q(T) proportional to pi(T) / (|T| C(n, |T|))

In the normalised endpoint form, for any n, the kernels that keep the sum for every game are exactly

    pi(S) = P(S) / (w(S) r(F without S)),   r > 0,   and then Z_i = 1 / r_i.

P(S) is the probability that S occurs as an initial set when features are drawn one by one in proportion to r. The
reason is a balance: the weight w(S) pi(S) / Z_i flows from S to S u i, and v(S) cancels only if the inflow of S equals
its outflow. The coefficient of v(empty) is right only if sum_i 1 / Z_i = n / pi(empty). A kernel that is largest at the
empty set and not constant exceeds that value, so no Gaussian kernel keeps the sum, for any n.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb, prod

import numpy as np
import torch

from gralis.api.explain import explain
from gralis.arrays import Array
from gralis.kernels import Gaussian, Uniform
from gralis.laws import all_masks
from gralis.paper import appendix_e, rational, theorems
from gralis.paper.claim_row import ClaimRow, arithmetic, collect, equal, exceeds, vanishes
from gralis.paper.efficient_kernels import efficient
from gralis.paper.networks import network, point
from gralis.paper.rational import Coalition, Polynomial, largest, shapley_weight, subsets, without

_N, _TRIALS = 4, 40
_X, _BASE = theorems.X, theorems.BASE


def rows() -> list[ClaimRow]:
    return collect(_any_function, _relu, _split, _common_law, _efficient_kernels, _hoeffding)


@arithmetic
def _any_function() -> list[ClaimRow]:
    by_size, by_moebius, sized = [], [], []
    pi = [Fraction(1), Fraction(2, 3), Fraction(1, 5), Fraction(7, 2)]
    for seed in range(4):
        F = theorems.curved(seed)
        v = F.game(_X, _BASE)
        means = [sum(v[t] for t in v if len(t) == size) / comb(_N, size) for size in range(1, _N + 1)]
        phi = sum(rational.gralis(F, _X, _BASE))
        by_size.append(phi - sum(mean / size for size, mean in enumerate(means, 1)))
        by_moebius.append(phi - sum(m / len(t) for t, m in rational.moebius(v).items() if t))
        weighted = sum(pi[size - 1] * mean / size for size, mean in enumerate(means, 1)) * _N / sum(pi)
        sized.append(sum(rational.gralis(F, _X, _BASE, lambda s: pi[len(s)])) - weighted)
    monomial, kernel = Polynomial.multilinear(_N, {(0, 1, 3): 1}), _product((1, 2, 3, 4))
    joint = sum(rational.gralis(monomial, (Fraction(1),) * _N, (Fraction(0),) * _N, kernel))
    last = sum(
        rational.gralis(monomial, (Fraction(1),) * _N, (Fraction(0),) * _N, lambda s: Fraction(len(s) == _N - 1))
    )
    source = "Rem. mobius-scope"
    return [
        equal("curved F: sum of phi = sum of vbar_t / t", [0] * 4, by_size, source),
        equal("curved F: sum of phi = sum of m_v(T) / |T|", [0] * 4, by_moebius, source),
        equal("curved F, any pi(|S|): sum of phi = sum of pi vbar_t / t / mean pi", [0] * 4, sized, "Sec. c4"),
        exceeds("joint path, positive kernel: what one product loses of 1", 0.0, float(1 - joint), "Sec. c4"),
        equal("joint path: all weight on F without i (IG) loses nothing", 1, last, "Sec. c4"),
    ]


@arithmetic
def _relu() -> list[ClaimRow]:
    """The rays of a ReLU network with one hidden layer are known exactly: each unit is active on one interval of a."""
    n, rng = 5, np.random.default_rng(0)
    first, shift, last = rng.standard_normal((8, n)), rng.standard_normal(8), rng.standard_normal(8)
    x, masks = rng.uniform(0.5, 2, n), np.concatenate([np.zeros((1, n), dtype=bool), all_masks(n)])
    values = np.maximum(masks * x @ first.T + shift, 0) @ last
    rays = np.stack([_relu_ray(first, shift, last, x * mask) for mask in masks])
    size = masks.sum(1)
    weight = np.array([0.0, *(1 / (t * comb(n, t)) for t in range(1, n + 1))])[size]
    phi = np.array(
        [sum(rays[row, i] / (n * comb(n - 1, size[row] - 1)) for row in np.flatnonzero(masks[:, i])) for i in range(n)]
    )
    return [
        vanishes(
            "ReLU network: sum of a ray = v(T), largest difference",
            float(np.abs(rays.sum(1) - values + values[0]).max()),
            "Lemma A",
        ),
        vanishes(
            "ReLU network: sum of phi = sum of vbar_t / t",
            float(abs(phi.sum() - weight @ (values - values[0]))),
            "Rem. mobius-scope",
        ),
    ]


def _relu_ray(first: Array, shift: Array, last: Array, step: Array) -> Array:
    """step_i sum_j w_j A_ji |{a in [0, 1]: unit j is active at a step}|."""
    slope = first @ step
    with np.errstate(divide="ignore", invalid="ignore"):
        cross = np.clip(-shift / slope, 0, 1)
    on = np.where(slope > 0, 1 - cross, np.where(slope < 0, cross, (shift > 0).astype(float)))
    return np.asarray(step * ((last * on) @ first))


def _split() -> list[ClaimRow]:
    n = 6
    f, x = network(7, n), point(7, n)
    explanation = explain(f, x, plan="exhaustive", budget=None, kernel=Gaussian(0.3))
    masks = all_masks(n)
    v = (f(torch.from_numpy(masks * x)) - f(torch.zeros(1, n, dtype=torch.float64))).numpy()
    size = masks.sum(1)
    forwards = sum(v[size == t].mean() / t for t in range(1, n + 1))
    r = explanation.residual
    kernel_part = explanation.with_kernel(Uniform()).values.sum() - explanation.values.sum()
    sampled = explain(f, x, budget=160, kernel=Gaussian(0.3), seed=1).residual
    total = sampled.path.value + sampled.numerical.value + sampled.kernel.value
    rays_only = explain(f, x, plan="exhaustive", budget=None, coalition_values=False).interactions(2)
    pairs = explanation.interactions(2)
    reuse = max(abs(rays_only[pair] - pairs[pair]) for pair in pairs)
    source = "Sec. c4"
    return [
        vanishes("R_path = v(F) - sum of vbar_t / t, forwards only", abs(r.path.value - (v[-1] - forwards)), source),
        vanishes("R_kernel = sum of phi(uniform) - sum of phi", abs(r.kernel.value - kernel_part), source),
        vanishes("interactions from the rows of rays alone, no forward", reuse, "Prop. one-pass (ii)"),
        vanishes("R_num of accurate rays", abs(r.numerical.value), source),
        vanishes("R_obs = R_path + R_num + R_kernel, sampled rays", abs(sampled.observed.value - total), source),
        exceeds(
            "R_path and R_kernel are both there: the smaller one",
            1e-3,
            min(abs(r.path.value), abs(r.kernel.value)),
            source,
        ),
    ]


def _product(numbers: tuple[int, ...]) -> rational.RationalKernel:
    """pi(S) = product of p_j over j in S, with p_j = k_j / 5."""
    return lambda s: prod((Fraction(numbers[j], 5) for j in s), start=Fraction(1))


@arithmetic
def _common_law() -> list[ClaimRow]:
    numbers = (1, 3, 4, 2)
    pi = _product(numbers)
    q = {t: pi(t) / (len(t) * comb(_N, len(t))) for t in subsets(range(_N)) if t}
    conditional, normaliser = [], []
    for i in range(_N):
        weight = {s: shapley_weight(_N, len(s)) * pi(s) for s in without(_N, i)}
        z, inside = sum(weight.values()), sum(q[t] for t in q if i in t)
        conditional += [q[s | {i}] / inside - w / z for s, w in weight.items()]
        # prod over j of (1 - u + u p_j) as a polynomial in u, integrated over [0, 1]
        factors = [Polynomial({(0,): Fraction(1), (1,): Fraction(numbers[j], 5) - 1}) for j in range(_N) if j != i]
        whole = factors[0].times(factors[1]).times(factors[2])
        normaliser.append(z - whole.integral((Fraction(0),), (Fraction(1),)))
    F = theorems.curved(1)
    v = F.game(_X, _BASE)
    short = max(abs(float(sum(F.ray(_X, _BASE, t)) - v[frozenset(range(_N))])) for t in q)
    source = "Rem. componentwise"
    return [
        equal("one law q: q(T | i in T) = w(S) pi(S) / Z_i, all i and T", 0, largest(conditional), source),
        equal("Z_i = integral of prod (1 - u + u p_j) du", [0] * _N, normaliser, source),
        exceeds("the constraint still fails: a row sums to v(T), not to v(F)", 1e-3, short, "Def. canonical"),
    ]


def drawn_one_by_one(r: tuple[Fraction, ...]) -> dict[Coalition, Fraction]:
    """pi(S) = P(S) / (w(S) r(F without S)), with P(S) the probability of S when drawing in proportion to r."""
    n, everyone = len(r), frozenset(range(len(r)))
    left = {s: sum((r[j] for j in everyone - s), Fraction(0)) for s in subsets(everyone)}
    met: dict[Coalition, Fraction] = {frozenset(): Fraction(1)}
    for s in subsets(everyone)[1:]:
        met[s] = sum((met[s - {i}] * r[i] / left[s - {i}] for i in s), Fraction(0))
    return {s: met[s] / (shapley_weight(n, len(s)) * left[s]) if left[s] else Fraction(1) for s in met}


@arithmetic
def _efficient_kernels() -> list[ClaimRow]:
    rng = np.random.default_rng(0)
    kept, disturbed, inverse, excess = [], [], [], []
    for trial in range(_TRIALS):
        n = 2 + trial % 4
        r = tuple(Fraction(int(k), 3) for k in rng.integers(1, 9, n))
        kernel = drawn_one_by_one(r)
        kept.append(efficient(n, kernel, normalised=True))
        inverse += [sum(shapley_weight(n, len(s)) * kernel[s] for s in without(n, i)) - 1 / r[i] for i in range(n)]
        chosen = subsets(range(n))[int(rng.integers(2**n - 1))]
        disturbed.append(efficient(n, {**kernel, chosen: kernel[chosen] * Fraction(11, 10)}, normalised=True))
        pi = _product(tuple(int(k) for k in rng.integers(1, 5, n)))
        z = [sum(shapley_weight(n, len(s)) * pi(s) for s in without(n, i)) for i in range(n)]
        excess.append(float(sum(1 / z_i for z_i in z) - n))
    source = "Rem. normalized-incompatibility"
    return [
        equal("drawn in proportion to r: normalised sum kept, n = 2 .. 5", _TRIALS, sum(kept), source),
        equal("there Z_i = 1 / r_i, largest difference", 0, largest(inverse), source),
        equal("one weight changed by a tenth: kept", 0, sum(disturbed), source),
        exceeds("Gaussian, n = 2 .. 5: sum of 1 / Z_i - n, which must be 0", 0.0, min(excess), source),
    ]


@arithmetic
def _hoeffding() -> list[ClaimRow]:
    """Inputs and baselines are uniform on {0, 1, 2}^3, a product law with finite support, so every mean is a sum."""
    n, F = 3, theorems.curved(2, 3)
    grid = [tuple(map(Fraction, z)) for z in product(range(3), repeat=n)]
    at = {z: F(z) for z in grid}
    sets = subsets(range(n))
    # m_vbar(T)(x): the Moebius coefficient of the game between x and x', averaged over the baselines x'
    terms: dict[Coalition, dict[tuple[Fraction, ...], Fraction]] = {t: {} for t in sets}
    for x in grid:
        games = ({t: at[tuple(x[j] if j in t else base[j] for j in range(n))] for t in sets} for base in grid)
        coefficients = [rational.moebius(game) for game in games]
        for t in sets:
            terms[t][x] = sum((m[t] for m in coefficients), Fraction(0)) / len(grid)
    mean = sum(at.values()) / len(grid)
    whole = [sum((terms[t][x] for t in sets), -at[x]) for x in grid]
    zero = []
    for t, x in product(sets, grid):
        for i in t:
            moved = [terms[t][(*x[:i], Fraction(z), *x[i + 1 :])] for z in range(3)]
            zero.append(sum(moved, Fraction(0)))
    variance = sum(value**2 for value in at.values()) / len(grid) - mean**2
    parts = sum(sum(value**2 for value in terms[t].values()) / len(grid) for t in sets if t)
    toy, ones, centre = appendix_e.hoeffding(appendix_e.TOY), appendix_e.X, (Fraction(1, 2),) * 3
    phi = rational.gralis(appendix_e.TOY, ones, centre)
    gap = [phi[i] - toy[frozenset({i})](ones) for i in range(3)]
    stays = [sum(f(ones) / len(t) ** 2 for t, f in toy.items() if i in t and len(t) > 1) for i in range(3)]
    source = "Prop. anova-general"
    return [
        equal("curved F: averaged Moebius terms have mean 0 in each of their features", 0, largest(zero), source),
        equal("they sum to F at every x", 0, largest(whole), source),
        equal("their variances sum to Var F", variance, parts, source),
        equal("sigma to infinity: phi_i - f_i stays sum of f_T / |T|^2", stays, gap, "Appendix E, scope"),
    ]
