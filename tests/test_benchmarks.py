"""The benchmarks' own arithmetic, on their smallest settings: they run, and say what they claim to say."""

import importlib
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

import gralis
import reference

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


def test_closed_forms_of_the_shapley_games_agree_with_enumeration(benchmark):
    games = benchmark("coalition_games")
    small = {
        "trees": games.trees(9),
        "sparse": games.sparse(9),
        "sum of networks": games.sum_of_networks(9, n_networks=3, size=5),
        "grid network": games.grid_network(np.tanh, 4, n=9),
        "voting": games.voting(9),
    }
    for name, known in small.items():
        model = gralis.models.blackbox(lambda z, known=known: known.value(z > 0.5))
        exact = gralis.explain(model, np.ones(9), baseline=0.0, plan="values", budget=None)
        np.testing.assert_allclose(known.shapley, exact.values, rtol=0, atol=1e-9, err_msg=name)
        np.testing.assert_allclose(games.enumerated(known.value, 9).shapley, exact.values, rtol=0, atol=1e-9)


def test_shapley_compares_at_equal_calls_and_resumes(benchmark, tmp_path, monkeypatch):
    shapley, path = benchmark("shapley"), tmp_path / "shapley.json"
    peers = ["shapiq KernelSHAP, paired", "shapiq permutation"]
    assert set(peers) < set(shapley.offered(14, 500)) == set(shapley.PEERS)
    assert "shapiq kADDSHAP 3" not in shapley.offered(30, 2000)
    monkeypatch.setattr(shapley, "offered", lambda n, budget: peers)  # those that need no further package
    result = shapley.run(["tanh, 14", "trees, 14"], [200], n_seeds=2, path=path)
    assert [cell["game"] for cell in result["cells"]] == ["tanh, 14", "trees, 14"]
    for cell in result["cells"]:
        rmse = {peer: found["rmse"] for peer, found in cell["peers"].items()}
        assert cell["ratio"] == pytest.approx(cell["ours"]["rmse"] / min(rmse.values()))
        assert rmse[cell["best"]] == min(rmse.values())
        assert all(found["distinct"] <= found["calls"] <= 200 for found in cell["peers"].values())
        assert 150 < cell["ours"]["calls"] <= 200
    assert result["worst"] == max(cell["ratio"] for cell in result["cells"]) < 1
    assert "MISSED" not in shapley.show(result)

    monkeypatch.setattr(shapley, "cell_of", lambda *cell: pytest.fail(f"{cell} was computed again"))
    kept = json.loads(path.read_text())["cells"]
    assert shapley.run(["tanh, 14", "trees, 14"], [200], n_seeds=2, kept=kept)["cells"] == result["cells"]


def test_a_real_cell_is_resumed_part_by_part(benchmark, tmp_path, monkeypatch):
    real = benchmark("real_networks")
    path, computed = tmp_path / "real.json", []
    run = {"values": [1.0, 2.0], "stderr": [0.1, 0.1], "method": "adjusted rays (drift)"}
    run["cost"] = {"n_gradients": 10, "n_forwards": 2}

    def compute(cell, part, n_permutations, long_run, n_nodes):
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
    assert "<= 1 met" in real.show(cells, ("truth 3000", "algorithm 1 m=30", "ours m=30"))
    real.run_cells(path, ["net/photo/logit/grey"], 30, n_nodes=2)
    assert computed[4:] == ["ours"]  # beside the others, which are not computed again
    assert "ours m=30 n_nodes=2" in json.loads(path.read_text())["cells"]["net/photo/logit/grey"]


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


def test_many_compares_the_engine_with_the_same_work_and_sees_memory(benchmark, monkeypatch):
    pytest.importorskip("pyarrow")
    pytest.importorskip("psutil")
    benchmark("report")
    spec = importlib.util.spec_from_file_location("benchmark_many", BENCHMARKS / "many.py")  # tests/many has its name
    many = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(many)
    monkeypatch.setattr(many, "_alone", lambda what, n: json.dumps(many.in_this_process(what, n)))
    monkeypatch.setattr(many, "workers", lambda quick: None)
    before = torch.get_num_threads()
    result = many.run(quick=True)
    torch.set_num_threads(before)
    assert result["throughput"]["ratio"] == result["throughput"]["engine"][0] / result["throughput"]["bare"][0]
    assert result["memory"]["peak_bytes"][1] >= result["memory"]["peak_bytes"][0] > 2**20
    assert "local engine / bare model" in many.show(result)


