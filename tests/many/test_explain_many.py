"""explain_many in one process: what it gives for every kind of input, and what it does with bad ones."""

import json

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import gralis
from gralis.errors import GralisError
from gralis.many.result_tables import unpack

QUICK = {"budget": 40, "progress": False}


@pytest.fixture
def linear():
    """phi of a linear model is weight * (x - x'), whatever the coalitions: the truth of every test here."""
    net = nn.Linear(4, 3).eval()
    with torch.no_grad():
        net.weight.copy_(torch.arange(12.0).reshape(3, 4) - 5)
    return net


def xs(n=7, seed=0):
    return torch.randn(n, 4, generator=torch.Generator().manual_seed(seed))


def phi(results):
    table = results.values_table().to_pydict()
    found = {}
    for name, feature, value in zip(table["input"], table["feature"], table["phi"], strict=True):
        found.setdefault(name, {})[feature] = value
    return {name: np.array([row[i] for i in range(len(row))]) for name, row in found.items()}


def test_every_input_gets_its_values_whatever_holds_the_inputs(linear, tmp_path):
    x, truth = xs(), (linear.weight[1] * xs()).detach().numpy()
    names = [f"n{k}" for k in range(7)]

    class Streamed(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(x)

    ways = {
        "batch": (x, None),
        "numpy": (x.numpy(), None),
        "list": (list(x), None),
        "data set": (TensorDataset(x, torch.arange(7)), None),
        "loader": (DataLoader(TensorDataset(x, torch.arange(7)), batch_size=3), None),
        "stream": (Streamed(), None),
        "generator": ((row for row in x), None),
        "named": (x, names),
        "named stream": ((row for row in x), iter(names)),
        "dict": (dict(zip(names, x, strict=True)), None),
    }
    for number, (way, (inputs, ids)) in enumerate(ways.items()):
        found = gralis.explain_many(
            linear, inputs, out=tmp_path / str(number), ids=ids, target=1, block_size=3, **QUICK
        )
        own = names if ids or way == "dict" else [str(k) for k in range(7)]
        assert list(found.ids) == own, way
        values = phi(found)
        for name, row in zip(own, truth, strict=True):
            assert values[name] == pytest.approx(row, abs=1e-5), way
        labels = found.inputs_table()["label"].to_pylist()
        assert labels == ([str(k) for k in range(7)] if way in ("data set", "loader") else [None] * 7)


def test_rows_of_tables_and_pictures_of_folders(linear, tmp_path):
    x = xs(5).double().numpy()
    rows = [[*map(str, row.tolist()), f"p{k}", str(k % 3)] for k, row in enumerate(x)]
    lines = ["a,b,c,d,who,class", *map(",".join, rows)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    source = gralis.many.table(tmp_path / "t.csv", id="who", label="class")
    found = gralis.explain_many(linear, source, out=tmp_path / "csv", target="label", **QUICK)
    assert found.values_table()["name"].to_pylist()[:4] == ["a", "b", "c", "d"]
    for k, row in enumerate(x):
        assert phi(found)[f"p{k}"] == pytest.approx(linear.weight[k % 3].detach().numpy() * row, abs=1e-5)
    assert gralis.many.means(tmp_path / "t.csv", drop=["who", "class"]) == pytest.approx(x.mean(0))

    import pyarrow as pa
    import pyarrow.parquet

    pa.parquet.write_table(pa.table({name: x[:, i] for i, name in enumerate("abcd")}), tmp_path / "t.parquet")
    again = gralis.explain_many(linear, tmp_path / "t.parquet", out=tmp_path / "parquet", target=0, **QUICK)
    assert phi(again)["2"] == pytest.approx(linear.weight[0].detach().numpy() * x[2], abs=1e-5)

    image = pytest.importorskip("PIL.Image")
    for name, shade in (("b.png", 40), ("deep/a.png", 200), ("broken.png", None)):
        path = tmp_path / "pictures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if shade is None:
            path.write_bytes(b"no picture")
        else:
            image.new("RGB", (12, 12), (shade, 0, 255)).save(path)
    (tmp_path / "outside.png").write_bytes((tmp_path / "pictures" / "b.png").read_bytes())
    (tmp_path / "pictures" / "link.png").symlink_to(tmp_path / "outside.png")
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 2)).eval()
    source = gralis.many.folder(tmp_path / "pictures", size=8)
    seen = gralis.explain_many(
        net, source, out=tmp_path / "seen", target=0, features=lambda x: gralis.features.grid(x.shape, 4), **QUICK
    )
    assert list(seen.ids) == ["b.png", "broken.png", "deep/a.png", "link.png"]
    reasons = {failure.id: failure.reason for failure in seen.failures}
    assert set(reasons) == {"broken.png", "link.png"}
    assert "lies outside the folder" in reasons["link.png"]
    assert set(phi(seen)) == {"b.png", "deep/a.png"}


