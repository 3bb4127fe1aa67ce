"""Stage 1 with frozen ImageNet features: pooled maps of EfficientNet-Lite0, and a logistic regression on them.

Every map gives the mean and the standard deviation of each channel. They are standardised, and a ridge-penalised
logistic regression is fitted. Which maps are used, and the penalty, are chosen by cross-validation inside the training
patients. The quality over all patients comes from nested folds: the choice is made again inside each fold, so that no
patient has a part in the choice of the model that is tested on that patient.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from images import Labels
from network import MAPS, PooledEfficientNet
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

Numbers = NDArray[np.float64]

Choices = Sequence[tuple[Sequence[str], float]]

#: The candidates: which maps are pooled, and the inverse of the penalty.
CHOICES: Choices = tuple(product((("head",), ("block 15",), MAPS[1:4], MAPS), (1e-3, 1e-2, 1e-1)))
N_OUTER, N_INNER = 5, 4


def patient_folds(labels: Labels, n: int, seed: int) -> NDArray[np.int64]:
    """The fold of every image. All images of a patient are in one fold, and each class is spread over the folds."""
    fold: dict[str, int] = {}
    for number, label in enumerate(sorted({row["label"] for row in labels})):
        patients = sorted({row["patient"] for row in labels if row["label"] == label} - fold.keys())
        order = np.random.default_rng([seed, number]).permutation(len(patients))
        fold |= {patients[i]: place % n for place, i in enumerate(order)}
    return np.array([fold[row["patient"]] for row in labels])


def columns_of(maps: Sequence[str], widths: dict[str, int]) -> NDArray[np.int64]:
    """The columns of the pooled features that belong to these maps."""
    ends = np.cumsum(list(widths.values()))
    starts = dict(zip(widths, ends - list(widths.values()), strict=True))
    return np.concatenate([np.arange(starts[name], starts[name] + widths[name]) for name in maps])


def fitted(x: Numbers, y: NDArray[np.bool_], penalty: float) -> Any:
    model = make_pipeline(
        StandardScaler(), LogisticRegression(C=penalty, class_weight="balanced", max_iter=3000, tol=1e-3)
    )
    return model.fit(x, y)


def out_of_fold(x: Numbers, y: NDArray[np.bool_], folds: NDArray[np.int64], penalty: float) -> Numbers:
    """The log-odds of every image by the model that was fitted without its fold."""
    scores = np.zeros(len(y))
    for fold in np.unique(folds):
        mine = folds == fold
        scores[mine] = fitted(x[~mine], y[~mine], penalty).decision_function(x[mine])
    return scores


def choose(
    x: Numbers, labels: Labels, y: NDArray[np.bool_], widths: dict[str, int], seed: int, choices: Choices
) -> tuple[Any, float]:
    """The maps and the penalty with the largest area under the patients' curve, by folds inside these labels."""
    from train import auc

    folds, patients = patient_folds(labels, N_INNER, seed), np.array([row["patient"] for row in labels])
    areas = []
    for maps, penalty in choices:
        scores = out_of_fold(x[:, columns_of(maps, widths)], y, folds, penalty)
        by_patient = per_patient(scores, y, patients)
        areas.append(auc(*by_patient) + auc(scores, y))  # images break the ties of few patients
    return choices[int(np.argmax(areas))]


def per_patient(scores: Numbers, y: NDArray[np.bool_], patients: NDArray[np.str_]) -> tuple[Numbers, NDArray[np.bool_]]:
    """The mean score and the class of every patient."""
    names = np.unique(patients)
    return np.array([scores[patients == p].mean() for p in names]), np.array([y[patients == p][0] for p in names])


