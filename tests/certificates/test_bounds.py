"""The paper's bounds and Bernstein's, re-derived by hand; what each needs, and what it says when it is vacuous."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import gralis
from gralis import Gaussian, GralisError, SizeKernel, Uniform, explain
from gralis.certificates import Smoothness, calibrate, kernel_range
from gralis.laws.law import all_masks
from reference import network

X = torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64)


def cubic(z: torch.Tensor) -> torch.Tensor:
    """dF/dz_1 = 3 z_1^2 + z_2, dF/dz_2 = z_1, dF/dz_3 = 2; third derivative 6."""
    return z[:, 0] ** 3 + z[:, 0] * z[:, 1] + 2 * z[:, 2]


SLOPES = np.array([1 * (3 + 2), 2 * 1, 1 * 2.0])  # sup of |x_i dF/dx_i| over the box [0,1] x [0,2] x [-1,0]


def by_hand(i: int, m: int, k: int, delta: float, sigma: float) -> tuple[float, float]:
    """The ratio corollary for feature i at delta, and its quadrature part, letter by letter; euclidean kernel."""
    x = [1.0, 2.0, 1.0]
    pi_min = math.exp(-sum(x[j] ** 2 for j in range(3) if j != i) / (2 * sigma**2))
    b_n, b_z = SLOPES[i], 1.0
    e_quad = x[i] * sum(x) ** 2 * 6 / (24 * k**2)
    root = math.sqrt(m * delta / 2)
    whole = (b_n / root + e_quad) / pi_min + b_n * b_z / (pi_min**2 * root)
    return whole, e_quad / pi_min


def algorithm_1(n_permutations: int = 8, quadrature: str = "midpoint", **options: object) -> gralis.Explanation:
    plan = gralis.plans.permutation(n_permutations=n_permutations, antithetic=True)
    kernel = options.pop("kernel", Gaussian(2.0, "euclidean"))
    return explain(cubic, X, plan=plan, n_nodes=5, budget=None, quadrature=quadrature, kernel=kernel, **options)


def test_paper_bound_by_hand() -> None:
    certificate = algorithm_1().certificate(0.1, "paper", bound=SLOPES, smoothness=Smoothness(third=6.0))
    expected = [by_hand(i, m=4, k=5, delta=0.1 / 3, sigma=2.0) for i in range(3)]  # 8 permutations are 4 pairs
    assert certificate.half_widths == pytest.approx([whole for whole, _ in expected], rel=1e-12)
    assert certificate.quadrature == pytest.approx([part for _, part in expected], rel=1e-12)
    assert certificate.aggregate == pytest.approx(sum(whole for whole, _ in expected))
    assert certificate.kind == "guaranteed"
    assert (certificate.constants["m"], certificate.constants["k"]) == (4, 5)
    numerator = SLOPES / math.sqrt(4 * 0.1 / 3) + certificate.constants["E_quad"]  # Theorem 3
    assert certificate.constants["numerator"] == pytest.approx(numerator)


def test_the_endpoint_rule_has_the_weaker_bound() -> None:
    found = algorithm_1(quadrature="riemann")
    certificate = found.certificate(method="paper", bound=SLOPES, smoothness=Smoothness(second=6.0))
    distance = np.array([1.0, 2.0, 1.0])
    assert certificate.constants["E_quad"] == pytest.approx(distance * 4 * 6 / (2 * 5))
    assert found.certificate(method="paper", bound=SLOPES).kind == "calibrated"  # no second derivative was given


def test_a_constant_read_off_the_rays_is_calibrated_never_guaranteed() -> None:
    found = algorithm_1(30)
    seen = found.certificate(method="paper", smoothness=Smoothness(third=6.0))
    assert seen.kind == "calibrated"
    assert (seen.constants["B_N"] <= SLOPES + 1e-12).all()
    assert found.certificate(method="paper", bound=found.calibration).kind == "calibrated"
    # Second differences of 3 a^2 on five midpoints: 6 / 25, and E_quad is a twenty-fourth of it.
    assert seen.constants["E_quad"][0] == pytest.approx(16 * 6 / 600)
    calibrated = found.certificate(method="paper")
    assert calibrated.constants["E_quad"][0] == pytest.approx(6 / 25 / 24)


def test_vacuous_is_said() -> None:
    certificate = algorithm_1().certificate(method="paper", bound=SLOPES, smoothness=Smoothness(third=6.0))
    assert certificate.vacuous
    assert "vacuous" in repr(certificate)
    sharp = explain(cubic, X, plan="exhaustive").certificate()
    assert not sharp.vacuous
    assert "vacuous" not in repr(sharp)


def test_paper_covers() -> None:
    truth = explain(cubic, X, plan="exhaustive", kernel=Uniform()).values
    hits = 0
    for seed in range(40):
        found = algorithm_1(8, seed=seed, kernel=Uniform())
        half = found.certificate(0.1, "paper", SLOPES, Smoothness(third=6.0)).half_widths
        hits += bool((np.abs(found.values - truth) <= half).all())
    assert hits == 40  # Chebyshev is far from sharp


@pytest.mark.parametrize(
    "kernel", [Uniform(), Gaussian(0.8), Gaussian(3.0, "euclidean"), SizeKernel(lambda s: 1 / (1 + s))]
)
def test_the_range_of_a_kernel_against_enumeration(kernel: gralis.kernels.Kernel) -> None:
    squares = np.array([0.3, 2.0, 1.1, 0.0])
    low, high = kernel_range(kernel, squares)
    masks = np.concatenate([np.zeros((1, 4), dtype=bool), all_masks(4)])
    for i in range(4):
        weights = np.exp(kernel.log_weight(masks[~masks[:, i]], squares))
        assert (low[i], high[i]) == pytest.approx((weights.min(), weights.max()))
    general = gralis.kernels.MaskKernel(lambda m: 0.5 + 0.1 * m.sum(1))
    assert kernel_range(general, squares)[1] == pytest.approx(np.full(4, 0.8))


def test_bernstein_by_hand() -> None:
    kernel = Gaussian(0.9)
    found = explain(cubic, X, plan="independent", budget=400, kernel=kernel)
    certificate = found.certificate(0.05, "bernstein", bound=SLOPES)
    inclusion = kernel.bind(found.squared_distance[0]).inclusion
    rows = found.ledger.rays / inclusion  # zero outside T
    assert found.values == pytest.approx(rows.mean(0))
    m, log = len(rows), math.log(4 * 3 / 0.05)
    expected = np.sqrt(2 * rows.var(0, ddof=1) * log / m) + 7 * 2 * (SLOPES / inclusion) * log / (3 * (m - 1))
    assert certificate.half_widths == pytest.approx(expected)
    assert (certificate.kind, certificate.constants["m"]) == ("guaranteed", m)
    assert found.certificate(0.05, "bernstein").kind == "calibrated"
    assert found.certificate(0.05, "bernstein", bound=calibrate(cubic, X)).kind == "calibrated"


def test_bernstein_covers() -> None:
    truth = explain(cubic, X, plan="exhaustive").values
    hits = 0
    for seed in range(60):
        found = explain(cubic, X, plan="independent", budget=200, seed=seed)
        hits += bool((np.abs(found.values - truth) <= found.certificate(0.05, "bernstein", SLOPES).half_widths).all())
    assert hits >= 57


def test_every_method_says_what_it_needs() -> None:
    shared = explain(network("softplus", 6, 3), torch.ones(6, dtype=torch.float64), budget=200)
    for method, plan in (("bernstein", "independent"), ("paper", "permutation")):
        with pytest.raises(GralisError, match=f"needs the rows of plan='{plan}'.*plan='shared'"):
            shared.certificate(method=method)
    with pytest.raises(GralisError, match=r"'method'.*'replicates', 'bernstein', 'paper'.*'chernoff'"):
        shared.certificate(method="chernoff")
    with pytest.raises(GralisError, match=r"'delta'.*between 0 and 1.*Got 1.5"):
        shared.certificate(1.5)
    with pytest.raises(GralisError, match=r"'bound'.*needs no bound"):
        shared.certificate(bound=3.0)
    independent = explain(cubic, X, plan="independent", budget=200)
    with pytest.raises(GralisError, match=r"'bound'.*over the whole box.*was seen"):
        independent.certificate(method="bernstein", bound=0.1)
    with pytest.raises(GralisError, match="'bound'"):
        independent.certificate(method="bernstein", bound=[1.0, 2.0])
    with pytest.raises(GralisError, match="drawn from another"):
        independent.with_kernel(Gaussian(0.3)).certificate(method="bernstein")
    with pytest.raises(GralisError, match=r"pi_min.*underflows"):
        algorithm_1(kernel=Gaussian(0.01, "euclidean")).certificate(method="paper")


def test_quadrature_and_sampling_are_separate() -> None:
    coarse = explain(cubic, X, plan="exhaustive", quadrature="midpoint", n_nodes=2, kernel=Uniform())
    truth = explain(cubic, X, plan="exhaustive", kernel=Uniform()).values
    certificate = coarse.certificate()
    assert certificate.sampling.tolist() == [0.0, 0.0, 0.0]
    assert abs(coarse.values[0] - truth[0]) > 0.01  # only feature 0 is curved
    assert (np.abs(coarse.values - truth) <= certificate.quadrature).all()
    assert certificate.half_widths == pytest.approx(certificate.quadrature)
    assert certificate.checksum is not None
    assert certificate.checksum.largest == pytest.approx(1 / 16)  # midpoints on 3 a^2: 1 - (3/16 + 27/16) / 2
    random = explain(network("softplus", 8, 1), torch.ones(8, dtype=torch.float64), budget=300).certificate()
    assert not random.quadrature.any()
    assert "no quadrature error" in repr(random)
    unknown = explain(cubic, X, plan="exhaustive", quadrature="midpoint", n_nodes=1, coalition_values=False)
    blind = unknown.certificate()
    assert np.isnan(blind.quadrature).all()
    assert np.isnan(blind.half_widths).all()
    assert np.array_equal(blind.half_widths, unknown.half_widths(), equal_nan=True)
    assert np.isnan(blind.aggregate)
    assert "not covered" in repr(blind)


def test_calibration_finds_the_slope() -> None:
    found = calibrate(cubic, X, budget=2000)
    assert (found.slope <= SLOPES + 1e-12).all()
    assert found.slope == pytest.approx(SLOPES, rel=0.05)
    assert "no bound" in repr(found)
    with pytest.raises(GralisError, match="forwards only"):
        _ = explain(cubic, X, plan="endpoint").calibration


def test_half_width_falls_with_the_square_root_of_the_budget() -> None:
    model, x = network("relu", 10, 5), torch.linspace(-1, 1, 10, dtype=torch.float64)
    options = {"plan": "independent", "kernel": Gaussian(0.75)}
    small, large = (
        np.mean([explain(model, x, budget=b, seed=s, **options).certificate().half_widths for s in range(6)])
        for b in (512, 512 * 16)
    )
    assert 3.2 < small / large < 5.0
