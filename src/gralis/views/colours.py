"""The colours of all pictures: red raises the output, blue lowers it."""

from __future__ import annotations

__all__ = ["AGAINST", "DIVERGING", "FOR", "GREY", "INK", "LINES", "red_green_blue"]

FOR, AGAINST, INK, GREY = "#d6604d", "#4393c3", "#222222", "#999999"
#: The colour map of heat maps. Every common kind of colour blindness leaves its two ends distinct.
DIVERGING = "RdBu_r"
#: The colours of Okabe and Ito, which stay distinct under every common kind of colour blindness.
LINES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")


def red_green_blue(colour: str) -> tuple[int, int, int]:
    """The three parts of a colour, each from 0 to 255.

    >>> red_green_blue("#d6604d")
    (214, 96, 77)
    """
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return red, green, blue