def test_an_order_is_the_same_order_after_shuffling(tmp_path):
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 1)).eval()
    x = torch.randn(8, 5, generator=torch.Generator().manual_seed(1))
    names, order = list("hgfedcba"), [3, 1, 7, 0, 2, 6, 5, 4]
    straight = gralis.explain_many(net, x, ids=names, out=tmp_path / "a", block_size=3, budget=60)
    shuffled = gralis.explain_many(
        net, x[order], ids=[names[k] for k in order], out=tmp_path / "b", block_size=3, budget=60
    )
    assert straight.values_table().equals(shuffled.values_table())
    other = gralis.explain_many(net, x, ids=names, out=tmp_path / "c", block_size=3, budget=60, seed=1)
    assert not other.values_table().equals(straight.values_table())


def test_one_bad_input_is_named_and_the_others_do_not_notice(linear, tmp_path):
    x = list(xs(6))
    spoiled = [*x[:2], torch.full((4,), torch.nan), x[3], torch.zeros(4), "no input"]
    found = gralis.explain_many(linear, spoiled, out=tmp_path / "some", target=1, **QUICK)
    assert [failure.id for failure in found.failures] == ["2", "4", "5"]
    assert "nan" in found.failures[0].reason
    assert "equals the baseline" in found.failures[1].reason
    assert set(phi(found)) == {"0", "1", "3"}
    assert "3 of them without a result" in repr(found)
    rows = found.inputs_table().to_pylist()
    assert [row["f_x"] is None for row in rows] == [False, False, True, False, True, True]
    with pytest.raises(GralisError, match=r"Input '2' cannot be explained: .*nan"):
        gralis.explain_many(linear, spoiled, out=tmp_path / "strict", target=1, strict=True, **QUICK)

    def shy(points):  # fails on one input only, and only once it is evaluated
        if (points[:, 0] > 100).any():
            raise RuntimeError("too large")
        return points.sum(1)

    late = gralis.explain_many(shy, [*x[:3], torch.full((4,), 200.0), x[4]], out=tmp_path / "late", **QUICK)
    assert [failure.id for failure in late.failures] == ["3"]
    assert "too large" in late.failures[0].reason
    assert phi(late)["4"] == pytest.approx(x[4].numpy(), abs=1e-5)


def test_a_row_per_input_says_what_the_explanation_says(linear, tmp_path):
    net = nn.Sequential(nn.Linear(4, 6), nn.Softplus(), nn.Linear(6, 2)).eval()
    found = gralis.explain_many(
        net, xs(5), out=tmp_path, target="predicted", block_size=2, ledgers=True, residuals=True, **QUICK
    )
    with torch.no_grad():
        outputs = net(xs(5))
    for number, row in enumerate(found.inputs_table().to_pylist()):
        one = found.explanation(number)
        assert row["target"] == f"output[{int(outputs[number].argmax())}]"
        assert row["f_x"] == pytest.approx(float(outputs[number].max()), abs=1e-6)
        assert row["residual"] == pytest.approx(one.delta - one.values.sum(), abs=1e-12)
        parts = row["residual_path"] + row["residual_numerical"] + row["residual_kernel"]
        assert parts == pytest.approx(row["residual"], abs=1e-9)
        assert row["certificate"] == one.certificate(0.05).half_widths.max()
        assert row["n_gradients"] == one.cost.n_gradients
        assert json.loads(row["provenance"])["hashes"]["x"]
        assert (phi(found)[str(number)] == one.values).all()
    with pytest.raises(GralisError, match="no input 'x'"):
        found.explanation("x")


def test_shared_rays_are_those_of_explain_batch(tmp_path):
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2)).eval()
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(2))
    found = gralis.explain_many(net, x, out=tmp_path / "a", target=0, batch_size=32, budget=60)
    from gralis.many.blocks import seed_of

    batch = gralis.explain_batch(net, x, target=0, batch_size=32, budget=60, seed=seed_of(0, list("0123")))
    assert np.array_equal(np.stack(list(phi(found).values())), batch.values)
    renamed = gralis.explain_many(net, x, out=tmp_path / "b", ids=list("wxyz"), target=0, batch_size=32, budget=60)
    assert not np.array_equal(np.stack(list(phi(renamed).values())), batch.values)  # other items, another seed


