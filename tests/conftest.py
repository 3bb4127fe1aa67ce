"""One torch thread per xdist worker, drawing without a display, and the hypothesis profiles."""

import os

import torch
from hypothesis import settings

os.environ.setdefault("MPLBACKEND", "Agg")

if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)

settings.register_profile("local", deadline=None)
settings.register_profile("continuous", deadline=None, derandomize=True)
settings.load_profile("continuous" if os.environ.get("CI") else "local")
