"""Explain a detector that returns a dict: the target reads the score of one box while the other boxes move.

Detectors sort their boxes, so "box 0" may be another object at another point of a ray. The target should therefore
refer to a *place*. The target below weights every box by how well it overlaps with the box to be explained. (A detector
that returns a list with one dict per image works the same way: `torch.stack([score(image) for image in outputs])`.)
"""

from __future__ import annotations

import torch

import gralis


class Detector(torch.nn.Module):
    """One box for each cell of a 4 x 4 grid: {"boxes": (rows, 16, 4), "scores": (rows, 16)}, best box first."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 8, stride=8), torch.nn.Tanh())
        self.head = torch.nn.Conv2d(4, 5, 1)

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        cells = self.head(self.backbone(images)).flatten(2).transpose(1, 2)  # (rows, 16, 5)
        row, column = torch.meshgrid(torch.arange(4.0), torch.arange(4.0), indexing="ij")
        corner = 8 * torch.stack([column, row], -1).reshape(16, 2).to(cells)
        boxes = torch.cat([corner + cells[..., 1:3], corner + 8 + cells[..., 3:5]], -1)
        scores, order = cells[..., 0].sort(1, descending=True)
        return {"boxes": boxes.gather(1, order[..., None].expand_as(boxes)), "scores": scores}


def overlap(boxes: torch.Tensor, box: torch.Tensor) -> torch.Tensor:
    """Intersection over union of the boxes with one box, (rows, n)."""
    sides = (torch.minimum(boxes[..., 2:], box[2:]) - torch.maximum(boxes[..., :2], box[:2])).clamp(min=0)
    common = sides.prod(-1)
    area = (boxes[..., 2:] - boxes[..., :2]).prod(-1)
    return common / (area + (box[2:] - box[:2]).prod() - common)


def main() -> gralis.Explanation:
    torch.manual_seed(0)
    detector = Detector().eval()
    image = torch.rand(1, 32, 32)
    best_box = detector(image[None])["boxes"][0, 0].detach()

    def score_there(outputs: dict[str, torch.Tensor]) -> torch.Tensor:
        weight = torch.softmax(20 * overlap(outputs["boxes"], best_box), dim=1)
        return (weight * outputs["scores"]).sum(1)

    explanation = gralis.explain(
        detector, image, target=score_there, features=gralis.features.grid(image.shape, 8), budget=600
    )
    print(explanation)
    x0, y0, x1, y1 = best_box.tolist()
    print(f"the explained box: columns {x0:.0f} to {x1:.0f}, rows {y0:.0f} to {y1:.0f}")
    return explanation


if __name__ == "__main__":
    main()
