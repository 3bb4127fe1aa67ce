"""Rays to be evaluated: which coalitions, which nodes on each ray, and how discrete features jump half-way."""

from gralis.rays.request import CENSUS, PILOT, RayRequest

__all__ = ["CENSUS", "PILOT", "RayRequest"]
