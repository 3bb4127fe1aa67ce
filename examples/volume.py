"""Explain a small Conv3d network on a 3-D volume, with supervoxels (SLIC in three dimensions) as features."""

from __future__ import annotations

import numpy as np
import torch

import gralis


def main() -> gralis.Explanation:
    rng = np.random.default_rng(0)
    scan = rng.normal(0, 0.05, (12, 16, 16))
    scan[3:8, 4:9, 5:10] += 1.0  # a bright lesion

    # channel_axis=None: all three axes are spatial. shape is that of x, which also has a channel axis.
    features = gralis.features.slic(scan, n_segments=20, compactness=5, channel_axis=None, shape=(1, 12, 16, 16))

    average = torch.nn.Conv3d(1, 2, 3, padding=1)
    torch.nn.init.constant_(average.weight, 1 / 27)  # a local mean; the rest measures its bright places
    torch.nn.init.constant_(average.bias, -0.4)
    network = torch.nn.Sequential(
        average,
        torch.nn.Softplus(8),
        torch.nn.AdaptiveAvgPool3d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(2, 1, bias=False),
    ).eval()
    torch.nn.init.constant_(network[-1].weight, 10.0)

    x = torch.tensor(scan, dtype=torch.float32)[None]  # (channel, depth, height, width)
    explanation = gralis.explain(network, x, baseline=0.0, features=features, budget=400)
    print(explanation)

    heat = explanation.to_input()[0]  # (depth, height, width)
    slices = np.abs(heat).sum((1, 2))
    print(f"the slice that matters most: {slices.argmax()}")  # matplotlib: imshow(heat[slices.argmax()])
    return explanation


if __name__ == "__main__":
    main()
