"""The Ishigami function, the usual test of sensitivity indices: one pure interaction, one input without main effect."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sin
from typing import Any

import numpy as np
import torch

from gralis.games.anova import Anova
from gralis.games.exact import Coalition, Number, number, points, vector

__all__ = ["Ishigami"]


@dataclass(frozen=True)
class Ishigami(Anova):
    """F = sin z1 + a sin^2 z2 + b z3^4 sin z1, inputs uniform on [-pi, pi].

    Parameters
    ----------
    a : float, default=7.0
        The size of the second term.
    b : float, default=0.1
        The size of the interaction.

    Examples
    --------
    >>> Ishigami().first_order().round(4)
    array([0.3139, 0.4424, 0.    ])
    >>> Ishigami().total().round(4)
    array([0.5576, 0.4424, 0.2437])
    """

    a: float = 7.0
    b: float = 0.1

    n_features = 3
    bounds = ((-pi, pi),) * 3

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            object.__setattr__(self, name, float(number(getattr(self, name), name, "Ishigami")))

    def __call__(self, z: Any) -> Any:
        """F of every row of z.

        Parameters
        ----------
        z : tensor or array of shape (rows, 3)
            The points.

        Returns
        -------
        tensor or array of shape (rows,)
            A differentiable tensor for a tensor, an array otherwise.
        """
        z = points(z, 3, "Ishigami")
        sine = torch.sin if isinstance(z, torch.Tensor) else np.sin
        return sine(z[:, 0]) * (1 + self.b * z[:, 2] ** 4) + self.a * sine(z[:, 1]) ** 2

    def mean(self) -> Number:
        """E F = a / 2."""
        return self.a / 2

    def parts(self) -> dict[Coalition, Number]:
        """V_1 = (1 + b pi^4 / 5)^2 / 2, V_2 = a^2 / 8, V_13 = 8 b^2 pi^8 / 225."""
        variances = {
            (0,): (1 + self.b * pi**4 / 5) ** 2 / 2,
            (1,): self.a**2 / 8,
            (0, 2): 8 * self.b**2 * pi**8 / 225,
        }
        return {t: var for t, var in variances.items() if var}

    def hoeffding(self, x: object) -> dict[Coalition, Number]:
        """f_1 = (1 + b pi^4 / 5) sin x1, f_2 = a (sin^2 x2 - 1/2), f_13 = b (x3^4 - pi^4 / 5) sin x1.

        Parameters
        ----------
        x : sequence of 3 numbers
            One point.

        Returns
        -------
        dict from tuple of int to float
        """
        x1, x2, x3 = (float(value) for value in vector(x, 3, "x", "Ishigami"))
        return {
            (0,): (1 + self.b * pi**4 / 5) * sin(x1),
            (1,): self.a * (sin(x2) ** 2 - 0.5),
            (0, 2): self.b * (x3**4 - pi**4 / 5) * sin(x1),
        }
