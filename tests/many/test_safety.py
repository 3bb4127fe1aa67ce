"""Files that were damaged or made to do harm, and many explanations at once."""

import hashlib
import io
import json
import shutil
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import gralis
from gralis.errors import GralisError
from gralis.ledger import Ledger
from gralis.many.importance import Importance
from gralis.many.store import ResultsFolder
from many import small

GOLDEN = Path(__file__).with_name("golden")


def flipped(content, rng):
    damaged = bytearray(content)
    for place in rng.integers(len(content), size=int(rng.integers(1, 4))):
        damaged[place] ^= int(rng.integers(1, 256))
    return bytes(damaged)


def same(one, other):
    left, right = one.arrays(), other.arrays()
    return all(np.array_equal(left[name], right[name], equal_nan=True) for name in left)


def test_two_hundred_damaged_explanations_and_ledgers(tmp_path):
    """Detected, or harmless: then every number is the one that was saved."""
    whole = gralis.explain(small.network(), small.inputs()[0], target=1, budget=120)
    rng = np.random.default_rng(3)
    noticed = 0
    for kind in ("explanation", "ledger"):
        path = tmp_path / f"{kind}.gralis"
        content = (whole.save(path) if kind == "explanation" else whole.ledger.save(path)).read_bytes()
        for _ in range(100):
            path.write_bytes(flipped(content, rng))
            try:
                found = gralis.load(path) if kind == "explanation" else Ledger.load(path)
            except GralisError as error:
                assert str(path) in str(error)  # noqa: PT017
                noticed += 1
                continue
            ledger = found if isinstance(found, Ledger) else found.ledger
            assert same(ledger, whole.ledger)
            if not isinstance(found, Ledger):
                assert json.loads(found.to_json()) == json.loads(whole.to_json())
                assert np.array_equal(found.values, whole.values)
    assert noticed > 150


def test_two_hundred_damaged_results(tmp_path):
    """Every file of a run: a sentence that names it, or the numbers that were written."""
    whole = small.explain(tmp_path, block_size=7)
    values, inputs = whole.values_table(), whole.inputs_table()
    rng = np.random.default_rng(4)
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file() and path.name != "lock")
    noticed = 0
    for _ in range(200):
        path = files[rng.integers(len(files))]
        content = path.read_bytes()
        path.write_bytes(flipped(content, rng))
        try:
            found = gralis.many.Results(tmp_path)
            if len(found) < len(whole):  # a line of the manifest is not believed: its inputs count as not done
                noticed += 1
                assert set(found.ids) < set(whole.ids)
            else:
                assert found.values_table().equals(values)
                assert found.inputs_table().equals(inputs)
                for name in found.ids:
                    found.explanation(name)
        except GralisError as error:
            assert str(tmp_path) in str(error)  # noqa: PT017
            noticed += 1
        finally:
            path.write_bytes(content)
    assert noticed >= 190  # what is left are changes to run.json that change nothing, such as its spaces


class Harmful:
    """Unpickling it makes a file."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


def test_a_pickle_in_any_file_is_never_run(tmp_path):
    mark = tmp_path / "mark"
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.array([Harmful(mark)], dtype=object), allow_pickle=True)
    blob = stream.getvalue()
    np.load(io.BytesIO(blob), allow_pickle=True)  # it does work, where it is let
    assert mark.exists()
    mark.unlink()
    for name in ("values", "ledger.gradient"):
        path = tmp_path / "poison.gralis"
        meta = {"schema": 1, "kind": "explanation", "sha256": {name: hashlib.sha256(blob).hexdigest()}}
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("meta.json", json.dumps(meta))
            archive.writestr(f"{name}.npy", blob)
        with pytest.raises(GralisError, match=r"poison\.gralis"):
            gralis.load(path)
    small.explain(tmp_path / "run", block_size=14)
    (tmp_path / "run" / "values" / "00000000.parquet").write_bytes(blob)
    (tmp_path / "run" / "run.json").write_bytes(blob)
    with pytest.raises(GralisError):
        gralis.many.Results(tmp_path / "run").values_table()
    (tmp_path / "sums.json").write_bytes(blob)
    with pytest.raises(GralisError):
        Importance.load(tmp_path / "sums.json")
    assert not mark.exists()


def test_fifty_explanations_at_once_are_those_one_after_the_other():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 12), nn.Dropout(0.5), nn.Tanh(), nn.Linear(12, 3))
    net.train()  # every session must put it in eval mode, and only the last may put it back
    x = torch.randn(50, 6, generator=torch.Generator().manual_seed(1))

    def one(k):
        found = gralis.explain(net, x[k], target=k % 3, budget=120, batch_size=16, seed=k, progress=False)
        return found.values, found.stderr

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = [one(k) for k in range(50)]
        with ThreadPoolExecutor(10) as pool:
            together = list(pool.map(one, range(50)))
    for first, second in zip(alone, together, strict=True):
        assert np.array_equal(first, second)
    assert net.training
    assert all(part.training for part in net.modules())
    assert all(parameter.requires_grad for parameter in net.parameters())


def test_files_of_every_version_there_ever_was_can_be_read():
    """golden/ is never written again: one folder and one file for each version of the schemas."""
    expected = json.loads((GOLDEN / "expected.json").read_text())
    explanation = gralis.load(GOLDEN / "explanation-1.gralis")
    assert explanation.values.tolist() == expected["explanation-1"]
    found = gralis.many.Results(GOLDEN / "many-1")
    assert found.values_table()["phi"].to_pylist() == expected["many-1"]
    assert [failure.id for failure in found.failures] == ["2"]
    assert found.explanation("1").values.tolist() == expected["many-1"][4:8]
    assert found.doubts == {}  # there were none to write
    assert found.inputs_table().schema.names[-1] == "doubts"
    second = gralis.many.Results(GOLDEN / "many-2")
    assert second.values_table()["phi"].to_pylist() == expected["many-2"]
    assert list(second.doubts) == ["0", "3"]
    assert second.doubts["0"][0].startswith("The gradient of x[1] is zero at all 104 evaluated points")
    assert Importance.load(GOLDEN / "importance-1.json").mean_abs.tolist() == expected["importance-1"]


def test_a_run_of_every_version_there_ever_was_is_continued(tmp_path):
    """Its settings are accepted, and its blocks count as finished."""
    shutil.copytree(GOLDEN / "many-1", tmp_path / "run")
    before = ResultsFolder.read(GOLDEN / "many-1")
    with ResultsFolder(tmp_path / "run", before.settings).writing() as folder:
        assert list(folder.entries) == [0, 1, 2]
        for block, entry in before.entries.items():
            assert folder.finished(block, entry.ids) == entry
        folder.commit(3, ["new"], 0, 0.5, {})
    assert list(gralis.many.Results(tmp_path / "run").ids)[-1] == "new"
    other = {**before.settings, "budget": 7}
    with pytest.raises(GralisError, match="budget"), ResultsFolder(tmp_path / "run", other).writing():
        pass
