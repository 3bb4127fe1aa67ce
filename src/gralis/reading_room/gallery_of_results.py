"""`gralis.gallery`: a folder of results becomes a site that opens from disk."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from gralis.checks import as_path, whole
from gralis.errors import GralisError, bad
from gralis.many import Results
from gralis.many.result import KeptExplanation
from gralis.reading_room.cases import COLUMNS, CaseReader, packed_floats
from gralis.reading_room.groups import LEVEL, groups, strongest
from gralis.reading_room.site import Site
from gralis.reading_room.thumbnails import shown_image, thumbnail
from gralis.storage.folder import hashed_name
from gralis.version import __version__

__all__ = ["gallery"]

SCHEMA = "gralis.gallery/1"
_CHUNK = 500  # rows of a script


def gallery(
    results: Results | str | Path,
    out: str | Path,
    *,
    title: str | None = None,
    classes: Sequence[str] = (),
    reports: int | None = None,
    progress: bool | None = None,
) -> Path:
    """Write the results of `explain_many` as a static site; open its index.html from disk, without a server.

    The site lists all inputs with prediction, label, largest features, width of the certificate and residual, and
    those that failed. It sorts, filters, and answers preset questions. It shows statistics of the data set and of its
    classes, and keeps a note for each input in the browser. If the run kept its explanations (`ledgers=True`), each
    input has its full report, its picture, and the features whose phi and Shapley value disagree in sign.

    Parameters
    ----------
    results : Results, str or Path
        What `explain_many` returned, or its folder.
    out : str or Path
        The folder of the site. It must be new or empty, or hold an older gallery, whose reports are kept where they are
        still those of the run.
    title : str, optional
        The title of the page; the name of the folder of the results by default.
    classes : sequence of str, default=()
        The names of the classes in the order of the model's outputs. Without them, classes are numbers.
    reports : int, optional
        How many reports are written at most, in the order of the inputs. By default every kept explanation gets one,
        which takes a second or so for each.
    progress : bool, optional
        Whether to show a progress bar; by default on a terminal.

    Returns
    -------
    Path
        The page, `index.html`.

    Examples
    --------
    >>> import gralis, tempfile, torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = gralis.explain_many(lambda z: z.sum(1), torch.eye(3), out=f"{folder}/results")
    ...     page = gallery(run, f"{folder}/gallery")
    ...     page.name, sorted(path.name for path in page.parent.iterdir())
    ('index.html', ['data', 'index.html', 'reports', 'thumbs'])
    """
    run = results if isinstance(results, Results) else _opened(results)
    names = _checked(title, classes)
    most = sys.maxsize if reports is None else whole(reports, "reports", 0, "gallery")
    kept, everyone = strongest(run)
    if len(run) == 0:
        raise GralisError(f"{run.path} has no finished inputs.")
    reader, site = CaseReader(run, names, kept), Site(as_path(out, "gallery", "out"))
    shown = progress is True or (progress is None and sys.stderr.isatty())
    writer = _Writer(site, reader, most)
    with tqdm(total=len(run), unit="input", desc="gralis gallery", leave=False, disable=not shown) as bar:
        for number, block in enumerate(reader.blocks()):
            writer.add(block, run.kept(number))
            bar.update(len(block["id"]))
    writer.flush()
    by = [] if kept is None else [groups(run, kept, column, names) for column in ("label", "target")]
    head = {
        "schema": SCHEMA,
        "gralis": __version__,
        "title": title or f"Explanations in {run.path.resolve().name}",
        "run": hashed_name(f"{sorted(run.settings.items())} {len(run)}"),  # under which the browser keeps the notes
        "n": len(run),
        "n_failures": run.n_failures,
        "n_chunks": writer.n_chunks,
        "chunk": _CHUNK,
        "level": LEVEL,
        "is_predicted": reader.is_predicted,
        "target": run.settings.get("target"),
        "baseline": run.settings.get("baseline"),
        "everyone": everyone,
        "groups": [each for each in by if each["classes"]],
        "n_reports": writer.n_reports,
    }
    return site.finish(head)


class _Writer:
    """Collects rows into chunks, and writes the report and the picture of each input that has an explanation."""

    def __init__(self, site: Site, reader: CaseReader, most_reports: int) -> None:
        self._site, self._reader, self._most = site, reader, most_reports
        self._waiting: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        self._phi: list[Any] = []
        self.n_chunks, self.n_reports = 0, 0

    def add(self, block: dict[str, Any], kept: dict[str, KeptExplanation]) -> None:
        for place, item in enumerate(block["id"]):
            if item in kept:
                self._explain(block, place, kept[item])
        for name in COLUMNS:
            self._waiting[name].extend(block[name])
        self._phi.append(block["phi"])
        while len(self._waiting["id"]) >= _CHUNK:
            self._write(_CHUNK)

    def flush(self) -> None:
        if self._waiting["id"]:
            self._write(len(self._waiting["id"]))

    def _write(self, count: int) -> None:
        phi = np.concatenate(self._phi)
        chunk = {name: column[:count] for name, column in self._waiting.items()}
        self._site.write_chunk(self.n_chunks, {**chunk, "phi": packed_floats(phi[:count]), "n_kept": phi.shape[1]})
        self._waiting = {name: column[count:] for name, column in self._waiting.items()}
        self._phi = [phi[count:]]
        self.n_chunks += 1

    def _explain(self, block: dict[str, Any], place: int, kept: KeptExplanation) -> None:
        """Add what only the whole explanation knows."""
        e = kept.load()
        block["opposed"][place] = [conflict.name for conflict in e.sign_conflicts]
        stem = f"{hashed_name(block['id'][place])}-{kept.digest[:8]}"
        picture = thumbnail(e)
        if picture is not None:
            self._site.write(f"thumbs/{stem}.png", picture)
            block["thumb"][place] = f"thumbs/{stem}.png"
        if self.n_reports >= self._most:
            return
        name = f"reports/{stem}.html"
        if not self._site.has(name):
            label = block["class"][place]
            what = f"Why {label}" if label else "Why this output"
            title = f"{what} for {block['id'][place]}?"
            e.report(self._site.path / name, title=title, image=shown_image(e), label=label)
        block["report"][place] = name
        self.n_reports += 1


def _opened(results: object) -> Results:
    if not isinstance(results, str | Path):
        raise bad("results", "gallery", "results of explain_many, or their folder", f"a {type(results).__name__}")
    return Results(results)


def _checked(title: object, classes: Sequence[str]) -> tuple[str, ...]:
    if title is not None and not isinstance(title, str):
        raise bad("title", "gallery", "a text or None", repr(title))
    if not isinstance(classes, Sequence) or isinstance(classes, str) or not all(isinstance(c, str) for c in classes):
        raise bad("classes", "gallery", "a sequence of names", repr(classes))
    return tuple(classes)
