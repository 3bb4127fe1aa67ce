"""Which part of a recording sounds like speech? A real network (silero-vad, TorchScript) listens.

The network reads frames of 32 ms one after the other and keeps a state between them; it says for each how likely it is
speech. Explained is the mean over all frames, by windows of a tenth of a second: F of the recording
against that of a quiet room. (Digital silence is no baseline: the network takes roots of the energy, and the slope of a
root is infinite at 0.) The recording is made here: noise, a bell and a voice of four vowels, so the answer is known.

    pip install silero-vad
"""

from __future__ import annotations

import warnings

import numpy as np
import silero_vad
import torch
from torch import Tensor, nn

import gralis

RATE, FRAME = 16_000, 512  # samples in a second, and in a frame of the network
SECONDS, BELL, VOICE = 1.536, (0.2, 0.4), (0.8, 1.3)
VOWELS = ((730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480))  # formants, in Hz


class MeanSpeech(nn.Module):
    """The mean probability of speech over the frames of a recording, (rows, samples) -> (rows,)."""

    def __init__(self) -> None:
        super().__init__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of torch, about TorchScript
            self.network = silero_vad.load_silero_vad()

    def forward(self, recordings: Tensor) -> Tensor:
        self.network.reset_states()  # it keeps its state between calls; a recording begins without one
        frames = recordings.split(FRAME, dim=1)
        return torch.cat([self.network(frame, RATE) for frame in frames], dim=1).mean(1)


def voice(seconds: float) -> np.ndarray:
    """Four vowels a second: the overtones of a falling and rising pitch, louder near the formants of each vowel."""
    time = np.arange(int(seconds * RATE)) / RATE
    pitch = 120 * (1 + 0.15 * np.sin(2 * np.pi * 1.3 * time))
    phase, which = 2 * np.pi * np.cumsum(pitch) / RATE, (time * 4).astype(int) % len(VOWELS)
    sound = np.zeros_like(time)
    for number in range(1, 40):
        centres = np.array(VOWELS)[which].T  # (formants, samples)
        near = 1 / (1 + ((number * pitch - centres) / np.array([[80], [100], [140]])) ** 2)
        sound += np.array([1, 0.6, 0.3]) @ near / np.sqrt(number) * np.sin(number * phase)
    sound *= np.sqrt(np.abs(np.sin(np.pi * time * 4)))
    return np.asarray(0.5 * sound / np.abs(sound).max())


def room(seed: int) -> np.ndarray:
    """The noise of a quiet room."""
    return 0.003 * np.random.default_rng(seed).normal(size=int(SECONDS * RATE))


def recording() -> Tensor:
    """The room, then a bell, then the voice."""
    sound = room(1)
    start, stop = (int(second * RATE) for second in BELL)
    sound[start:stop] += 0.3 * np.sin(2 * np.pi * 880 * np.arange(stop - start) / RATE)
    start, stop = (int(second * RATE) for second in VOICE)
    sound[start:stop] += voice(VOICE[1] - VOICE[0])[: stop - start]
    return torch.tensor(sound, dtype=torch.float32)


def main() -> gralis.Explanation:
    x = recording()
    windows = gralis.features.windows(len(x), RATE // 10, rate=RATE)
    quiet = torch.tensor(room(2), dtype=torch.float32)
    explanation = gralis.explain(MeanSpeech().eval(), x, baseline=quiet, features=windows, budget=320)
    print(explanation)
    return explanation


if __name__ == "__main__":
    main()
