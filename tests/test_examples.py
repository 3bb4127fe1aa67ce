"""Every example runs as it stands, and says what it claims to say."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gralis

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    state = torch.random.get_rng_state()
    try:
        return module.main()
    finally:
        torch.random.set_rng_state(state)


def share(explanation: gralis.Explanation, mask: np.ndarray) -> float:
    """The part of sum |phi| that lies on this part of the input."""
    spread = np.abs(explanation.features.to_input(explanation.values / explanation.features.sizes)[0])
    return float(spread[mask].sum() / spread.sum())


def text(e: Any) -> None:
    assert list(e.names) == ["[CLS]", "the", "plot", "was", "not", "good", "[SEP]"]
    assert {name for name, _, _ in e.top(2)} == {"not", "good"}  # the opinion, and what turns it around
    assert e.values[[0, 6]].tolist() == [0.0, 0.0]  # the same in x and x'
    assert e.token_html().count("<span") == 7


def tabular(e: Any) -> None:
    assert e.n_features == 30
    assert e.names[0] == "mean radius"
    assert e.delta > 0  # row 0 is malignant
    assert len(e.f_baselines) == 8


def one_hot(e: Any) -> None:
    """price is bilinear in (age, fuel) and linear beside: closed form of phi on those."""
    assert list(e.names) == ["age", "mileage", "colour", "fuel"]
    assert e.values[1] == pytest.approx(3.0, abs=1e-4)
    assert e.values[2] == pytest.approx(2.0, abs=1e-4)
    assert e.shapley().values == pytest.approx([3.0, 3.0, 2.0, 5 + 0.5 * 6.0], abs=1e-4)


def missing_values(e: Any) -> None:
    assert list(e.names) == ["age", "income", "debt"]
    assert e.top(1)[0][0] in ("income", "debt")
    assert e.values[1] > 1.0  # hidden: 1.5 and the debt that counts twice


def volume(e: Any) -> None:
    assert e.to_input().shape == (1, 12, 16, 16)
    lesion = np.zeros((1, 12, 16, 16), dtype=bool)
    lesion[0, 3:8, 4:9, 5:10] = True
    assert share(e, lesion) > 5 * lesion.mean()


def segmentation_output(e: Any) -> None:
    reach = np.zeros((3, 24, 24), dtype=bool)
    reach[:, 0:18, 0:18] = True  # patches within three pixels of the region
    assert share(e, ~reach) == pytest.approx(0.0, abs=1e-6)


def detection_output(e: Any) -> None:
    assert e.n_features == 16
    assert e.top(1)[0][1] != 0


def layers(both: Any) -> None:
    assert [level.explanation.n_features for level in both.levels] == [9, 9]
    for level in both.levels:
        assert level.estimate.values.sum() == pytest.approx(level.explanation.values.sum(), abs=1e-6)


def black_box(e: Any) -> None:
    assert e.values.sum() == pytest.approx(e.delta, abs=1e-9)
    assert e.cost.n_gradients == 0
    assert all(name.startswith("mean") for name in e.names)


def planted_rule(found: dict[str, float]) -> None:
    assert found == {"right": 1.0, "passage": 1.0, "word": 1.0}  # in each of the few prompts of the short version


def template_classifier(result: Any) -> None:
    explanation, worst = result
    assert [name.split()[1] for name in explanation.names] == ["alcohol", "malic", "ash", "magnesium", "phenols", "hue"]
    assert worst < 0.15  # the weights lie between -1.5 and 2


def speech(e: Any) -> None:
    """The voice sounds from 0.8 to 1.3 s and a bell from 0.2 to 0.4 s; only the voice is speech."""
    voice = [f"{a}-{b} s" for a, b in (("0.8", "0.9"), ("0.9", "1"), ("1", "1.1"), ("1.1", "1.2"), ("1.2", "1.3"))]
    assert {name for name, _, _ in e.top(5)} == set(voice)
    shapley, places = e.shapley(), [list(e.names).index(name) for name in voice]
    assert (shapley.interval()[places, 0] > 0).all()
    others = np.delete(shapley.values, places)
    assert np.abs(others).max() < shapley.values[places].min()
    assert shapley.values[places].sum() > 0.9 * e.delta
    assert e.f_x > 0.3 > 0.1 > e.f_baseline


def spanish_reviews(e: Any) -> None:
    """The network by its formula, in NumPy, from the embeddings that were explained; and three opinions."""
    import h5py

    with h5py.File(next(Path(p) for p in _files("sentiment_analysis_spanish")) / "saved_model" / "model.h5") as file:
        kernel, bias = (np.array(file[f"conv1d_1/conv1d_1/{part}:0"]) for part in ("kernel", "bias"))
        weight, offset = (np.array(file[f"dense_1/dense_1/{part}:0"]) for part in ("kernel", "bias"))
    x = e.endpoints.x[0]
    windows = np.stack([x[k : k + 498] for k in range(3)], axis=1)  # (places, 3, 20)
    pooled = np.maximum(np.einsum("pkd,kdf->pf", windows, kernel) + bias, 0).max(0)
    assert e.f_x == pytest.approx(float(pooled @ weight[:, 0] + offset[0]), abs=1e-3)
    between = dict(zip(e.names, e.interval(), strict=True))
    assert between["aburrida"][1] < 0 < min(between["maravillosa"][0], between["excelentes"][0])
    assert e.values[-1] == 0  # padding stays what it is


def _files(package: str) -> Any:
    spec = importlib.util.find_spec(package)
    assert spec
    return spec.submodule_search_locations


#: What an example needs beyond what gralis and its extras bring.
NEEDS = {
    "text": "transformers", "planted_rule": "transformers", "template_classifier": "transformers",
    "speech": "silero_vad", "spanish_reviews": "sentiment_analysis_spanish",
}  # fmt: skip
CLAIMS = {
    f.__name__: f
    for f in (
        text, tabular, one_hot, missing_values, volume, segmentation_output, detection_output, layers, black_box,
        planted_rule, template_classifier, speech, spanish_reviews,
    )
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
        pytest.skip(f"could not import {NEEDS[name]!r}")
    CLAIMS[name](run(name))  # an example without a claim fails here
    printed = capsys.readouterr().out
    assert re.search(r"F\(x\)|phi|weights", printed)
