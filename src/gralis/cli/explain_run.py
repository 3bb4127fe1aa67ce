"""One model and several inputs: each is explained, printed and written. If one fails, the others still follow."""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gralis.api.explain import explain
from gralis.checks import printable
from gralis.cli.exit_codes import BAD, DONE, NOT_REACHED, code_and_sentence
from gralis.cli.inputs import PictureInputs, PreparedInput, RowInputs
from gralis.cli.messages import one_line, say
from gralis.cli.output import OutputFolder, write_picture, write_report
from gralis.cli.printing import print_explanation, to_json
from gralis.cli.target_choice import ChosenTarget, choose_target
from gralis.errors import GralisError
from gralis.results.explanation import Explanation

__all__ = ["ExplainRun"]

_MARKED = 8  # regions named on the heat map


@dataclass(frozen=True)
class ExplainRun:
    """What is the same for all inputs."""

    model: Any
    inputs: PictureInputs | RowInputs
    target: str | None
    class_names: list[str]
    options: dict[str, Any]  # of gralis.explain
    folder: OutputFolder | None
    as_json: bool
    quiet: bool
    debug: bool

    def run(self) -> int:
        """Explain all inputs and return the exit code."""
        names = self.inputs.names()
        codes = set()
        for index, name in enumerate(names):
            if len(names) > 1 and not self.quiet and sys.stderr.isatty():
                print(f"[{index + 1}/{len(names)}] {one_line(name)}", file=sys.stderr)
            try:
                codes.add(self._explain(index, name))
            except OSError:  # of standard output; those of inputs and results are sentences by now
                raise
            except Exception as error:  # whatever is wrong with this input, the others follow
                if self.debug:
                    traceback.print_exc()
                sentence = code_and_sentence(error)[1]
                say(f"{name}: {sentence}" if len(names) > 1 else sentence)
                if self.as_json:
                    print(to_json({"input": name, "error": sentence}), flush=True)
                codes.add(BAD)
        return BAD if BAD in codes else NOT_REACHED if NOT_REACHED in codes else DONE

    def _explain(self, index: int, name: str) -> int:
        prepared = self.inputs.prepare(index, self.model, self.options["layer"])
        chosen = choose_target(self.model, prepared.x, prepared.baseline, self.target, self.class_names)
        explanation = explain(
            self.model,
            prepared.x,
            baseline=prepared.baseline,
            target=chosen.target,
            features=prepared.features,
            **self.options,
        )
        # replay and report read from the file what it is about.
        about = {"input": printable(name), "label": chosen.label, "preprocessing": prepared.preprocessing}
        explanation = replace(explanation, provenance={**explanation.provenance, **about})
        if not self.as_json:
            print_explanation(explanation, name, str(chosen))
        try:
            files, error = self._write(explanation, name, prepared), None
        except GralisError as reason:  # the result took time to compute, so it is printed all the same
            files, error = [], str(reason)
            say(error)
        self._finish(explanation, name, chosen, files, error)
        missed = explanation.reached is False and self.options["tolerance"] is not None  # the default promises nothing
        return BAD if error else NOT_REACHED if missed else DONE

    def _write(self, explanation: Explanation, name: str, prepared: PreparedInput) -> list[Path]:
        if self.folder is None:
            return []
        stem = self.folder.stem(name)
        files = [explanation.save(stem.with_name(f"{stem.name}.gralis"))]
        try:
            if prepared.picture is None:
                figure = explanation.plot("bars")
            else:
                figure = explanation.plot("heatmap", image=prepared.picture, mark=_MARKED)
            files.append(write_picture(figure, stem.with_name(f"{stem.name}.png")))
        except GralisError as error:
            if "matplotlib" not in str(error):
                raise
            if not self.quiet:
                say(str(error))
        files.append(write_report(explanation, stem.with_name(f"{stem.name}.html"), prepared.picture))
        return files

    def _finish(
        self, explanation: Explanation, name: str, chosen: ChosenTarget, files: list[Path], error: str | None
    ) -> None:
        if self.as_json:
            about = {"input": name, "label": chosen.label, "predicted": chosen.predicted}
            failure = {"error": error} if error else {}
            print(to_json({**about, **failure, "files": list(map(str, files)), **explanation.to_dict()}), flush=True)
            return
        if files:
            print(f"written: {', '.join(one_line(str(path)) for path in files)}")
        print(flush=True)
