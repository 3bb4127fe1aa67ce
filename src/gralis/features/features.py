"""Features: which coordinates of x are switched together. Every coordinate belongs to exactly one feature.

x is a tuple of arrays ("leaves"); a feature may own coordinates of several leaves.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gralis.arrays import Shape, describe, to_numpy
from gralis.checks import is_whole
from gralis.errors import bad
from gralis.features.coordinate_names import checked
from gralis.features.labels import Labels, count, integers


@dataclass(frozen=True, eq=False, repr=False)
class Features:
    """`labels[leaf][coordinate]` = the feature that owns this coordinate, 0..n_features-1 without gaps.

    >>> two = Features((np.array([0, 0, 1]),), ("left", "right"), "groups")
    >>> two, two.sizes.tolist(), two.to_input(np.array([0.5, -2.0]))[0].tolist()
    (Features(groups, 2 features over (3,)), [2, 1], [0.5, 0.5, -2.0])
    """

    labels: tuple[Labels, ...]  # one per leaf, shaped like the leaf; copied and made read-only
    names: Sequence[str]  # (n_features,): a tuple, or CoordinateNames, which makes names on demand
    kind: str
    meta: Mapping[str, object] = field(default_factory=dict)  # what made them; plain JSON
    n_features: int = field(init=False)

    def __post_init__(self) -> None:
        given: object = self.labels
        if not isinstance(given, tuple) or not given:
            raise bad("labels", "Features", "a tuple with one integer array per leaf", describe(given))
        labels = tuple(integers(leaf, "Features") for leaf in given)
        for leaf in labels:
            leaf.flags.writeable = False
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "n_features", count(labels))
        object.__setattr__(self, "names", checked(self.names, self.n_features))
        try:
            object.__setattr__(self, "meta", json.loads(json.dumps(dict(self.meta))))
        except (TypeError, ValueError) as error:
            raise bad("meta", "Features", "a mapping that JSON can hold", f"{self.meta!r} ({error})") from error

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shape of every leaf."""
        return tuple(leaf.shape for leaf in self.labels)

    @property
    def sizes(self) -> Labels:
        """Coordinates per feature, (n_features,), over all leaves."""
        return np.bincount(np.concatenate([leaf.ravel() for leaf in self.labels]))

    @property
    def discrete(self) -> NDArray[np.bool_]:
        """Which features jump from x' to x instead of moving along the ray, (n_features,)."""
        found = np.zeros(self.n_features, dtype=bool)
        found[self.meta.get("discrete", [])] = True  # type: ignore[call-overload]
        return found

    def jumping(self, which: Sequence[int | str]) -> Features:
        """The same features, of which these (numbers or names) are discrete: a category has no way between two values.

        >>> columns(["age", "city"]).jumping(["city"]).discrete.tolist()
        [False, True]
        """
        if isinstance(which, str) or not isinstance(which, Sequence):
            raise bad("discrete", "Features", "a list of feature numbers or names", repr(which))
        numbers = set()
        for one in which:
            known = list(self.names).index(one) if isinstance(one, str) and one in self.names else one
            if not is_whole(known, 0) or int(known) >= self.n_features:
                raise bad("discrete", "Features", f"numbers 0..{self.n_features - 1} or names of features", repr(one))
            numbers.add(int(known))
        return replace(self, meta={**self.meta, "discrete": sorted(numbers)})

    def to_input(self, values: ArrayLike) -> tuple[NDArray[Any], ...]:
        """values (n_features,) back on the leaves: each coordinate gets its feature's value."""
        array = to_numpy(values)
        if array.shape != (self.n_features,):
            raise bad("values", "Features.to_input", f"of shape ({self.n_features},)", f"shape {array.shape}")
        return tuple(array[leaf] for leaf in self.labels)

    def collect(self, leaves: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
        """Input-shaped numbers summed up over each feature: (n_features,)."""
        total = np.zeros(self.n_features)
        for labels, leaf in zip(self.labels, leaves, strict=True):
            total += np.bincount(labels.ravel(), np.asarray(leaf, dtype=np.float64).ravel(), self.n_features)
        return total

    def fingerprint(self) -> str:
        """sha256 of the numbered partition (shapes and labels); names, kind and meta do not enter."""
        digest = hashlib.sha256(repr(self.shapes).encode())
        for leaf in self.labels:
            digest.update(np.ascontiguousarray(leaf, dtype="<i8").tobytes())
        return digest.hexdigest()

    def __repr__(self) -> str:
        plural = "feature" if self.n_features == 1 else "features"
        return f"Features({self.kind}, {self.n_features} {plural} over {' and '.join(map(str, self.shapes))})"
