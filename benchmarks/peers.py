"""Shapley values from sampled coalitions by other libraries, as functions of (game, n_features, budget, seed)."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Array = NDArray[np.float64]
Masks = NDArray[np.bool_]


class Counted:
    """The game as a function of 0/1 rows, which counts the evaluated rows and the distinct rows among them."""

    def __init__(self, value: Callable[[Masks], Array]) -> None:
        self._value = value
        self.calls = 0
        self._seen: set[bytes] = set()

    def __call__(self, rows: Any) -> Array:
        masks = np.atleast_2d(np.asarray(rows)) > 0.5
        self.calls += len(masks)
        self._seen.update(row.tobytes() for row in masks)
        return self._value(masks)

    @property
    def distinct(self) -> int:
        return len(self._seen)


Peer = Callable[[Counted, int, int, int], Array]


def shapiq(approximator: str, **options: Any) -> Peer:
    def run(game: Counted, n: int, budget: int, seed: int) -> Array:
        import shapiq.approximator

        made = getattr(shapiq.approximator, approximator)(n=n, random_state=seed, **options)
        values = made.approximate(budget, game)
        return np.array([values[(i,)] for i in range(n)])

    return run


def shap_kernel(game: Counted, n: int, budget: int, seed: int) -> Array:
    """KernelExplainer without its feature selection, which would reduce its accuracy. Two calls are F(x) and F(x')."""
    import shap

    np.random.seed(seed)  # noqa: NPY002  shap draws from the global generator
    explainer = shap.KernelExplainer(game, np.zeros((1, n)))
    values = explainer.shap_values(np.ones((1, n)), nsamples=budget - 2, l1_reg=False, silent=True)
    return np.asarray(values[0])


def captum_sampling(game: Counted, n: int, budget: int, seed: int) -> Array:
    from captum.attr import ShapleyValueSampling

    torch.manual_seed(seed)
    made = ShapleyValueSampling(lambda z: torch.from_numpy(game(z.numpy())))
    values = made.attribute(torch.ones(1, n), baselines=torch.zeros(1, n), n_samples=(budget - 2) // n)
    return values.double().numpy()[0]


def captum_kernel(game: Counted, n: int, budget: int, seed: int) -> Array:
    from captum.attr import KernelShap

    torch.manual_seed(seed)
    made = KernelShap(lambda z: torch.from_numpy(game(z.numpy())))
    options = {"n_samples": budget - 2, "perturbations_per_eval": 64}
    return made.attribute(torch.ones(1, n), baselines=torch.zeros(1, n), **options).double().numpy()[0]


PEERS: dict[str, Peer] = {
    "shapiq KernelSHAP": shapiq("KernelSHAP"),
    "shapiq KernelSHAP, paired": shapiq("KernelSHAP", pairing_trick=True),
    "shapiq kADDSHAP 2": shapiq("kADDSHAP", max_order=2),
    "shapiq kADDSHAP 2, paired": shapiq("kADDSHAP", max_order=2, pairing_trick=True),
    "shapiq kADDSHAP 3": shapiq("kADDSHAP", max_order=3),
    "shapiq kADDSHAP 3, paired": shapiq("kADDSHAP", max_order=3, pairing_trick=True),
    "shapiq SVARM": shapiq("SVARM"),
    "shapiq SVARM, paired": shapiq("SVARM", pairing_trick=True),
    "shapiq permutation": shapiq("PermutationSamplingSV"),
    "shap KernelExplainer": shap_kernel,
    "captum ShapleyValueSampling": captum_sampling,
    "captum KernelShap": captum_kernel,
}


def offered(n: int, budget: int) -> list[str]:
    """The estimators that can run. kADDSHAP has a coefficient for every set of up to max_order features."""
    triples = n + n * (n - 1) // 2 + n * (n - 1) * (n - 2) // 6
    return [name for name in PEERS if "kADDSHAP 3" not in name or triples < budget]


def estimate(name: str, game: Counted, n: int, budget: int, seed: int) -> Array:
    """One run of an estimator, without its warnings and log lines."""
    logging.getLogger("shap").setLevel(logging.ERROR)
    with _installed_packages_only(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(PEERS[name](game, n, budget, seed), dtype=np.float64)


@contextmanager
def _installed_packages_only() -> Iterator[None]:
    """Hide this folder: numba looks for a package called coverage and must not import coverage.py from here."""
    kept, here = sys.path[:], Path(__file__).parent.resolve()
    sys.path[:] = [entry for entry in kept if Path(entry).resolve() != here]
    try:
        yield
    finally:
        sys.path[:] = kept
