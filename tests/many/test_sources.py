"""Where inputs come from: loaders, frames, tables, folders, and what each of them may get wrong."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils import data

import gralis
from gralis.errors import GralisError
from many import small

QUICK = {"budget": 40, "progress": False}


def total(points):
    """phi_i = x_i with the baseline 0: the truth of every test here."""
    return points.flatten(1).sum(1)


def xs(n=6, width=4):
    return torch.randn(n, width, generator=torch.Generator().manual_seed(3))


def phi(results):
    """id -> values."""
    table = results.values_table().to_pydict()
    found = {}
    for name, value in zip(table["input"], table["phi"], strict=True):
        found.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in found.items()}


def rows(results, *columns):
    return [tuple(row[name] for name in columns) for row in results.inputs_table().to_pylist()]


# --- what the source is set to ---------------------------------------------------------------------------------------


def test_a_run_goes_on_only_with_the_same_settings_of_its_source(tmp_path):
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "pictures").mkdir()
    image.new("RGB", (12, 12), (200, 0, 255)).save(tmp_path / "pictures" / "a.png")

    def pictures(**options):
        source = gralis.many.folder(tmp_path / "pictures", **{"size": 8, **options})
        gralis.explain_many(total, source, out=tmp_path / "seen", features=gralis.features.grid((3, 8, 8), 4), **QUICK)

    pictures()
    pictures(size=(8, 8))  # the same, said otherwise
    with pytest.raises(GralisError, match=r"inputs\.mean = \[0\.485, .*, and now it is \[0\.0, 0\.0, 0\.0\]"):
        pictures(mean=(0, 0, 0))
    with pytest.raises(GralisError, match=r"inputs\.size"):
        pictures(size=12)

    (tmp_path / "t.csv").write_text("a,b,c\n1,2,3\n2,3,4\n")

    def table(**options):
        return gralis.explain_many(
            total, gralis.many.table(tmp_path / "t.csv", **options), out=tmp_path / "rows", **QUICK
        )

    assert rows(table(label="c"), "label") == [("3",), ("4",)]
    for other in ({"label": "b"}, {"drop": ["c"]}, {"id": "c"}):
        with pytest.raises(GralisError, match=r"inputs\.(label|columns|id)"):
            table(**other)


def test_features_that_differ_are_said_to_differ_and_no_hash_is_shown(tmp_path):
    options = {"out": tmp_path, **QUICK}
    gralis.explain_many(total, xs(), features=gralis.features.columns(list("abcd")), **options)
    for other in (gralis.features.columns(list("abce")), gralis.features.groups([0, 0, 1, 1], shape=(4,))):
        with pytest.raises(GralisError, match="a run with features different from what is given now") as told:
            gralis.explain_many(total, xs(), features=other, **options)
        assert len(str(told.value)) < 250


# --- loaders and frames ----------------------------------------------------------------------------------------------


def test_only_loaders_that_go_through_their_data_in_order(tmp_path):
    inputs = data.TensorDataset(xs())

    class Backwards(data.SequentialSampler):
        def __iter__(self):
            return iter(range(len(self.data_source) - 1, -1, -1))

    class Whatever(data.BatchSampler):
        pass

    refused = [
        {"shuffle": True},
        {"sampler": data.SubsetRandomSampler(range(6))},
        {"sampler": data.WeightedRandomSampler(torch.ones(6), 6)},
        {"sampler": Backwards(inputs)},
        {"batch_sampler": data.BatchSampler(data.RandomSampler(inputs), 2, False)},
        {"batch_sampler": Whatever(data.SequentialSampler(inputs), 2, False)},
        {"batch_sampler": [[3, 2], [1, 0]]},
        {"batch_size": None, "sampler": data.RandomSampler(inputs)},
    ]
    for number, options in enumerate(refused):
        with pytest.raises(GralisError, match="in an order that can be repeated"):
            gralis.explain_many(total, data.DataLoader(inputs, **options), out=tmp_path / f"no{number}", **QUICK)

    class Streamed(data.IterableDataset):
        def __iter__(self):
            return iter(xs())

    taken = [
        data.DataLoader(inputs, batch_size=4),
        data.DataLoader(xs(), batch_size=4),
        data.DataLoader(inputs, batch_sampler=data.BatchSampler(data.SequentialSampler(inputs), 4, False)),
        data.DataLoader(inputs, batch_size=None),
        data.DataLoader(Streamed(), batch_size=4),
        data.DataLoader(Streamed(), batch_size=None),
    ]
    for number, loader in enumerate(taken):
        seen = []
        found = gralis.explain_many(
            total, loader, out=tmp_path / str(number), budget=40, progress=lambda *c, to=seen: to.append(c)
        )
        assert np.stack(list(phi(found).values())) == pytest.approx(xs().numpy(), abs=1e-5), number
        assert seen == [(6, 6)]


def test_a_loader_without_batches_gives_whole_samples_with_their_labels(tmp_path):
    loader = data.DataLoader(data.TensorDataset(xs(), torch.arange(6)), batch_size=None)
    found = gralis.explain_many(total, loader, out=tmp_path, **QUICK)
    assert np.stack(list(phi(found).values())) == pytest.approx(xs().numpy(), abs=1e-5)
    assert rows(found, "label") == [(str(k),) for k in range(6)]


def test_a_batch_that_cannot_be_taken_apart_is_one_sentence(tmp_path):
    uneven = data.DataLoader(xs(), batch_size=2, collate_fn=lambda batch: (torch.stack(batch), torch.ones(3)))
    single = data.DataLoader(xs(), batch_size=2, collate_fn=lambda batch: 3)
    for number, loader in enumerate((uneven, single)):
        with pytest.raises(GralisError, match="a batch that cannot be taken apart"):
            gralis.explain_many(total, loader, out=tmp_path / str(number), **QUICK)


def test_a_data_frame_is_explained_row_by_row(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(xs().numpy(), columns=["a", "b", "c", 7], index=[f"i{k}" for k in range(6)])
    found = gralis.explain_many(total, frame, out=tmp_path / "rows", **QUICK)
    assert found.values_table()["name"].to_pylist()[:4] == ["a", "b", "c", "7"]
    assert np.stack(list(phi(found).values())) == pytest.approx(xs().numpy(), abs=1e-5)
    named = gralis.explain_many(total, frame, out=tmp_path / "named", ids=list(frame.index), **QUICK)
    assert list(named.ids) == list(frame.index)
    frame = frame.astype(object)
    frame.iloc[2, 1] = "blue"
    mixed = gralis.explain_many(total, frame, out=tmp_path / "mixed", **QUICK)
    assert [(one.id, "column 'b' is 'blue'" in one.reason) for one in mixed.failures] == [("2", True)]
    frame.columns = list("abca")
    with pytest.raises(GralisError, match="two columns named 'a'"):
        gralis.explain_many(total, frame, out=tmp_path / "twice", **QUICK)


def test_ids_are_refused_where_the_inputs_have_names_of_their_own(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n2,3\n")
    for inputs in ({"p": xs()[0], "q": xs()[1]}, tmp_path / "t.csv", gralis.many.table(tmp_path / "t.csv")):
        with pytest.raises(GralisError, match="'ids' parameter of explain_many must be left out, because"):
            gralis.explain_many(total, inputs, ids=["x", "y"], out=tmp_path / "out", **QUICK)


def test_whole_numbers_sort_by_size_so_that_more_inputs_do_not_move_the_others(tmp_path):
    options = {"out": tmp_path / "grown", "block_size": 4, **QUICK}
    gralis.explain_many(total, xs(12), ids=range(12), **options)
    found = gralis.explain_many(total, xs(14), ids=range(14), **options)
    assert list(found.ids) == [str(k) for k in range(14)]
    mixed = gralis.explain_many(total, xs(5), ids=["b", "10", -2, "9", "a"], out=tmp_path / "mixed", **QUICK)
    assert list(mixed.ids) == ["-2", "9", "10", "a", "b"]


# --- labels ----------------------------------------------------------------------------------------------------------


def test_single_numbers_are_labels_and_gaps_are_none(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet

    y = torch.tensor([0.0, 1.0, 2.0, float("nan"), 0.5, 1.0])
    found = gralis.explain_many(total, data.TensorDataset(xs(), y), out=tmp_path / "floats", **QUICK)
    assert rows(found, "label", "n_features")[:4] == [("0.0", 4), ("1.0", 4), ("2.0", 4), (None, 4)]
    net = nn.Linear(4, 3).eval()
    asked = gralis.explain_many(net, data.TensorDataset(xs(), y), out=tmp_path / "asked", target="label", **QUICK)
    targets = ["output[0]", "output[1]", "output[2]", None, None, "output[1]"]
    assert [row[0] for row in rows(asked, "target")] == targets
    assert [one.id for one in asked.failures] == ["3", "4"]

    table = {"a": [1.0, 2.0], "b": [2.0, 1.0], "y": pa.array([1, None], pa.int64())}
    pa.parquet.write_table(pa.table(table), tmp_path / "t.parquet")
    source = gralis.many.table(tmp_path / "t.parquet", label="y")
    assert rows(gralis.explain_many(total, source, out=tmp_path / "gap", **QUICK), "label") == [("1",), (None,)]


def test_an_input_that_fails_keeps_its_label(tmp_path):
    x = xs().clone()
    x[2] = torch.nan
    found = gralis.explain_many(total, data.TensorDataset(x, torch.arange(6)), out=tmp_path / "set", **QUICK)
    assert rows(found, "label")[2] == ("2",)
    assert found.n_failures == 1
    (tmp_path / "t.csv").write_text("a,b,y\n1,2,p\n2,none,q\n")
    source = gralis.many.table(tmp_path / "t.csv", label="y")
    bad = gralis.explain_many(total, source, out=tmp_path / "table", **QUICK)
    assert [(one.id) for one in bad.failures] == ["1"]
    assert rows(bad, "label") == [("p",), ("q",)]


# --- tables ----------------------------------------------------------------------------------------------------------


def test_bad_rows_fail_alone(tmp_path):
    (tmp_path / "t.csv").write_text("who,a,b\nann,1,2\nbob,Rome,3\n\ncid,4\ndan,5,6,7\n,7,8\neve,3,4\n")
    source = gralis.many.table(tmp_path / "t.csv", id="who")
    assert source.total == 6
    found = gralis.explain_many(total, source, out=tmp_path / "out", **QUICK)
    assert list(found.ids) == ["ann", "bob", "row 2", "row 3", "row 4", "eve"]
    reasons = {one.id: one.reason for one in found.failures}
    assert "row 1, column 'a' is 'Rome'" in reasons["bob"]
    assert "row 2 has 2 cells" in reasons["row 2"]
    assert "row 3 has 4 cells" in reasons["row 3"]
    assert "no id in column 'who'" in reasons["row 4"]
    assert phi(found)["eve"] == pytest.approx([3, 4], abs=1e-5)
    assert set(phi(found)) == {"ann", "eve"}
    assert gralis.many.means(tmp_path / "t.csv", drop=["who"]) == pytest.approx([(1 + 7 + 3) / 3, (2 + 8 + 4) / 3])
    (tmp_path / "none.csv").write_text("a,b\n1,x\n")
    with pytest.raises(GralisError, match="column 'b' is 'x'"):
        gralis.many.means(tmp_path / "none.csv")


def test_a_header_is_names_and_every_name_is_there_once(tmp_path):
    (tmp_path / "t.csv").write_text("1,2\n3,4\n")
    (tmp_path / "twice.csv").write_text("a,b,a\n1,2,3\n")
    for name, sentence in (("t.csv", "numbers in its first line"), ("twice.csv", "two columns named 'a'")):
        for call in (gralis.many.table, gralis.many.means):
            with pytest.raises(GralisError, match=sentence):
                call(tmp_path / name)


def test_tables_know_how_many_rows_they_have(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet

    (tmp_path / "t.csv").write_text('a,b\n1,2\n\n"3",4\n')
    pa.parquet.write_table(pa.table({"a": np.arange(3000.0), "b": np.arange(3000.0)}), tmp_path / "t.parquet")
    assert gralis.many.table(tmp_path / "t.csv").total == 2
    assert gralis.many.table(tmp_path / "t.parquet").total == 3000
    seen = []
    gralis.explain_many(
        total, tmp_path / "t.csv", out=tmp_path / "out", block_size=1, budget=40, progress=lambda *c: seen.append(c)
    )
    assert seen == [(1, 2), (2, 2)]


# --- text that UTF-8 cannot hold -------------------------------------------------------------------------------------


def test_names_that_are_not_utf8_are_written_with_backslashes(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    image.new("RGB", (8, 8), (200, 0, 255)).save(pictures / "a.png")
    try:
        os.rename(os.fsencode(pictures / "a.png"), os.fsencode(pictures) + b"/\xff.png")
    except OSError:
        pytest.skip("this file system takes no such name")
    Path(os.fsdecode(os.fsencode(pictures) + b"/\xfe.png")).write_bytes(b"no picture")
    source = gralis.many.folder(pictures, size=8)
    found = gralis.explain_many(
        total, source, out=tmp_path / "out", features=gralis.features.grid((3, 8, 8), 4), **QUICK
    )
    assert list(found.ids) == ["\\udcfe.png", "\\udcff.png"]
    assert set(phi(found)) == {"\\udcff.png"}
    assert "\\udcfe.png" in found.failures[0].reason


def test_half_characters_in_labels_names_and_reasons_do_not_end_a_run(tmp_path):
    half = "caf\ud83d"

    def moody(points):
        if (points[:, 0] > 50).any():
            raise RuntimeError(half)
        return points.sum(1)

    inputs = [(row, half) for row in [*xs(3), torch.full((4,), 60.0)]]
    names = [half, "b", "c", "d"]
    found = gralis.explain_many(
        moody, inputs, out=tmp_path, features=gralis.features.columns(names), ledgers=True, **QUICK
    )
    assert rows(found, "label") == [("caf\\ud83d",)] * 4
    assert found.values_table()["name"].to_pylist()[:4] == ["caf\\ud83d", "b", "c", "d"]
    assert "caf\\ud83d" in found.failures[0].reason
    assert found.explanation("0").n_features == 4
    assert gralis.global_importance(found).save(tmp_path / "sums.json", least=1).is_file()


# --- failures and their neighbours -----------------------------------------------------------------------------------


def test_strict_stops_at_a_failure_that_was_recorded_before(tmp_path):
    x = xs().clone()
    x[4] = torch.nan
    gralis.explain_many(total, x, out=tmp_path, block_size=2, **QUICK)
    with pytest.raises(GralisError, match=r"Input '4' cannot be explained: .*nan") as first:
        gralis.explain_many(total, x, out=tmp_path, block_size=2, strict=True, **QUICK)
    with pytest.raises(GralisError) as fresh:
        gralis.explain_many(total, x, out=tmp_path / "fresh", block_size=2, strict=True, **QUICK)
    assert str(first.value) == str(fresh.value)


def test_an_input_that_fails_does_not_move_the_seed_of_the_others(tmp_path):
    """The law of the uniform kernel is the same for every input, so only the seed could move them."""
    net = small.network()
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(8))
    options = {"target": 0, "budget": 60, "kernel": gralis.Uniform(), "progress": False}
    calm = gralis.explain_many(net, x, out=tmp_path / "calm", **options)
    assert not calm.inputs_table()["certificate_kind"].to_pylist()[0].startswith("exact")
    for number in (0, 2):
        spoiled = x.clone()
        spoiled[number] = torch.nan
        found = gralis.explain_many(net, spoiled, out=tmp_path / str(number), **options)
        assert [one.id for one in found.failures] == [str(number)]
        for name, values in phi(found).items():
            assert values == pytest.approx(phi(calm)[name], abs=1e-6)


def test_bad_arguments_are_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "pictures").mkdir()
    cases = [
        (lambda: gralis.explain_many(total, xs(), out=None), "folder of a run must be a path"),
        (lambda: gralis.explain_many(total, xs(), out="a\0b"), "folder of a run must be a path"),
        (lambda: gralis.explain_many(total, xs(), out=tmp_path / "file"), "is a file, where the folder"),
        (lambda: gralis.explain_many(total, xs(), out=tmp_path / "file" / "in"), "Cannot write to .*Not a directory"),
        (lambda: gralis.many.Results(None), "folder of a run must be a path"),
        (lambda: gralis.many.Results(tmp_path / "file"), "is a file"),
        (lambda: gralis.explain_many(total, xs(), out=tmp_path, target=np.array([0, 1])), "'target' parameter"),
        (lambda: gralis.explain_many(total, xs(), out=tmp_path, workers=np.array([1, 2])), "'workers' parameter"),
        (lambda: gralis.explain_many(total, xs(), out=tmp_path, engine=np.array([1, 2])), "'engine' parameter"),
        (lambda: gralis.explain_many(total, xs(), out=tmp_path, strict=np.array([1, 2])), "'strict' parameter"),
        (lambda: gralis.many.folder(tmp_path / "pictures", size="big"), "'size' parameter"),
        (lambda: gralis.many.folder(tmp_path / "pictures", size=(3, 0)), "'size' parameter"),
        (lambda: gralis.many.folder(tmp_path / "pictures", mean=3), "'mean' parameter"),
        (lambda: gralis.many.folder(None), "'path' parameter"),
        (lambda: gralis.many.table(3), "'path' parameter"),
    ]
    for number, (call, sentence) in enumerate(cases):
        with pytest.raises(GralisError, match=sentence) as told:
            call()
        assert "make room" not in str(told.value), number


# --- the sources of gralis.bench -------------------------------------------------------------------------------------


class Tenths:
    """Items with features, classes and labels that are known to the source alone."""

    def names(self):
        return ["first", "second"]

    def settings(self):
        return {"width": 4}

    def digest(self, index):
        return str(index)

    def load(self, index):
        x = torch.full((4,), 0.1 * (index + 1))
        return gralis.many.Item(self.names()[index], x, gralis.features.groups([0, 0, 1, 1]), 1 - index, {"label": "a"})


def test_a_source_of_a_study_is_a_data_set_too(tmp_path):
    net = nn.Linear(4, 2).eval()
    results = gralis.explain_many(net, Tenths(), out=tmp_path / "out", target="label", **QUICK)
    assert rows(results, "input", "label", "target", "n_features") == [
        ("first", "a", "output[1]", 2),
        ("second", "a", "output[0]", 2),
    ]
    columns = gralis.features.columns(list("abcd"))
    single = gralis.explain_many(net, Tenths(), out=tmp_path / "columns", target=0, features=columns, **QUICK)
    assert rows(single, "n_features") == [(4,), (4,)]  # features that the user gives come first
    with pytest.raises(GralisError, match="'ids' parameter of explain_many must be left out"):
        gralis.explain_many(net, Tenths(), ids=[1, 2], out=tmp_path / "ids", **QUICK)
    repeated = Tenths()
    repeated.names = lambda: ["first", "first"]
    with pytest.raises(GralisError, match="'first' twice"):
        gralis.explain_many(net, repeated, out=tmp_path / "twice", target=0, **QUICK)
