"""Explain why a segmentation network sees class 1 *in one region*: the target reads that region of the output."""

from __future__ import annotations

import torch

import gralis


def main() -> gralis.Explanation:
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.Tanh(), torch.nn.Conv2d(8, 2, 5, padding=2)
    ).eval()  # (rows, 3, 24, 24) -> logits (rows, 2, 24, 24)
    photo = torch.rand(3, 24, 24)
    region = torch.zeros(24, 24, dtype=torch.bool)
    region[4:10, 4:10] = True  # drawn by hand, or the pixels where the network says class 1

    def in_the_region(logits: torch.Tensor) -> torch.Tensor:
        """The mean margin of class 1 over the region, (rows,)."""
        margin = logits[:, 1] - logits[:, 0]  # (rows, 24, 24)
        return margin[:, region].mean(1)

    explanation = gralis.explain(
        network,
        photo,
        baseline="mean-color",
        target=in_the_region,
        features=gralis.features.grid(photo.shape, 6),
        budget=600,
    )
    print(explanation)
    return explanation


if __name__ == "__main__":
    main()
