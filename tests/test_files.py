"""Files: never half written, every altered byte noticed or harmless, no code executed, arrays mapped."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gralis.errors import GralisError
from gralis.storage import container
from gralis.storage.container import SCHEMA, read_arrays, write_arrays

ARRAYS = {
    "numbers": np.linspace(-1, 1, 24).reshape(4, 6),
    "masks": np.array([[True, False], [False, True], [True, True]]),
    "counts": np.arange(5),
    "empty": np.zeros((0, 3)),
    "odd": np.array([np.nan, np.inf, -np.inf, -0.0]),
    "single": np.array(2.5),
}
META = {"kind": "test", "text": "ü", "nothing": None, "nested": {"a": [1, 2.5]}}


@pytest.fixture
def path(tmp_path) -> Path:
    return write_arrays(tmp_path / "file.gralis", ARRAYS, META)


def same(arrays) -> bool:
    if arrays.keys() != ARRAYS.keys():
        return False
    pairs = [(arrays[name], array) for name, array in ARRAYS.items()]
    return all(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)


def rezipped(path: Path, change: Callable[[dict[str, bytes]], None], compression: int = zipfile.ZIP_STORED) -> Path:
    """The file with changed members, in a sound zip: only gralis' own checks can notice."""
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w", compression) as new:
        for name, blob in members.items():
            new.writestr(name, blob)
    return path


def npy(array) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


# --- there and back --------------------------------------------------------------------------------------------------


def test_arrays_and_meta_come_back_bit_for_bit(path) -> None:
    arrays, meta = read_arrays(path, "test")
    assert same(arrays)
    assert meta == {"schema": SCHEMA, **META}


def test_non_finite_meta_survives(tmp_path) -> None:
    path = write_arrays(tmp_path / "f", {}, {"kind": "test", "odd": [float("inf"), float("-inf"), float("nan")]})
    assert repr(read_arrays(path, "test")[1]["odd"]) == "[inf, -inf, nan]"


def test_the_same_content_makes_the_same_bytes(path, tmp_path) -> None:
    assert write_arrays(tmp_path / "again.gralis", ARRAYS, META).read_bytes() == path.read_bytes()


def test_the_memory_order_of_an_array_does_not_matter(tmp_path) -> None:
    turned = np.asfortranarray(ARRAYS["numbers"])
    assert not turned.flags.c_contiguous
    path = write_arrays(tmp_path / "f", {"turned": turned, "every_other": ARRAYS["numbers"][:, ::2]}, META)
    arrays, _ = read_arrays(path, "test")
    assert np.array_equal(arrays["turned"], turned)
    assert np.array_equal(arrays["every_other"], ARRAYS["numbers"][:, ::2])


def test_numpy_reads_the_file_without_gralis(path) -> None:
    with np.load(path, allow_pickle=False) as file:
        assert np.array_equal(file["numbers"], ARRAYS["numbers"])


def test_a_compressed_file_is_refused_so_a_small_one_cannot_become_a_large_one(path) -> None:
    rezipped(path, lambda members: None, zipfile.ZIP_DEFLATED)
    with pytest.raises(GralisError, match="its parts are compressed"):
        read_arrays(path, "test")


# --- mapping ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def mapped(monkeypatch) -> None:
    """Every file counts as a large one."""
    monkeypatch.setattr(container, "_WHOLE", 0)


def test_a_small_file_is_read_whole_so_nothing_that_happens_to_it_later_matters(path) -> None:
    arrays, _ = read_arrays(path, "test")
    before = {name: np.array(array) for name, array in arrays.items()}
    content = path.read_bytes()
    with path.open("r+b") as stream:
        stream.write(bytes(len(content)))
        stream.truncate(10)
    for name, array in arrays.items():
        assert not isinstance(array, np.memmap)
        assert array.flags.aligned
        assert np.array_equal(array, before[name], equal_nan=array.dtype.kind == "f")
    with pytest.raises(ValueError, match="read-only"):
        arrays["numbers"][0, 0] = 5.0


