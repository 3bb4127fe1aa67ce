"""A run that tests start in a process of its own, to be killed: python small.py FOLDER [SECONDS that a step takes]."""

import os
import signal
import sys
import time

import torch
from torch import nn

import gralis

OPTIONS = {"target": "predicted", "budget": 120, "block_size": 3, "ledgers": True, "progress": False}
N = 14


def network() -> nn.Module:
    generator = torch.Generator().manual_seed(5)
    net = nn.Sequential(nn.Linear(6, 8), nn.Softplus(), nn.Linear(8, 3))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return net.eval()


def inputs() -> torch.Tensor:
    return torch.randn(N, 6, generator=torch.Generator().manual_seed(6))


def explain(folder, **options):
    return gralis.explain_many(network(), inputs(), out=folder, **{**OPTIONS, **options})


def _waiting(original, seconds):
    def step(*arguments):
        print("step", flush=True)
        time.sleep(seconds)
        result = original(*arguments)
        time.sleep(seconds)
        return result

    return step


def main(folder: str, slowly: str = "") -> None:
    torch.set_num_threads(1)
    if slowly:  # every step that touches the disk takes a while, so that a kill can come between any two of them
        for name in ("fsync", "replace"):
            setattr(os, name, _waiting(getattr(os, name), float(slowly)))
    print("ready", flush=True)
    explain(folder)
    print("done", flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    main(*sys.argv[1:])
