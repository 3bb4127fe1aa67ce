"""Kernels from outside gralis, and kernels in plain JSON values."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
import torch

import gralis
from gralis import Gaussian, GralisError, SizeKernel, Uniform, kernels
from gralis.kernels import Kernel, MaskKernel, TableOfSizes, UnsavedKernel, from_dict, stored, to_dict
from gralis.laws import Law, SizeLaw

N = 5
X = torch.linspace(0.5, 1.5, N, dtype=torch.float64)


def product(points: torch.Tensor) -> torch.Tensor:
    return (points * torch.arange(1.0, N + 1)).sum(1) + points.prod(1)


@dataclass(frozen=True)
class Geometric:
    """pi(S) = base ** |S|, by nothing but the two methods of a kernel."""

    base: float = 0.5

    def bind(self, squared_distance: np.ndarray) -> Law:
        return SizeLaw(self.base ** np.arange(len(squared_distance)))

    def log_weight(self, masks: np.ndarray, squared_distance: np.ndarray) -> np.ndarray:
        return masks.sum(1) * np.log(self.base)


class Plain(Geometric):
    """The same without a repr worth keeping."""

    __repr__ = object.__repr__


@pytest.mark.parametrize("plan", ["shared", "independent", "permutation", "exhaustive", "endpoint"])
def test_an_object_with_the_two_methods_is_a_kernel(plan: str) -> None:
    options = {"plan": plan, "budget": None if plan == "exhaustive" else 120, "seed": 2}
    halving = SizeKernel(lambda size: 0.5**size)
    outside, inside = (gralis.explain(product, X, kernel=kernel, **options) for kernel in (Geometric(), halving))
    np.testing.assert_allclose(outside.values, inside.values, rtol=1e-12)
    np.testing.assert_allclose(outside.stderr, inside.stderr, rtol=1e-9, atol=1e-15)
    uniform = gralis.explain(product, X, kernel=Uniform(), **options)
    outside, inside = (uniform.with_kernel(kernel) for kernel in (Geometric(), halving))
    assert outside.kernel == Geometric()
    assert not np.array_equal(outside.values, uniform.values)
    np.testing.assert_allclose(outside.values, inside.values, rtol=1e-12)


def test_a_kernel_from_outside_is_saved_by_its_name(tmp_path) -> None:
    before = gralis.explain(product, X, kernel=Geometric(), budget=120)
    after = gralis.load(before.save(tmp_path / "why.gralis"))
    assert after.kernel == UnsavedKernel("Geometric(base=0.5)")
    assert np.array_equal(after.values, before.values)
    with pytest.raises(GralisError, match=r"The kernel Geometric\(base=0.5\) was Python code, .* give it again"):
        after.with_kernel(after.kernel)
    assert np.array_equal(after.with_kernel(Geometric()).values, before.values)


def test_a_registered_kernel_is_saved_with_its_fields(tmp_path, monkeypatch) -> None:
    kernels.register("geometric", Geometric)
    before = gralis.explain(product, X, kernel=Geometric(0.25), budget=120)
    path = before.save(tmp_path / "why.gralis")
    after = gralis.load(path)
    assert after.kernel == Geometric(0.25)
    assert np.array_equal(after.with_kernel(after.kernel).values, before.values)
    monkeypatch.setattr(stored, "_REGISTERED", {})  # as in a process that does not know the class
    assert gralis.load(path).kernel == UnsavedKernel("geometric")


class NoDataclass:
    bind, log_weight = Geometric.bind, Geometric.log_weight


@pytest.mark.parametrize("bad", [Geometric(), "Geometric", object, NoDataclass])
def test_only_dataclasses_that_are_kernels_can_be_registered(bad: object) -> None:
    with pytest.raises(GralisError, match=r"'kernel_class' parameter of kernels.register must be a dataclass"):
        kernels.register("bad", bad)


def by_mask(masks: np.ndarray) -> np.ndarray:
    return np.ones(len(masks))


@pytest.mark.parametrize(
    ("kernel", "back"),
    [
        (Uniform(), Uniform()),
        (Gaussian(0.1), Gaussian(0.1)),
        (Gaussian(1 / 3, "euclidean"), Gaussian(1 / 3, "euclidean")),
        (SizeKernel(lambda size: 1 / (3 + size)), SizeKernel(TableOfSizes((1 / 3, 1 / 4, 1 / 5)))),
        (SizeKernel(TableOfSizes((1.0, 0.1))), SizeKernel(TableOfSizes((1.0, 0.1)))),
        (MaskKernel(by_mask), UnsavedKernel("by_mask")),
        (UnsavedKernel("lost"), UnsavedKernel("lost")),
        (Geometric(0.5), UnsavedKernel("Geometric(base=0.5)")),
        (Plain(), UnsavedKernel("Plain")),
    ],
)
def test_kernels_come_back_from_json(kernel: Kernel, back: Kernel) -> None:
    assert from_dict(json.loads(json.dumps(to_dict(kernel, n_features=3)))) == back


def test_a_kernel_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(ValueError, match="a kernel of type 'sigmoid'"):
        from_dict({"type": "sigmoid"})


def test_sigma_may_not_be_an_int_beyond_all_floats() -> None:
    with pytest.raises(GralisError, match=r"'sigma' parameter of Gaussian must be a number > 0\. Got 1000"):
        Gaussian(10**400)
