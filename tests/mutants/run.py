"""`make mutants`: break the library in one named place at a time, and see whether a check notices.

Every mutant runs in a process of its own, on a copy of src in a temporary folder; the processes are forked from one
that has imported torch and pytest but nothing of gralis. Results are kept in build/mutants.json, so that a run that was
stopped goes on where it was; a change of src runs everything again, a change of a test file its own mutants. The exit
code is 1 if a mutant survives, if a check fails without a mutant, or if the place of a mutant cannot be found any more.
"""

from __future__ import annotations

import argparse
import compileall
import hashlib
import json
import multiprocessing
import os
import queue
import shutil
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from py_compile import PycInvalidationMode

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mutants.judge import FAILED, HEAVY, TROUBLE, judge
from mutants.mutant import ROOT, SOURCE, Mutant
from mutants.table import MUTANTS

_STATE = ROOT / "build" / "mutants.json"
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(list(HEAVY))
_PATIENCE, _LEAST_SECONDS = 8.0, 300.0  # a mutant may compute so many times as long as its checks, then it is caught
_WAIT = 6.0  # so many times as long on the clock: a busy machine catches nothing, so there is no verdict after that


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="TEXT", help="mutants whose name contains one of these"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--again", action="store_true", help="forget earlier results")
    parser.add_argument("--verbose", action="store_true", help="show what caught each mutant")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    chosen = [m for m in MUTANTS if not options.only or any(text in m.name for text in options.only)]
    if not chosen:
        print("No mutant has such a name.")
        return 1
    lost = [sentence for mutant in chosen if (sentence := _lost(mutant))]
    chosen = [mutant for mutant in chosen if not _lost(mutant)]
    known = {} if options.again or not _STATE.exists() else json.loads(_STATE.read_text())
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        workshop = Workshop(Path(folder), options.jobs, known)
        checks = sorted({check for mutant in chosen for check in mutant.checks})
        broken = workshop.run([(f"no mutant, {check}", None, (check,)) for check in checks], options.verbose)
        unsound = [name for name, result in broken.items() if result["verdict"] != "survived"]
        if unsound:
            for name in unsound:
                print(f"FAILS WITHOUT A MUTANT: {name}: {broken[name]['says']}")
            return 1
        workshop.seconds = {check: broken[f"no mutant, {check}"]["seconds"] for check in checks}
        results = workshop.run([(mutant.name, mutant, mutant.checks) for mutant in chosen], options.verbose)
    return _summary(chosen, results, lost)


def _lost(mutant: Mutant) -> str:
    """Why the mutation cannot be made, or nothing."""
    try:
        mutant.applied()
    except (OSError, ValueError, SyntaxError) as error:
        return str(error)
    return ""


def _summary(chosen: list[Mutant], results: dict[str, dict[str, object]], lost: list[str]) -> int:
    survivors = [mutant for mutant in chosen if results[mutant.name]["verdict"] == "survived"]
    troubled = [mutant for mutant in chosen if results[mutant.name]["verdict"] == "trouble"]
    caught = len(chosen) - len(survivors) - len(troubled)
    print(f"{len(chosen) + len(lost)} mutants: {caught} caught, {len(survivors)} survive, {len(lost)} cannot be found")
    for mutant in survivors:
        print(f"SURVIVES: {mutant.name} ({mutant.of}, {mutant.file}): {mutant.why}; {', '.join(mutant.checks)}")
    for mutant in troubled:
        print(f"CANNOT BE JUDGED: {mutant.name}: {results[mutant.name]['says']}")
    for sentence in lost:
        print(f"CANNOT BE FOUND: {sentence}")
    return int(bool(survivors or troubled or lost))


class Workshop:
    """Copies of src, one for each process, and the results so far."""

    def __init__(self, folder: Path, jobs: int, known: dict[str, dict[str, object]]) -> None:
        self.known, self.jobs = known, jobs
        self.seconds: dict[str, float] = {}
        self._source_hash = _hash(*(path.read_bytes() for path in sorted(SOURCE.rglob("*")) if _is_source(path)))
        self._copies: queue.Queue[Path] = queue.Queue()
        for number in range(jobs):
            copy = folder / str(number)
            shutil.copytree(SOURCE, copy / "src" / "gralis", ignore=shutil.ignore_patterns("__pycache__"))
            # Checked by their hash: a mutated file is compiled again, and its time stamp plays no part.
            compileall.compile_dir(copy / "src", quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
            self._copies.put(copy)

    def run(
        self, work: list[tuple[str, Mutant | None, tuple[str, ...]]], verbose: bool
    ) -> dict[str, dict[str, object]]:
        """The verdict on every piece of work, from the file of results or from a new process."""
        results, todo = {}, []
        for name, mutant, checks in work:
            key = self._key(mutant, checks)
            if key in self.known:
                results[name] = self.known[key]
            else:
                todo.append((name, mutant, checks, key))
        with ThreadPoolExecutor(self.jobs) as pool:
            futures = {pool.submit(self._judged, mutant, checks): (name, key) for name, mutant, checks, key in todo}
            for done, future in enumerate(as_completed(futures), 1):
                name, key = futures[future]
                results[name] = self.known[key] = future.result()
                self._save()
                says = f": {results[name]['says']}" if verbose or results[name]["verdict"] == "trouble" else ""
                print(
                    f"[{done}/{len(todo)}] {name}: {results[name]['verdict']}, {results[name]['seconds']} s{says}",
                    flush=True,
                )
        return results

    def _judged(self, mutant: Mutant | None, checks: tuple[str, ...]) -> dict[str, object]:
        copy = self._copies.get()
        place = copy / "src" / "gralis" / (mutant.file if mutant else "version.py")
        before = place.read_text(encoding="utf-8")
        began = time.perf_counter()
        try:
            if mutant:
                place.write_text(mutant.applied(), encoding="utf-8")
            limit = max(_LEAST_SECONDS, _PATIENCE * sum(self.seconds.get(check, 0.0) for check in checks))
            code, says = _process(copy, checks, limit)
        finally:
            place.write_text(before, encoding="utf-8")
            self._copies.put(copy)
        verdict = {0: "survived", 1: "caught"}.get(code, "trouble")
        return {"verdict": verdict, "says": says, "seconds": round(time.perf_counter() - began, 1)}

    def _key(self, mutant: Mutant | None, checks: tuple[str, ...]) -> str:
        files = [ROOT / check.partition("::")[0] for check in checks if not check.startswith("verify:")]
        return _hash(
            self._source_hash.encode(), repr((mutant, checks)).encode(), *(path.read_bytes() for path in files)
        )

    def _save(self) -> None:
        _STATE.parent.mkdir(exist_ok=True)
        fresh = _STATE.with_suffix(".new")
        fresh.write_text(json.dumps(self.known, indent=1))
        fresh.replace(_STATE)


def _process(copy: Path, checks: tuple[str, ...], limit: float) -> tuple[int, str]:
    """The exit code of the judge on this copy, and the first line it printed that says something."""
    process = _CONTEXT.Process(target=judge, args=(copy, ROOT, checks, limit))
    process.start()
    process.join(_WAIT * limit)
    if process.is_alive():
        process.kill()
        process.join()
        return TROUBLE, f"no verdict after {_WAIT * limit:.0f} s"
    if process.exitcode == -signal.SIGXCPU:
        return FAILED, f"stopped after {limit:.0f} s of computing"
    lines = [line for line in (copy / "said").read_text(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("FAILS", "FAILED", "E  ", "/")) or "Error" in line]
    return int(process.exitcode or 0), (telling or lines or ["nothing"])[0][:300]


def _is_source(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


def _hash(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