@dataclass(frozen=True)
class Probe:
    """A fitted probe, and what was chosen for it."""

    maps: Sequence[str]
    penalty: float
    columns: NDArray[np.int64]
    model: Any

    @classmethod
    def of(
        cls,
        x: Numbers,
        labels: Labels,
        y: NDArray[np.bool_],
        rows: NDArray[np.int64],
        widths: dict[str, int],
        seed: int,
        choices: Choices | None = None,
    ) -> Probe:
        """Choose and fit on these rows."""
        maps, penalty = choose(x[rows], [labels[i] for i in rows], y[rows], widths, seed + 1, choices or CHOICES)
        columns = columns_of(maps, widths)
        return cls(maps, penalty, columns, fitted(x[rows][:, columns], y[rows], penalty))

    def scores(self, x: Numbers) -> Numbers:
        """The log-odds of the second class."""
        found: Numbers = self.model.decision_function(x[:, self.columns])
        return found

    def into(self, network: PooledEfficientNet) -> None:
        """Write the standardisation and the weights into the last layer of the network."""
        scaler, logistic = (step for _, step in self.model.steps)
        n = sum(network.widths.values())
        weight, mean, std = np.zeros(n), np.zeros(n), np.ones(n)
        weight[self.columns] = logistic.coef_[0]
        mean[self.columns], std[self.columns] = scaler.mean_, scaler.scale_
        network.set_last_layer(mean, std, weight, float(logistic.intercept_[0]))


@dataclass(frozen=True)
class Nested:
    """The probes of the folds, and the log-odds of every image by the probe that has not seen its patient."""

    folds: NDArray[np.int64]
    probes: Sequence[Probe]
    scores: Numbers
    record: dict[str, Any]


def nested(
    x: Numbers,
    labels: Labels,
    y: NDArray[np.bool_],
    widths: dict[str, int],
    seed: int,
    choices: Choices | None = None,
) -> Nested:
    """How good the whole procedure is on patients that it has not seen, choice included."""
    folds = patient_folds(labels, N_OUTER, seed)
    scores, probes = np.zeros(len(y)), []
    for fold in range(N_OUTER):
        mine = folds == fold
        probe = Probe.of(x, labels, y, np.flatnonzero(~mine), widths, seed, choices)
        scores[mine] = probe.scores(x[mine])
        probes.append(probe)
        print(f"fold {fold + 1} of {N_OUTER}: {', '.join(probe.maps)}; C = {probe.penalty}", flush=True)
    record = {
        "folds": N_OUTER,
        "patients": len({row["patient"] for row in labels}),
        "images": len(y),
        "chosen": [{"maps": list(probe.maps), "penalty": probe.penalty} for probe in probes],
        **areas(scores, labels, y),
    }
    return Nested(folds, probes, scores, record)


def areas(scores: Numbers, labels: Labels, y: NDArray[np.bool_]) -> dict[str, list[float]]:
    """The area under the curve of the patients and of the images, each with its 95% interval over patients."""
    from train import auc, auc_over_patients

    patients = np.array([row["patient"] for row in labels])
    of_patient, positive = per_patient(scores, y, patients)
    groups = [np.flatnonzero(patients == p).tolist() for p in np.unique(patients)]
    one_each = [[i] for i in range(len(positive))]
    return {
        "patient_auc": [auc(of_patient, positive), *auc_over_patients(of_patient, positive, one_each)],
        "image_auc": [auc(scores, y), *auc_over_patients(scores, y, groups)],
    }


def pooled(network: Any, images: NDArray[np.uint8], cache: Any) -> Numbers:
    """The pooled features of all images, computed once and kept."""
    name = hashlib.sha256(repr([images.shape, int(images[::50].astype(np.int64).sum())]).encode()).hexdigest()[:12]
    path = cache / f"pooled-{name}.npy"
    if not path.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        parts = []
        with torch.no_grad():
            for start in range(0, len(images), 16):
                batch = torch.from_numpy(np.array(images[start : start + 16])).permute(0, 3, 1, 2).float() / 255
                parts.append(network.pool((batch - 0.5) / 0.5).double().numpy())
        temporary = path.with_suffix(".part.npy")
        np.save(temporary, np.concatenate(parts))
        temporary.rename(path)
    table: Numbers = np.load(path)
    return table
