"""The benchmarks' own arithmetic, on their smallest settings: they run, and say what they claim to say."""

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest
from threadpoolctl import threadpool_limits

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    """Import one benchmark as its own command line would."""
    monkeypatch.syspath_prepend(BENCHMARKS)

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    return load


def test_exact_uses_one_ray_per_coalition_and_agrees_with_the_definition(benchmark):
    exact = benchmark("exact")
    with threadpool_limits(1):
        result = exact.run(n_features=8)
    assert result["rays"]["ours"] == 2**8 - 1
    assert result["rays"]["definition"] == 8 * 2**7
    assert len(result["largest_difference"]) == 3
    assert max(result["largest_difference"].values()) <= 1e-10
    assert "MISSED" not in exact.show(result)


def test_accuracy_gains_on_algorithm_1_within_its_cost(benchmark, tmp_path):
    accuracy = benchmark("accuracy")
    result = accuracy.run(["softplus"], permutations=[10], n_seeds=2)
    assert [cell["kernel"] for cell in result["cells"]] == ["uniform", "0.75", "0.3"]
    for cell in result["cells"]:
        assert 0.9 * cell["cost"] < cell["our_cost"] <= cell["cost"] == 10 * 13 * 10
        assert cell["gain"] == pytest.approx(cell["mse_algorithm_1"] / cell["mse"])
        assert cell["gain"] > 1
        assert sum(cell["methods"].values()) == 2
    assert result["least"] <= result["geometric_mean"]
    assert result["cells"][0]["model"] in accuracy.show(result)

    path = tmp_path / "results" / "accuracy.json"
    benchmark("report").write(path, "accuracy", result)
    written = json.loads(path.read_text())
    assert written["cells"] == result["cells"]
    assert {"cores", "torch"} <= set(written["machine"])


def test_a_real_cell_is_resumed_part_by_part(benchmark, tmp_path, monkeypatch):
    real = benchmark("real_networks")
    path, computed = tmp_path / "real.json", []
    run = {"values": [1.0, 2.0], "stderr": [0.1, 0.1], "method": "adjusted rays (drift)"}
    run["cost"] = {"n_gradients": 10, "n_forwards": 2}

    def compute(cell, part, n_permutations, long_run):
        computed.append(part)
        if part == "ours" and computed.count("ours") == 1:
            raise KeyboardInterrupt
        shift = {"truth": 0.0, "algorithm": 0.5, "ours": 0.25}[part]
        return [{**run, "values": [value + shift for value in run["values"]]}]

    monkeypatch.setattr(real, "_compute", compute)
    monkeypatch.setattr(real.Cell, "load", lambda name: real.Cell(name, None, "no weights", None, None, 0.0))
    with pytest.raises(KeyboardInterrupt):
        real.run_cells(path, ["net/photo/logit/grey"], 30)
    real.run_cells(path, ["net/photo/logit/grey"], 30)
    real.run_cells(path, ["net/photo/logit/grey"], 30)
    assert computed == ["truth", "algorithm", "ours", "ours"]
    cells = json.loads(path.read_text())["cells"]
    assert "<= 1 met" in real.show(cells, 30, real.LONG_RUN)


def test_deletion_in_batches_gives_the_curves_of_the_plain_loop(benchmark):
    deletion = benchmark("deletion")
    with threadpool_limits(1):
        result = deletion.run(n_images=2, repetitions=1)
    for level, n_points in (("64 regions", 65), ("1024 pixels", 225)):
        assert result["levels"][level]["n_points"] == n_points
        assert result["levels"][level]["largest_difference"] <= 1e-5
        assert result["levels"][level]["ratio"] > 0
        assert level in deletion.show(result)


def test_targets_and_batch_compare_like_with_like(benchmark, monkeypatch):
    targets, batch = benchmark("targets"), benchmark("batch")
    monkeypatch.setattr(targets, "networks", lambda quick, all_=targets.networks: {"dense": all_(quick)["dense"]})
    monkeypatch.setattr(batch, "models", lambda all_=batch.models: {"tanh": all_()["tanh"]})
    with threadpool_limits(1):
        ten, sixteen = targets.run(quick=True), batch.run(quick=True)
    assert ten["networks"]["dense"]["gradients"] >= 0.9 * 10 * 128
    assert "ten targets" in targets.show(ten)
    row = sixteen["models"]["tanh"]
    assert row["rmse_one_call"] < 2 * row["rmse_sixteen_calls"]
    assert "16 inputs" in batch.show(sixteen)