def test_bad_calls_are_one_sentence(linear, tmp_path):
    cases = [
        ({"inputs": []}, "at least one input"),
        ({"inputs": 3}, "'inputs' parameter"),
        ({"inputs": iter([])}, "at least one input"),
        ({"inputs": tmp_path / "absent.csv"}, "no file or folder"),
        ({"ids": ["a"]}, "one for each of the 7"),
        ({"ids": list("abcdefa")}, "'a' twice"),
        ({"ids": [1.5] * 7}, "names or whole numbers"),
        ({"ids": iter("abc"), "inputs": iter(xs())}, "as many as there are inputs"),
        ({"engine": "cloud"}, "one of 'local', 'ray'"),
        ({"workers": 3}, "engine='ray'"),
        ({"block_size": 0}, "block_size"),
        ({"max_seconds": 3.0}, "clock"),
        ({"budgets": 3}, "unknown name"),
        ({"budget": -3}, "budget"),
        ({"target": "all"}, "target"),
    ]
    for number, (change, sentence) in enumerate(cases):
        arguments = {"inputs": xs(), "target": 1, **QUICK, **change}
        with pytest.raises(GralisError, match=sentence):
            gralis.explain_many(linear, out=tmp_path / str(number), **arguments)
    shuffling = DataLoader(TensorDataset(xs()), shuffle=True)
    with pytest.raises(GralisError, match="shuffles"):
        gralis.explain_many(linear, shuffling, out=tmp_path / "s", target=1)


def test_tables_of_another_version_or_with_other_columns_are_refused(linear, tmp_path):
    import io

    import pyarrow as pa
    import pyarrow.parquet

    gralis.explain_many(linear, xs(), out=tmp_path, target=1, **QUICK)
    content = (tmp_path / "values" / "00000000.parquet").read_bytes()
    table = unpack(content, "values", "values")
    for change, sentence in (
        (table.replace_schema_metadata({b"gralis.schema": b"gralis.many/99"}), "gralis.many/99.*update"),
        (table.replace_schema_metadata({}), "'none'"),
        (table.drop_columns(["phi"]), "columns"),
        (table.set_column(3, "phi", table["phi"].cast(pa.float32())), "columns"),
    ):
        stream = io.BytesIO()
        pa.parquet.write_table(change, stream)
        with pytest.raises(GralisError, match=sentence):
            unpack(stream.getvalue(), "values", "values")
    with pytest.raises(GralisError, match="not a whole Parquet"):
        unpack(content[:-50], "values", "values")


def test_progress_counts_inputs_and_the_model_is_as_it_was(linear, tmp_path):
    seen = []
    linear.train()
    with pytest.warns(UserWarning, match="train mode") as told:
        gralis.explain_many(
            linear, xs(), out=tmp_path, target=1, block_size=3, budget=40, progress=lambda *c: seen.append(c)
        )
    assert len(told) == 1
    assert seen == [(3, 7), (6, 7), (7, 7)]
    assert linear.training
    assert linear.weight.requires_grad


def test_doubts_stand_with_their_input_and_in_the_summary(linear, tmp_path):
    class Rounding(nn.Module):
        def forward(self, z):
            return linear(z)[:, 1] + 9 * torch.round(z[:, 2])

    x = torch.tensor([[1.0, 2.0, 3.0, 0.5], [1.0, 2.0, 0.1, 0.5], [float("nan"), 2.0, 3.0, 0.5], [1.0, 2.0, -4.0, 0.5]])
    found = gralis.explain_many(Rounding().eval(), x, out=tmp_path / "a", block_size=2, **QUICK)
    assert list(found.doubts) == ["0", "3"]  # the second input reaches no step, and the third fails
    assert found.n_doubted == 2
    assert "2 of them with doubts" in repr(found)
    alone = gralis.explain(Rounding().eval(), x[0], budget=40)
    assert alone.doubts
    assert [text[:40] for text in found.doubts["0"]] == [text[:40] for text in alone.doubts]
    column = found.inputs_table()["doubts"].to_pylist()
    assert [text is None for text in column] == [False, True, True, False]
    assert column[0].split("\n") == list(found.doubts["0"])
    again = gralis.explain_many(Rounding().eval(), x, out=tmp_path / "a", block_size=2, **QUICK)
    assert again.n_doubted == 2  # from the manifest
    clean = gralis.explain_many(linear, x[:2], out=tmp_path / "b", target=1, **QUICK)
    assert clean.doubts == {}
    assert "with doubts" not in repr(clean)


def test_an_unknown_error_is_not_written_as_a_small_one(linear, tmp_path):
    options = {"quadrature": "midpoint", "n_nodes": 1, "coalition_values": False}
    found = gralis.explain_many(linear, xs(1), out=tmp_path, target=1, **QUICK, **options)
    assert np.isnan(found.values_table()["half_width"].to_pylist()).all()
    assert np.isnan(found.inputs_table()["certificate"].to_pylist()).all()
    assert "not known" in found.doubts["0"][0]
