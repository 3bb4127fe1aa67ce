"""A run that tests start in a process of its own, to be killed: python small.py FOLDER [SECONDS that a step takes]."""

import os
import signal
import sys
import time
from pathlib import Path

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


class Deadly(nn.Module):
    """Kills its own process on inputs with a large first number: once, or always."""

    def __init__(self, mark, always):
        super().__init__()
        self.net, self.mark, self.always = network(), str(mark), always

    def forward(self, x):
        if (x[:, 0] > 50).any() and (self.always or not Path(self.mark).exists()):
            Path(self.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.net(x)


class Marked(nn.Module):
    """Leaves the number of its process in a folder, and takes its time."""

    def __init__(self, folder):
        super().__init__()
        self.net, self.folder = network(), str(folder)

    def forward(self, x):
        Path(self.folder, str(os.getpid())).touch()
        time.sleep(0.1)
        return self.net(x)


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


def main(folder: str, slowly: str = "", engine: str = "local") -> None:
    torch.set_num_threads(1)
    if slowly:  # every step that touches the disk takes a while, so that a kill can come between any two of them
        for name in ("fsync", "replace"):
            setattr(os, name, _waiting(getattr(os, name), float(slowly)))
    print("ready", flush=True)
    explain(folder, engine=engine)
    print("done", flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    main(*sys.argv[1:])
