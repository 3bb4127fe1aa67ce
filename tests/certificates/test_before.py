"""The certificate before the run: the bounds by independent arithmetic, their inverse, and what they cover."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gralis
from gralis import Gaussian, GralisError, SizeKernel, Uniform, explain, plans
from gralis.certificates import (
    Smoothness,
    aggregate_bound,
    before,
    bernstein_bound,
    calibrate,
    empirical_bernstein_bound,
    numerator_bound,
    quadrature_bound,
    ratio_bound,
)

X = np.array([1.0, 2.0, -1.0])
SLOPES = np.array([5.0, 2.0, 2.0])  # sup of |x_i dF/dx_i| of `cubic` over the box between 0 and X


def cubic(z: torch.Tensor) -> torch.Tensor:
    """dF/dz = (3 z_1^2 + z_2, z_1, 2); the largest third derivative is 6."""
    return z[:, 0] ** 3 + z[:, 0] * z[:, 1] + 2 * z[:, 2]


def harmonic(n: int) -> Fraction:
    return sum((Fraction(1, j) for j in range(1, n + 1)), Fraction(0))


# ---- the bounds, in rational arithmetic


def exactly(value: object, fraction: Fraction) -> bool:
    return float(np.asarray(value)) == pytest.approx(float(fraction), rel=1e-14)


def test_the_papers_bounds_in_rational_arithmetic() -> None:
    """m delta and m delta / 2 are squares of rationals, so nothing has to be rounded."""
    b_n, b_z, pi_min, e_quad = Fraction(7, 3), Fraction(4, 5), Fraction(2, 7), Fraction(1, 11)
    m, delta = 4 * 625, Fraction(2, 25)  # sqrt(m delta / 2) = 10
    root = Fraction(10)
    ratio = (b_n / root + e_quad) / pi_min + b_n * b_z / (pi_min**2 * root)
    floats = [float(number) for number in (b_n, b_z, pi_min, e_quad)]
    assert exactly(ratio_bound(*floats, m, float(delta)), ratio)
    assert exactly(numerator_bound(floats[0], floats[3], m, float(delta / 2)), b_n / root + e_quad)
    several = np.array([floats[0], 2 * floats[0]])
    twice = (2 * b_n / root + e_quad) / pi_min + 2 * b_n * b_z / (pi_min**2 * root)
    assert exactly(aggregate_bound(several, *floats[1:], m, float(2 * delta)), ratio + twice)


def test_the_quadrature_bound_in_rational_arithmetic() -> None:
    distance = [Fraction(1), Fraction(2), Fraction(1, 2)]
    total, k = sum(distance), 7
    array = np.array([float(d) for d in distance])
    middle = quadrature_bound("midpoint", k, array, Smoothness(third=6.0))
    right = quadrature_bound("riemann", k, array, Smoothness(second=5.0))
    for i, d in enumerate(distance):
        assert exactly(middle[i], d * total**2 * 6 / (24 * k**2))
        assert exactly(right[i], d * total * 5 / (2 * k))
    assert not quadrature_bound("random", k, array, Smoothness()).any()
    assert quadrature_bound("midpoint", k, array, Smoothness(second=5.0)) is None


@given(
    v=st.floats(0, 100),
    r=st.floats(0.1, 100),
    m=st.integers(2, 10**6),
    power=st.integers(-6, -1),
    more=st.integers(1, 99),
)
def test_bernsteins_bounds_by_the_letter_and_falling(v: float, r: float, m: int, power: int, more: int) -> None:
    delta = 2.0**power
    known = math.sqrt(2 * v * math.log(2 / delta) / m) + (2 * r) / (3 * m) * math.log(2 / delta)
    seen = math.sqrt(2 * v * math.log(4 / delta) / m) + 7 * (2 * r) * math.log(4 / delta) / (3 * (m - 1))
    assert float(bernstein_bound(v, r, m, delta)) == pytest.approx(known, rel=1e-12)
    assert float(empirical_bernstein_bound(v, r, m, delta)) == pytest.approx(seen, rel=1e-12)
    assert (
        bernstein_bound(v, r, m + more, delta) < bernstein_bound(v, r, m, delta) < bernstein_bound(v, r, m, delta / 2)
    )


def test_bernsteins_inequality_holds_where_the_tail_is_known_exactly() -> None:
    """A binomial mean: P(|mean - p| > bound) by exact summation, for rare and for even events."""
    for p, m, delta in ((Fraction(1, 50), 100, 0.1), (Fraction(1, 2), 40, 0.05), (Fraction(1, 200), 60, 0.2)):
        width = float(bernstein_bound(float(p * (1 - p)), 1.0, m, delta))
        outside = sum(
            math.comb(m, j) * p**j * (1 - p) ** (m - j) for j in range(m + 1) if abs(Fraction(j, m) - p) > width
        )
        assert outside <= delta


# ---- before


def by_hand(n: int, m: int, delta: float, slope: float, q: float) -> float:
    log = math.log(2 * n / delta)
    return math.sqrt(2 * slope**2 / q * log / m) + 2 * slope / q * log / (3 * m)


def test_uniform_kernel_by_hand() -> None:
    """q(i in T) is one over the harmonic number, and every weight is one."""
    found = before(3.0, 5, 200, 10, Uniform(), delta=0.1, quadrature="random")
    assert found.bernstein.constants["q"] == pytest.approx(np.full(5, float(1 / harmonic(5))))
    assert found.bernstein.half_widths == pytest.approx(np.full(5, by_hand(5, 200, 0.1, 3.0, float(1 / harmonic(5)))))
    assert found.bernstein.aggregate == pytest.approx(5 * found.bernstein.half_widths[0])
    assert found.paper.half_widths == pytest.approx(np.full(5, 2 * 3.0 / math.sqrt(200 * 0.02 / 2)))
    assert found.paper.aggregate == pytest.approx(5 * found.paper.half_widths[0])
    assert found.paper.constants["numerator"] == pytest.approx(np.full(5, 3.0 / math.sqrt(200 * 0.02)))
    assert found.paper.kind == found.bernstein.kind == "guaranteed"


def test_gaussian_kernel_by_hand() -> None:
    """Two features, p = (1/2, 1/4): q is proportional to 1/4, 1/8 and 1/16 on {1}, {2} and both."""
    squares = 2 * np.log([2.0, 4.0])
    found = before([1.0, 2.0], 2, 50, 1, Gaussian(1.0, "euclidean"), squared_distance=squares, quadrature="random")
    total = Fraction(1, 4) + Fraction(1, 8) + Fraction(1, 16)
    q = [(Fraction(1, 4) + Fraction(1, 16)) / total, (Fraction(1, 8) + Fraction(1, 16)) / total]
    assert found.bernstein.constants["q"] == pytest.approx([float(each) for each in q])
    expected = [by_hand(2, 50, 0.05, slope, float(each)) for slope, each in zip((1.0, 2.0), q, strict=True)]
    assert found.bernstein.half_widths == pytest.approx(expected)
    assert found.paper.constants["pi_min"] == pytest.approx([1 / 4, 1 / 2])
    root = math.sqrt(50 * 0.025 / 2)
    assert found.paper.half_widths == pytest.approx([1 / root * 4 + 1 / root * 16, 2 / root * 2 + 2 / root * 4])


@pytest.mark.parametrize(
    "kernel", [Uniform(), Gaussian(2.0, "euclidean"), Gaussian(0.8), SizeKernel(lambda s: 1 / (1 + s))]
)
@pytest.mark.parametrize("quadrature", ["midpoint", "riemann", "random"])
def test_the_paper_says_the_same_before_the_run_and_after_it(kernel: object, quadrature: str) -> None:
    smoothness = Smoothness(second=6.0, third=6.0)
    options = {"kernel": kernel, "quadrature": quadrature, "n_nodes": 5, "budget": None}
    after = explain(cubic, X, plan=plans.permutation(8), **options).certificate(0.1, "paper", SLOPES, smoothness)
    earlier = before(
        SLOPES, 3, 4, 5, kernel, delta=0.1, quadrature=quadrature, smoothness=smoothness, squared_distance=X**2
    ).paper
    assert earlier.half_widths.tolist() == after.half_widths.tolist()
    assert (earlier.aggregate, earlier.kind) == (after.aggregate, after.kind)
    assert earlier.constants["numerator"].tolist() == after.constants["numerator"].tolist()


@settings(max_examples=40)
@given(
    n=st.integers(1, 9),
    m=st.integers(1, 10**5),
    k=st.integers(1, 40),
    sigma=st.floats(0.3, 3.0),
    slope=st.floats(0.01, 100.0),
    seed=st.integers(0, 99),
)
def test_more_draws_and_more_nodes_never_promise_less(
    n: int, m: int, k: int, sigma: float, slope: float, seed: int
) -> None:
    known = {"squared_distance": np.random.default_rng(seed).uniform(0, 2, n), "smoothness": Smoothness(third=3.0)}

    def promised(m: int, k: int, delta: float = 0.05) -> list[np.ndarray]:
        found = before(slope, n, m, k, Gaussian(sigma), delta=delta, quadrature="midpoint", **known)
        return [found.paper.half_widths, found.bernstein.half_widths, found.paper.constants["numerator"]]

    first = promised(m, k)
    for other in (promised(m + 1, k), promised(2 * m, k + 1), promised(m, k, 0.2)):
        for here, there in zip(first, other, strict=True):
            assert (there < here).all()


@pytest.mark.parametrize(
    "kernel", [Uniform(), Gaussian(0.75), SizeKernel(lambda s: 0.7**s)], ids=["1", "gauss", "size"]
)
@pytest.mark.parametrize("epsilon", [2.0, 0.3, 0.011])
@pytest.mark.parametrize("quadrature", ["midpoint", "riemann", "random"])
def test_the_m_of_an_epsilon_promises_it_and_one_draw_less_does_not(
    kernel: object, epsilon: float, quadrature: str
) -> None:
    known = {
        "quadrature": quadrature,
        "squared_distance": np.array([0.1, 0.4, 0.2, 0.3]),
        "smoothness": Smoothness(second=2.0, third=4.0),
    }
    found = before(SLOPES[[0, 1, 2, 1]], 4, kernel=kernel, epsilon=epsilon, **known)
    for name in ("paper", "bernstein"):
        certificate = getattr(found, name)
        m, k = certificate.constants["m"], certificate.constants["k"]
        assert certificate.half_widths.max() <= epsilon

        def widest(m: int, k: int, name: str = name) -> float:
            again = before(SLOPES[[0, 1, 2, 1]], 4, m, k, kernel, **known)
            return float(getattr(again, name).half_widths.max())

        assert widest(m, k) <= epsilon < widest(m - 1, k)
        # No other k needs a tenth fewer gradients.
        for other in {max(1, k // 2), max(1, k - 1), k + 1, 2 * k, 4 * k}:
            fewer = int(0.9 * m * k) // other
            assert fewer < 1 or widest(fewer, other) > epsilon
    assert (found.paper.constants["k"] == 1) == (quadrature == "random") or epsilon == 2.0


def test_the_m_of_an_epsilon_in_closed_form() -> None:
    """2 B / sqrt(m delta / 2n) <= epsilon: m = 8 n B^2 / (delta epsilon^2); a smaller epsilon takes more draws."""
    for n, slope, epsilon in ((8, 1.0, 0.25), (5, 3.0, 0.5)):
        found = before(slope, n, kernel=Uniform(), delta=2**-4, epsilon=epsilon, quadrature="random")
        assert found.paper.constants["m"] == 8 * n * slope**2 * 16 / epsilon**2
    draws = [before(1.0, 6, kernel=Uniform(), epsilon=e, k=1).bernstein.constants["m"] for e in (0.4, 0.2, 0.1, 1e-6)]
    assert draws == sorted(draws)
    assert draws[-1] > 10**12


# ---- it covers


def test_bernstein_before_the_run_covers_and_is_not_vacuous() -> None:
    """A linear model has |x_i dF/dx_i| = B at every point, so the variance is 1 - q times its bound."""
    slope = np.array([1.0, -2.0, 0.5, 1.5, 3.0, -1.0])
    half = before(np.abs(slope), 6, 300, 1, Uniform()).bernstein.half_widths
    worst = []
    for seed in range(120):
        found = explain(
            lambda z: z @ torch.from_numpy(slope),
            np.ones(6),
            plan="independent",
            budget=300,
            kernel=Uniform(),
            seed=seed,
            replicates=4,
        )
        assert found.ledger.n_rays == 300
        worst.append(float((np.abs(found.values - slope) / half).max()))
    assert np.mean(np.array(worst) <= 1) >= 0.95
    assert np.quantile(worst, 0.95) > 0.4  # within a factor of 2.5 of the largest errors


def test_the_paper_before_the_run_covers() -> None:
    truth = explain(cubic, X, plan="exhaustive", kernel=Uniform(), quadrature="gauss-legendre", n_nodes=4).values
    assert truth[0] == pytest.approx(1 + 2 / 4)  # 1 from the cube, and 1/4 of the product
    promised = before(
        SLOPES, 3, 10, 12, Uniform(), delta=0.2, smoothness=Smoothness(third=6.0), squared_distance=X**2
    ).paper
    runs = [
        explain(cubic, X, plan=plans.permutation(10, antithetic=False), n_nodes=12, kernel=Uniform(), seed=s).values
        for s in range(60)
    ]
    inside = (np.abs(np.array(runs) - truth) <= promised.half_widths).all(1)
    assert inside.mean() >= 0.8
    assert (np.abs(np.array(runs).sum(1) - truth.sum()) <= promised.aggregate).mean() >= 0.8
    alone = np.abs(np.array(runs) - truth).max(0)
    assert (alone[:2] > promised.constants["E_quad"][:2]).all()  # what is covered is not the quadrature error alone


# ---- kinds, and sentences


def test_what_is_assumed_is_not_guaranteed() -> None:
    assert before(1.0, 4, 10, 1, Gaussian(0.75), quadrature="random").bernstein.kind == "calibrated"
    far = {"squared_distance": np.ones(4), "quadrature": "random"}
    assert before(1.0, 4, 10, 1, Gaussian(0.75), **far).bernstein.kind == "guaranteed"
    assert before(calibrate(cubic, X), 3, 10, 1, Uniform()).bernstein.kind == "calibrated"
    unknown = before(1.0, 4, 10, 10, Uniform())
    assert (unknown.paper.kind, unknown.bernstein.kind) == ("calibrated", "guaranteed")
    assert "not covered" in repr(unknown)
    assert "guaranteed, by Bernstein" in repr(unknown)
    assert "|F(x) - F(x')|" not in repr(unknown)  # which is not known before the run


def test_a_kernel_that_underflows_promises_nothing() -> None:
    squares = np.full(4, 4000.0)
    found = before(1.0, 4, 10, 1, Gaussian(1.0, "euclidean"), squared_distance=squares, quadrature="random")
    assert np.isinf(found.paper.half_widths).all()
    assert found.paper.aggregate == math.inf
    with pytest.raises(GralisError, match=r"No number of draws promises this epsilon.*sigma"):
        found.needed(0.1)
    assert before([0.0, 1.0], 2, 10, 1, Uniform(), quadrature="random").paper.half_widths[0] == 0.0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: before(1.0, 4, kernel=Uniform()), r"'m'.*epsilon"),
        (lambda: before(1.0, 4, 10, epsilon=0.1), r"'m'.*not both"),
        (lambda: before(-1.0, 4, 10), r"'B' parameter of before must be a number >= 0"),
        (lambda: before([1.0, 2.0], 4, 10), r"'B'.*\(4,\)"),
        (lambda: before(1.0, 0, 10), r"'n'.*>= 1"),
        (lambda: before(1.0, 4, 10, 0), r"'k'.*>= 1"),
        (lambda: before(1.0, 4, 10, delta=1.0), r"'delta'.*between 0 and 1"),
        (lambda: before(1.0, 4, epsilon=0.0, k=1), r"'epsilon'.*> 0"),
        (lambda: before(1.0, 4, 10, quadrature="simpson"), r"'quadrature'.*'midpoint'"),
        (lambda: before(1.0, 4, 10, squared_distance=[1.0, -1.0, 1.0, 1.0]), r"'squared_distance'.*>= 0"),
        (lambda: before(1.0, 4, 10, kernel=Gaussian(1.0, "euclidean")), r"'squared_distance'.*euclidean"),
        (lambda: before(1.0, 4, epsilon=0.1), r"The k that epsilon takes.*smoothness=.*quadrature='random'"),
        (
            lambda: before(1.0, 2, k=1, epsilon=0.1, smoothness=Smoothness(third=24.0), squared_distance=np.ones(2)),
            r"'k'.*quadrature error is below epsilon = 0.1.*Got 1",
        ),
        (lambda: before(calibrate(cubic, X), 4, 10), r"'B'.*4 features.*3"),
    ],
)
def test_bad_input_gets_a_sentence(call, sentence: str) -> None:
    with pytest.raises(GralisError, match=sentence):
        call()


# ---- gralis.cost


def test_cost_carries_the_certificate_of_its_plan() -> None:
    smoothness = Smoothness(third=6.0)
    options = {"kernel": Uniform(), "n_nodes": 5, "budget": None, "level": 0.9}
    estimate = gralis.cost(cubic, X, plan=plans.permutation(8), bound=SLOPES, smoothness=smoothness, **options)
    expected = before(SLOPES, 3, 4, 5, Uniform(), delta=0.1, smoothness=smoothness, squared_distance=X**2).paper
    assert estimate.certificate.paper.half_widths == pytest.approx(expected.half_widths)
    assert estimate.certificate.paper.kind == "guaranteed"
    assert estimate.certificate.paper.difference == pytest.approx(1 + 2 - 2)
    assert "before the run:" in str(estimate)
    assert "vacuous" in str(estimate)
    independent = gralis.cost(cubic, X, plan="independent", bound=SLOPES, kernel=Uniform(), budget=640)
    assert independent.certificate.bernstein.constants["m"] == independent.n_rays == 640
    needed = independent.certificate.needed(0.5)
    assert needed.bernstein.half_widths.max() <= 0.5
    assert needed.paper.constants["k"] == 10  # the quadrature error is not known, so k stays


def test_cost_without_a_bound_reads_it_off_its_probe_and_says_calibrated() -> None:
    weights = torch.tensor([3.0, -1.0, 0.5] + [0.25] * 9, dtype=torch.float64)
    estimate = gralis.cost(lambda z: z @ weights, np.ones(12), budget=400)
    assert estimate.certificate.bernstein.constants["B"] == pytest.approx(np.abs(weights.numpy()))
    assert estimate.certificate.bernstein.kind == "calibrated"
    assert estimate.certificate.paper is None or estimate.certificate.paper.kind == "calibrated"


@pytest.mark.parametrize(
    "options",
    [{"plan": "endpoint"}, {"plan": "exhaustive", "budget": None}, {"plan": "values"}],
    ids=lambda o: o["plan"],
)
def test_plans_without_draws_of_rays_have_no_certificate_beforehand(options: dict[str, object]) -> None:
    estimate = gralis.cost(cubic, X, **options)
    assert estimate.certificate is None
    assert "before the run" not in str(estimate)


def test_given_orders_are_promised_nothing() -> None:
    plan = plans.permutation(orders=np.array([[0, 1, 2]] * 4))
    assert gralis.cost(cubic, X, plan=plan, bound=SLOPES, budget=None).certificate is None
