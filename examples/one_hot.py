"""Explain a category that is coded in several columns: the columns are one feature, and the feature jumps.

There is no car half-way between "red" and "blue". If the colour is declared discrete, the model sees either the one or
the other colour at every point. If each column were a feature, the model would see cars with no colour or with two.
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
    """A price in thousands, (rows,). Red cars cost 2 more, electric cars cost 5 more and lose less value with age."""
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
