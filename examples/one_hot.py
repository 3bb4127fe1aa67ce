"""A category coded in several columns is one feature: its columns are switched together, and they jump.

Half-way between "red" and "blue" no car exists. Declared discrete, a colour is the one or the other at every point the
model is asked about. Columns one by one would mix cars without any colour, or with two.
"""

from __future__ import annotations

import torch

import gralis

COLUMNS = ["age", "mileage", "colour=red", "colour=blue", "colour=black", "fuel=petrol", "fuel=electric"]
GROUPS = {
    "colour": ["colour=red", "colour=blue", "colour=black"],
    "fuel": ["fuel=petrol", "fuel=electric"],
}


def price(cars: torch.Tensor) -> torch.Tensor:
    """A price in thousands, (rows,): red cars cost 2 more, electric ones 5 more, and age takes less of those."""
    age, mileage, red, blue, black, petrol, electric = cars.unbind(1)
    assert ((red + blue + black == 1) & (petrol + electric == 1)).all(), "a car that cannot exist"
    assert torch.isin(cars[:, 2:].detach(), torch.tensor([0.0, 1.0])).all(), "a car half-way between two colours"
    return 30 + 2 * red + blue + 5 * electric - age * (1.0 * petrol + 0.5 * electric) - 0.1 * mileage


def main() -> gralis.Explanation:
    car = torch.tensor([4.0, 60.0, 1, 0, 0, 0, 1])  # red, electric
    typical = torch.tensor([8.0, 90.0, 0, 0, 1, 1, 0])  # black, petrol
    features = gralis.features.columns(COLUMNS, groups=GROUPS, discrete=list(GROUPS))
    explanation = gralis.explain(price, car, baseline=typical, features=features)
    print(explanation)
    return explanation


if __name__ == "__main__":
    main()
