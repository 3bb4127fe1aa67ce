"""Explain a network from its input and from a convolution, and combine both on segments of the input.

With a layer, the ray runs between the activations of x and of x', and the rest of the network is the function. The
cells of the layer are mapped to segments by the area they share, which keeps the sum. `gralis.multiscale` does this for
several levels and combines them with weights.
"""

from __future__ import annotations

import torch

import gralis


def main() -> gralis.MultiScale:
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 6, 3, stride=2, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(6, 8, 3, stride=2, padding=1),
        torch.nn.Tanh(),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 6 * 6, 4),
    ).eval()
    photo = torch.rand(3, 24, 24)

    cells = gralis.features.grid((6, 12, 12), 4)  # of the layer's output: 3 x 3 blocks of cells with all channels
    channels = gralis.features.channels((6, 12, 12))
    options = {"target": 1, "budget": 400, "baseline": "mean-color"}
    print(gralis.explain(network, photo, layer="1", features=channels, **options))  # which of its channels matter

    segments = gralis.features.grid(photo.shape, 8)
    both = gralis.multiscale(network, photo, levels=[segments, ("1", cells)], on=segments, **options)
    print(both)
    return both


if __name__ == "__main__":
    main()
