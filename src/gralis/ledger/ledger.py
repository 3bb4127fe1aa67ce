"""The ledger holds every evaluated ray. All numbers are computed from it. A large file of it is mapped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from gralis.arrays import Array, Masks
from gralis.errors import GralisError
from gralis.rays import PILOT, RayRequest
from gralis.rays.nested import nested, thinned
from gralis.rays.quadrature import Density
from gralis.storage.container import read_arrays, write_arrays

__all__ = ["Ledger"]

_WHOLE_NUMBERS = ("replicate", "baseline", "owner", "ray")
MOST_ENUMERATED = 20  # features; 2^20 coalitions are a million rows


@dataclass(frozen=True, eq=False)
class Ledger:
    """Rays (mask, rate, replicate, baseline, owner, value v(T)) and the points on them (node, weight, gradient).

    Attributes
    ----------
    masks : array of bool of shape (n_rays, n_features)
        The coalition T of every ray.
    log_rate : array of shape (n_rays,)
        The logarithm of how often this coalition is expected in one replicate.
    replicate : array of int of shape (n_rays,)
        The replicate of the ray; negative for the pilot and the census.
    baseline : array of int of shape (n_rays,)
        The number of the baseline where the ray starts.
    owner : array of int of shape (n_rays,)
        The feature for which the ray was drawn; -1 if it was drawn for all its members.
    value : array of shape (n_rays,)
        v(T) = F(x_T) - F(x'); NaN where it was not evaluated.
    ray : array of int of shape (n_points,)
        The ray on which each point lies.
    node : array of shape (n_points,)
        The position a of the point on its ray: 0 at the baseline, 1 at x_T.
    place, stretch : array of shape (n_points,)
        The position on the scale s of the plan's node density, and da/ds there.
    weight : array of shape (n_points,)
        The quadrature weight of the point.
    gradient : array of shape (n_points, n_features)
        (x_i - x'_i) dF/dx_i at the point, for members of T and for the others; `rays` sums it up.
    """

    masks: Masks
    log_rate: Array
    replicate: NDArray[np.int64]
    baseline: NDArray[np.int64]
    owner: NDArray[np.int64]
    value: Array
    ray: NDArray[np.int64]
    node: Array
    place: Array
    stretch: Array
    weight: Array
    gradient: Array

    keeps_rows: ClassVar[bool] = True

    @property
    def kept_rows(self) -> Ledger:
        """This ledger."""
        return self

    def require_rows(self, purpose: str) -> Ledger:
        """This ledger, because it keeps its rows."""
        return self

    def of_one_size(self, size: int) -> None:
        """None: what coalitions of one size give must be read off the rows."""

    @property
    def has_points(self) -> bool:
        """Whether gradients were evaluated and not only coalition values."""
        return self.n_points > 0

    @property
    def has_values(self) -> bool:
        """Whether v(T) is known for every ray."""
        return bool(np.isfinite(self.value).all())

    @cached_property
    def enumerates(self) -> bool:
        """Whether every coalition of every baseline has a row."""
        n = self.n_features
        if n > MOST_ENUMERATED or self.n_rays < 2**n - 1:
            return False
        codes = self.codes
        return all(
            len(np.unique(codes[self.baseline == number])) == 2**n - 1 for number in range(self.baseline.max() + 1)
        )

    @property
    def codes(self) -> NDArray[np.int64]:
        """The coalition of every ray as a number, with bit i set for feature i; for at most 62 features."""
        return np.asarray(self.masks.astype(np.int64) @ (1 << np.arange(self.n_features)), dtype=np.int64)

    @property
    def n_features(self) -> int:
        return int(self.masks.shape[1])

    @property
    def n_rays(self) -> int:
        return len(self.masks)

    @property
    def n_points(self) -> int:
        return len(self.ray)

    @property
    def n_replicates(self) -> int:
        """The number of replicates. The pilot is not one of them."""
        return int(self.replicate.max(initial=PILOT)) + 1

    @cached_property
    def by_replicate(self) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        """The rays of the replicates, and where among them each replicate begins; None if they are not in order."""
        counted = np.flatnonzero(self.replicate >= 0)
        steps = np.diff(self.replicate[counted], prepend=-1)
        return counted, np.flatnonzero(steps) if len(counted) and (steps >= 0).all() else None

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """|T| of every ray, which is its stratum."""
        return np.asarray(self.masks.sum(1), dtype=np.int64)

    @cached_property
    def rays(self) -> Array:
        """ray_i(T) = sum over the nodes of weight * gradient_i, zero outside T; (n_rays, n_features)."""
        return self.sum_points(self.weight[:, None] * self.gradient) * self.masks

    @cached_property
    def rays_by_lemma_a(self) -> Array:
        """The rays. Where T = {i} and v(T) is known, Lemma A says that the ray equals v(T), so no node is needed."""
        known = (self.sizes == 1) & np.isfinite(self.value)
        return np.where(known[:, None], self.masks * np.nan_to_num(self.value)[:, None], self.rays)

    def sum_points(self, rows: Array, axis: int = 0) -> Array:
        """Sum rows over the points of each ray: (n_points, ...), or (n_tables, n_points, ...) with axis=1."""
        if self.nodes_per_ray.max(initial=0) <= 1:
            total = np.zeros((*rows.shape[:axis], self.n_rays, *rows.shape[axis + 1 :]))
            total[(slice(None),) * axis + (self.ray,)] = rows
            return total
        if axis:
            return np.stack([self.sum_points(table) for table in rows])
        return np.asarray(self._points_of_rays @ rows)

    @cached_property
    def _points_of_rays(self) -> csr_array:
        ones = np.ones(self.n_points)
        return csr_array((ones, (self.ray, np.arange(self.n_points))), shape=(self.n_rays, self.n_points))

    @cached_property
    def nodes_per_ray(self) -> NDArray[np.int64]:
        return np.bincount(self.ray, minlength=self.n_rays)

    @property
    def checksum(self) -> Array:
        """Lemma A on every ray: sum_i ray_i - v(T); zero for exact quadrature, mean zero for random nodes."""
        return np.asarray(self.rays.sum(1) - self.value)

    def on_scale(self, density: Density) -> Ledger:
        """The same rows with `place` and `stretch` on the scale of this density."""
        return replace(self, place=density.cumulative(self.node), stretch=1 / density(self.node))

    def take(self, rows: NDArray[np.bool_]) -> Ledger:
        """The ledger of these rays only."""
        points = rows[self.ray]
        renumber = np.cumsum(rows) - 1
        per_ray = {f.name: getattr(self, f.name)[rows] for f in fields(self)[:6]}
        per_point = {f.name: getattr(self, f.name)[points] for f in fields(self)[7:]}
        return Ledger(**per_ray, ray=renumber[self.ray[points]], **per_point)

    def of_baseline(self, number: int) -> Ledger:
        """The rays of one baseline, as if it were the only one."""
        own = self.take(self.baseline == number)
        return replace(own, baseline=np.zeros_like(own.baseline))

    def nested_nodes(self, rule: str) -> list[int]:
        """The numbers of nodes for which `with_nodes` finds a rule of this name on every ray."""
        return nested(rule, self._node_table[0][0])

    def with_nodes(self, rule: str, n_nodes: int) -> Ledger:
        """The same rays with fewer of their nodes, if these form a quadrature rule of the same name."""
        chosen, weights = thinned(rule, *self._node_table, n_nodes)
        kept = {f.name: getattr(self, f.name)[chosen.ravel()] for f in fields(self)[6:]}
        return replace(self, **{**kept, "weight": weights.ravel()})

    @property
    def _node_table(self) -> tuple[Array, Array]:
        """The nodes and the weights of the rays that have points, (n_rays, n_nodes) each."""
        counts = self.nodes_per_ray[self.nodes_per_ray > 0]
        if not len(counts) or (counts != counts[0]).any():
            raise GralisError(
                "Fewer nodes can be read only if all rays have equally many nodes; explain with quadrature='fejer'."
            )
        return self.node.reshape(len(counts), -1), self.weight.reshape(len(counts), -1)

    @staticmethod
    def join(parts: Sequence[Ledger]) -> Ledger:
        """One ledger with the rows of all parts, one part after the other. Joining is associative."""
        if len(parts) == 1:
            return parts[0]
        shift = np.cumsum([0] + [part.n_rays for part in parts[:-1]])
        columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS}
        columns["ray"] = np.concatenate([part.ray + s for part, s in zip(parts, shift, strict=True)])
        return Ledger(**columns)

    @staticmethod
    def record(request: RayRequest, gradient: Array, value: Array) -> Ledger:
        """The ledger of an evaluated request, from the gradients of its points in row order and v(T) of its rays."""
        return Ledger(
            request.masks,
            request.log_rate,
            np.array(request.replicate),
            np.array(request.baseline),
            np.array(request.owner),
            value,
            request.ray,
            request.by_point("nodes"),
            request.by_point("places"),
            request.by_point("stretch"),
            request.by_point("weights"),
            gradient,
        )

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The columns by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def save(self, path: str | Path) -> Path:
        """Write the ledger to a file, atomically."""
        return write_arrays(path, self.arrays(), {"kind": "ledger", "n_features": self.n_features})

    @staticmethod
    def load(path: str | Path) -> Ledger:
        """The ledger in a file. The rows of a file of more than 64 MiB stay on disk until they are used."""
        arrays, _ = read_arrays(path, "ledger", re.compile("|".join(field.name for field in fields(Ledger))))
        try:
            return Ledger(**arrays).checked()
        except (TypeError, ValueError) as error:
            raise GralisError(f"{path} is not a whole ledger ({error}); it may be altered.") from error

    def checked(self, n_baselines: int | None = None) -> Ledger:
        """This ledger, if its columns fit together; otherwise a ValueError names the first that does not."""
        rays, points, n = len(self.masks), len(self.ray), self.masks.shape[1] if self.masks.ndim == 2 else -1
        shapes = {"masks": (rays, n), "gradient": (points, n)}
        for number, field in enumerate(fields(self)):
            column = getattr(self, field.name)
            kind = "b" if field.name == "masks" else "i" if field.name in _WHOLE_NUMBERS else "f"
            if column.dtype.kind != kind or column.shape != shapes.get(field.name, (rays if number < 6 else points,)):
                raise ValueError(f"{field.name} has the shape {column.shape} and the type {column.dtype}")
        for name in ("node", "place", "stretch", "weight", "gradient"):
            if not np.isfinite(getattr(self, name)).all():
                raise ValueError(f"{name} holds a number that is not finite")
        if np.isinf(self.value).any() or np.isnan(self.log_rate).any():
            raise ValueError("value or log_rate hold a number that is not finite")
        limits = {"replicate": (None, rays), "baseline": (0, n_baselines), "owner": (-1, n), "ray": (0, rays)}
        for name, (least, end) in limits.items():
            column = getattr(self, name)
            if len(column) and (
                (least is not None and column.min() < least) or (end is not None and column.max() >= end)
            ):
                raise ValueError(f"{name} holds a number out of range")
        return self


_COLUMNS = tuple(field.name for field in fields(Ledger))
