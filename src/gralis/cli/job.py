"""One model and many inputs: each is explained, shown and written by itself; one that fails does not stop the rest."""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gralis.api.explain import explain
from gralis.cli.outcome import BAD, DONE, NOT_REACHED, one_line, say
from gralis.cli.output import Folder, write_picture, write_report
from gralis.cli.question import Question, ask
from gralis.cli.show import show, to_json
from gralis.cli.subjects import Pictures, Rows, Subject
from gralis.errors import GralisError
from gralis.results.explanation import Explanation

_MARKED = 8  # regions named on the heat map


@dataclass(frozen=True)
class Job:
    """What is the same for all inputs."""

    model: Any
    subjects: Pictures | Rows
    target: str | None
    labels: list[str]
    options: dict[str, Any]  # of gralis.explain
    folder: Folder | None
    as_json: bool
    quiet: bool
    debug: bool

    def run(self) -> int:
        """All inputs; the exit code."""
        names = self.subjects.names()
        codes = set()
        for index, name in enumerate(names):
            if len(names) > 1 and not self.quiet and sys.stderr.isatty():
                print(f"[{index + 1}/{len(names)}] {one_line(name)}", file=sys.stderr)
            try:
                codes.add(self._one(index, name))
            except GralisError as error:
                if self.debug:
                    traceback.print_exc()
                say(f"{name}: {error}" if len(names) > 1 else str(error))
                if self.as_json:
                    print(to_json({"input": name, "error": str(error)}), flush=True)
                codes.add(BAD)
        return BAD if BAD in codes else NOT_REACHED if NOT_REACHED in codes else DONE

    def _one(self, index: int, name: str) -> int:
        subject = self.subjects.subject(index, self.model, self.options["layer"])
        question = ask(self.model, subject.x, self.target, self.labels)
        found = explain(
            self.model,
            subject.x,
            baseline=subject.baseline,
            target=question.target,
            features=subject.features,
            **self.options,
        )
        # The file should say what it is about: replay and report read it from there.
        about = {"input": name, "label": question.label, "preprocessing": subject.preprocessing}
        found = replace(found, provenance={**found.provenance, **about})
        if not self.as_json:
            show(found, name, str(question))
        try:
            files, error = self._write(found, name, subject), None
        except GralisError as reason:  # the result was dear: it is shown all the same
            files, error = [], str(reason)
            say(error)
        self._close(found, name, question, files, error)
        return BAD if error else NOT_REACHED if found.reached is False else DONE

    def _write(self, found: Explanation, name: str, subject: Subject) -> list[Path]:
        if self.folder is None:
            return []
        stem = self.folder.stem(name)
        files = [found.save(stem.with_name(f"{stem.name}.gralis"))]
        try:
            figure = (
                found.plot("bars")
                if subject.picture is None
                else found.plot("heatmap", image=subject.picture, mark=_MARKED)
            )
            files.append(write_picture(figure, stem.with_name(f"{stem.name}.png")))
        except GralisError as error:
            if "matplotlib" not in str(error):
                raise
            self._note(str(error))
        files.append(write_report(found, stem.with_name(f"{stem.name}.html"), subject.picture))
        return files

    def _close(self, found: Explanation, name: str, question: Question, files: list[Path], error: str | None) -> None:
        if self.as_json:
            about = {"input": name, "label": question.label, "predicted": question.predicted}
            wrong = {"error": error} if error else {}
            print(to_json({**about, **wrong, "files": list(map(str, files)), **found.to_dict()}), flush=True)
            return
        if files:
            print(f"written: {', '.join(one_line(str(path)) for path in files)}")
        print(flush=True)

    def _note(self, sentence: str) -> None:
        if not self.quiet:
            say(sentence)