def test_the_truth_of_coverage_follows_the_definitions(benchmark):
    truths, sampled = benchmark("coverage_truth"), benchmark("coverage_sampled")
    x = np.array([1.0, 0.5, 2.0])
    net = benchmark("coverage_models").MODELS["tanh"](3, np.random.default_rng(1))
    truth, kernel = truths.Truth(net, x), reference.gaussian(x**2, 0.75, "relative")
    nodes = reference.gauss_panels(20, 8)
    by_definition = reference.definition_1(net, x, np.zeros(3), kernel, nodes)
    np.testing.assert_allclose(truth.phi(), by_definition, rtol=0, atol=1e-13)
    value = reference.game(net, x, np.zeros(3))
    np.testing.assert_allclose(truth.marginal(), reference.shapley_by_orders(value, 3), rtol=0, atol=1e-13)
    np.testing.assert_allclose(truth.marginal(0.75), reference.endpoint(value, 3, kernel), rtol=0, atol=1e-13)

    kinks = truths.Truth(lambda z: torch.relu(z.sum(1) - 0.6) + torch.relu(z[:, 0] - 0.3005), np.ones(2))
    np.testing.assert_allclose(kinks.rays, [[1.0995, 0], [0, 0.4], [1.3995, 0.7]], rtol=0, atol=1e-12)
    step = truths.Truth(lambda z: torch.sigmoid(1e4 * (z.sum(1) - 0.7)), np.ones(2))
    np.testing.assert_allclose(step.rays, [[1, 0], [0, 1], [0.5, 0.5]], rtol=0, atol=1e-9)
    product = truths.Truth(lambda z: z.prod(1), np.ones(2))
    assert product.pairs == {(0, 1): 1.0}
    together = 1 / (1 + np.exp(0.5 / (2 * 0.75**2)))  # q_i of both features; phi_i is half of it
    parts = {"observed": 1 - together, "path": 0.5, "numerical": 0.0, "kernel": 0.5 - together}
    assert product.residual == pytest.approx(parts, abs=1e-12)

    polynomial, phi = sampled.pairwise(5, 0.2, 0)
    np.testing.assert_allclose(phi, polynomial.phi(0.2), rtol=0, atol=1e-12)


def test_coverage_counts_claims_and_resumes(benchmark, tmp_path):
    cells, small, claims = benchmark("coverage_cells"), benchmark("coverage_small"), benchmark("coverage_claims")
    covers = cells.Outcome.of(np.array([1.0, 2.0]), np.array([0.2, 0.1]), np.array([1.1, 2.0]), None)
    assert covers == cells.Outcome(True, False, 0.1, pytest.approx(0.05))
    assert not cells.Outcome.of(np.array([1.0]), np.array([0.1]), np.array([1.2]), None).held
    assert cells.Outcome.of(np.array([1.0]), np.array([np.nan]), np.array([1.0]), None) == cells.Outcome(
        False, True, np.inf
    )

    drawn = [(True, False), (False, True), (False, False), (True, True)]
    found = cells.run({"a": lambda seed: cells.Outcome(*drawn[seed])}, 4, tmp_path / "rows.json")[0]
    assert [found[key] for key in ("held", "fine", "trusted", "doubts")] == [0.5, 0.75, 0.5, 0.5]
    kept = cells.run({"a": lambda seed: pytest.fail("it was computed again")}, 4, tmp_path / "rows.json")
    assert kept == [found]

    smooth = small.claims()["tanh, n = 3"](0)
    assert smooth.held
    assert not smooth.doubt
    assert smooth.error < 1e-9
    parts = claims.residual("tanh", 3, {}, 0)
    assert list(parts) == ["observed", "path", "numerical", "kernel"]
    assert all(part.held for part in parts.values())
    order = claims.permuted(claims.float32_network(4, 1), 2)
    points = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    np.testing.assert_allclose(order(points).detach(), claims.float32_network(4, 1)(points).detach(), rtol=0, atol=1e-5)


def test_trees_agree_with_shap(benchmark):
    trees = benchmark("trees")
    result = trees.run(n_trees=5, depth=3, n_columns=6, n_background=4, n_rows=10, n_repeats=1)
    assert result["largest_difference"] < 1e-6
    assert result["ratio_to_shap"]["shap"] == 1
    assert "5 trees of depth 3" in trees.show(result)


def test_the_first_minutes_count_lines_and_tell_failures(benchmark, monkeypatch):
    first = benchmark("first_minutes")
    names = ("network exported to ONNX", "TransformerEncoder, batch axis left on")
    result = first.run(names)
    assert [case["name"] for case in result["cases"]] == list(names)
    assert result["works"] == 2
    assert [case["lines"] for case in result["cases"]] == [3, 2]
    assert any("batch axis of 1" in note for note in result["cases"][1]["notes"])
    wrong = first.Case("wrong", "none", "model = torch.nn.Linear(2, 2).eval()", "print(gralis.explain(model, 'x'))")
    told = first.outcome(wrong)
    assert not told.works
    assert "'x' parameter of explain" in told.result
    assert len({(case.name) for case in first.CASES}) == len(first.CASES) >= 20


@pytest.mark.parametrize("name", ["coverage_small", "coverage_sampled", "coverage_claims", "coverage_sensitivity"])
def test_the_tables_of_coverage_are_those_of_the_committed_results(benchmark, name):
    results = Path(__file__).parents[1] / "benchmarks" / "results"
    found = json.loads((results / f"{name}.json").read_text())
    rows = found.get("rows", found)
    script = benchmark("coverage_sensitivity" if rows is found else "coverage_cells")
    assert (results / f"{name}.md").read_text() == script.markdown(rows) + "\n"
    assert f'--8<-- "benchmarks/results/{name}.md"' in (results.parents[1] / "docs" / "coverage.md").read_text()