def test_arrays_of_a_large_file_are_mapped_aligned_and_cannot_be_written_to(path, mapped) -> None:
    arrays, _ = read_arrays(path, "test")
    for name in ("numbers", "masks", "counts", "odd"):
        assert isinstance(arrays[name], np.memmap), name
        assert arrays[name].flags.aligned, name
        assert arrays[name].ctypes.data % 64 == 0, name
    with pytest.raises(ValueError, match="read-only"):
        arrays["numbers"][0, 0] = 5.0


def test_the_mapping_points_into_the_file_itself(path, mapped) -> None:
    arrays, _ = read_arrays(path, "test")
    numbers = arrays["numbers"]
    assert isinstance(numbers, np.memmap)
    assert path.read_bytes()[numbers.offset : numbers.offset + numbers.nbytes] == ARRAYS["numbers"].tobytes()
    with path.open("r+b") as raw:
        raw.seek(numbers.offset)
        raw.write(np.float64(42).tobytes())
    assert numbers[0, 0] == 42


def test_an_open_mapping_outlives_the_replacement_of_its_file(path, mapped) -> None:
    arrays, _ = read_arrays(path, "test")
    write_arrays(path, {"numbers": np.zeros((4, 6))}, META)
    assert same(arrays)
    assert not read_arrays(path, "test")[0]["numbers"].any()


# --- writing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("moment", ["zipfile.ZipFile.writestr", "os.replace"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(path, monkeypatch, failure, moment) -> None:
    before = path.read_bytes()

    def fail(*args, **kwargs):
        raise failure

    monkeypatch.setattr(moment, fail)
    expected = GralisError if isinstance(failure, OSError) else type(failure)
    with pytest.raises(expected) as caught:
        write_arrays(path, {"numbers": np.zeros(3)}, META)
    if isinstance(failure, OSError):
        assert str(caught.value) == f"Cannot write {path}: No space left on device."
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_meta_that_is_not_json_fails_before_anything_is_written(path) -> None:
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write_arrays(path, ARRAYS, {"kind": {1, 2}})
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_place_that_cannot_be_written_to_gets_a_sentence(tmp_path) -> None:
    with pytest.raises(GralisError, match=r"Cannot write .*: the folder .*nowhere does not exist"):
        write_arrays(tmp_path / "nowhere" / "f", ARRAYS, META)
    (tmp_path / "folder").mkdir()
    with pytest.raises(GralisError, match=r"Cannot write .*folder"):
        write_arrays(tmp_path / "folder", ARRAYS, META)
    with pytest.raises(GralisError, match=r"path that the system can look up.*File name too long"):
        write_arrays(tmp_path / ("n" * 300), ARRAYS, META)
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder in which nobody can make a file")
def test_a_folder_in_which_no_file_can_be_made_gets_a_sentence() -> None:
    with pytest.raises(GralisError, match=r"Cannot write /proc/self/f: .+\."):
        write_arrays("/proc/self/f", ARRAYS, META)


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_a_file_may_be_read_by_those_whom_the_umask_allows(tmp_path) -> None:
    before = os.umask(0o027)
    try:
        path = write_arrays(tmp_path / "f", ARRAYS, META)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640


# --- no code ---------------------------------------------------------------------------------------------------------


