"""The scan over numbers of regions: a structure smaller than a region needs finer ones, and the scan says so."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gralis
from gralis import GralisError, granularity

pytest.importorskip("skimage")


def spot(z: torch.Tensor) -> torch.Tensor:
    """Looks at a small square only."""
    return z[:, 0, 4:8, 4:8].mean((1, 2))


def picture() -> torch.Tensor:
    x = torch.full((1, 24, 24), 0.2, dtype=torch.float64)
    x[:, 4:8, 4:8] = 1.0
    return x


def test_small_structures_need_small_regions() -> None:
    result = granularity(spot, picture(), (2, 40), budget=400, compactness=1)
    coarse, fine = result.scales
    assert coarse.explanation.n_features < fine.explanation.n_features
    assert fine.deletion.value < coarse.deletion.value
    assert fine.insertion.value > coarse.insertion.value
    assert result.best is fine
    for scale in result.scales:
        e = scale.explanation
        assert scale.residual == pytest.approx((e.delta - e.values.sum()) / abs(e.delta))
    assert "largest gap" in repr(result)
    assert str(fine.n_segments) in repr(result)


def test_scales_are_explanations_of_their_own() -> None:
    result = granularity(spot, picture(), [9], budget=300, compactness=1, seed=4)
    features = gralis.features.slic(picture(), 9, 1)
    alone = gralis.explain(spot, picture(), features=features, budget=300, seed=4)
    assert result.scales[0].explanation.values.tolist() == alone.values.tolist()
    assert np.isfinite(result.scales[0].error)


def test_bad_scans() -> None:
    with pytest.raises(GralisError, match="n_segments"):
        granularity(spot, picture(), [])
    with pytest.raises(GralisError, match="n_segments"):
        granularity(spot, picture(), [0])
    with pytest.raises(GralisError, match="segmentation is what is varied"):
        granularity(spot, picture(), [4], features=gralis.features.grid((1, 24, 24), 8))
