"""The sentence of a certificate says where its numbers come from."""

from __future__ import annotations

import pytest
import torch

from gralis import GralisError, explain

X = torch.ones(3, dtype=torch.float64)


def cubic(z: torch.Tensor) -> torch.Tensor:
    return z[:, 0] ** 3 + z[:, 1] * z[:, 2]


def test_fixed_nodes_on_all_rays_have_no_replicates() -> None:
    sentence = repr(explain(cubic, X, plan="exhaustive", quadrature="midpoint", n_nodes=2).certificate())
    assert "by the enumeration of all coalitions; of this, at most " in sentence
    assert "errors that no replicate shows" in sentence
    assert "max-t" not in sentence


def test_sampled_rays_have_replicates() -> None:
    sentence = repr(explain(cubic, X, plan="independent", budget=200).certificate())
    assert "by the max-t quantile of 16 replicates; no quadrature error" in sentence


def test_values_are_brought_to_features_only() -> None:
    with pytest.raises(GralisError, match=r"'features' parameter of on must be a Features.*Got a str"):
        explain(cubic, X).on("grid")  # type: ignore[arg-type]
