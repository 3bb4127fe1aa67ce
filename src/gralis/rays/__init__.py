"""Rays to be evaluated: which coalitions, which nodes on each ray, and where discrete features jump."""

from gralis.rays.request import CENSUS, PILOT, RayRequest

__all__ = ["CENSUS", "PILOT", "RayRequest"]