class Trap:
    """Unpickling it leaves a mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return (Path.touch, (self.mark,))


def test_objects_are_not_written(tmp_path) -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        write_arrays(tmp_path / "f", {"trap": np.array([Trap(tmp_path / "mark")], dtype=object)}, META)
    assert os.listdir(tmp_path) == []


def test_a_pickle_in_a_file_is_refused_and_never_executed(path, tmp_path) -> None:
    mark = tmp_path / "mark"
    blob = npy(np.array([Trap(mark)], dtype=object))

    def plant(members):
        meta = json.loads(members["meta.json"])
        meta["sha256"]["trap"] = hashlib.sha256(blob).hexdigest()
        members |= {"meta.json": json.dumps(meta).encode(), "trap.npy": blob}

    rezipped(path, plant)
    with pytest.raises(GralisError, match=r"trap\.npy is not a plain array"):
        read_arrays(path, "test")
    assert not mark.exists()
    with np.load(path, allow_pickle=True) as file:  # the trap does work, so the check above can fail
        file["trap"]
    assert mark.exists()
    path.write_bytes(pickle.dumps(Trap(mark)))
    mark.unlink()
    with pytest.raises(GralisError, match="not a whole gralis file"):
        read_arrays(path, "test")
    assert not mark.exists()


# --- damage ----------------------------------------------------------------------------------------------------------


def test_flipped_bytes_are_noticed_or_harmless(path) -> None:
    """At 50 random places, and at every byte of the directory, where a byte can mean anything."""
    whole = path.read_bytes()
    directory = whole.index(b"PK\x01\x02")
    rng = np.random.default_rng(0)
    places = [*rng.integers(len(whole), size=50), *range(directory, len(whole))]
    noticed = 0
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= int(rng.choice([0x01, 0x08, 0x80, 0xFF]))
        path.write_bytes(damaged)
        try:
            arrays, meta = read_arrays(path, "test")
        except GralisError:
            noticed += 1
        else:
            assert same(arrays), place
            assert meta == {"schema": SCHEMA, **META}, place
    assert noticed > 200


@pytest.mark.parametrize("method", [1, 8, 9, 12, 14, 99])
def test_a_wrong_compression_method_gets_a_sentence(path, method) -> None:
    whole = bytearray(path.read_bytes())
    whole[whole.index(b"PK\x01\x02") + 10] = method
    path.write_bytes(whole)
    with pytest.raises(GralisError, match="truncated or altered"):
        read_arrays(path, "test")


def test_every_flipped_byte_of_an_array_is_noticed(path) -> None:
    whole = path.read_bytes()
    start = whole.index(ARRAYS["numbers"].tobytes())
    for place in range(start, start + ARRAYS["numbers"].nbytes, 7):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        with pytest.raises(GralisError, match="truncated or altered"):
            read_arrays(path, "test")


def test_an_exchanged_array_is_noticed_by_its_sha256(path) -> None:
    rezipped(path, lambda members: members.update({"numbers.npy": npy(ARRAYS["numbers"] + 1)}))
    with pytest.raises(GralisError, match=r"checksum of numbers\.npy does not match"):
        read_arrays(path, "test")


def test_a_missing_array_is_noticed(path) -> None:
    rezipped(path, lambda members: members.pop("counts.npy"))
    with pytest.raises(GralisError, match=r"counts\.npy.*truncated or altered"):
        read_arrays(path, "test")


def test_a_truncated_file_is_noticed_at_any_length(path) -> None:
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 13), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(GralisError, match="truncated or altered"):
            read_arrays(path, "test")


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "3",
        "{}",
        "nonsense",
        '{"sha256": 3, "schema": 1, "kind": "test"}',
        '{"sha256": {}}',
        '{"sha256": {}, "schema": 1}',
        '{"sha256": {}, "schema": "new", "kind": "test"}',
        '{"sha256": {}, "schema": null, "kind": "test"}',
        '{"sha256": {}, "schema": Infinity, "kind": "test"}',
        "[" * 100_000,
    ],
)
def test_foreign_meta_gets_a_sentence(path, text) -> None:
    rezipped(path, lambda members: members.update({"meta.json": text.encode()}))
    with pytest.raises(GralisError, match="not a whole gralis file"):
        read_arrays(path, "test")


def test_another_kind_a_newer_schema_and_no_file_get_a_sentence(path, tmp_path) -> None:
    with pytest.raises(GralisError, match=r"ledger.*test|test.*ledger"):
        read_arrays(path, "ledger")
    newer = {"schema": SCHEMA + 1, "kind": "test", "sha256": {}}
    rezipped(path, lambda members: members.update({"meta.json": json.dumps(newer).encode()}))
    with pytest.raises(GralisError, match=f"schema {SCHEMA + 1}.*update gralis"):
        read_arrays(path, "test")
    with pytest.raises(GralisError, match="There is no file"):
        read_arrays(tmp_path / "nothing", "test")
    with pytest.raises(GralisError, match="There is no file"):
        read_arrays(tmp_path, "test")
