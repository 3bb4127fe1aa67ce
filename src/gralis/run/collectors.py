"""What is kept of the rows of a run: all of them, or, with very many features, their sums."""

from __future__ import annotations

from collections.abc import Sequence

from gralis.estimators import Design
from gralis.evaluation.evaluator import Evaluator
from gralis.kernels import Kernel
from gralis.ledger import AnyLedger, FoldedLedger, Ledger
from gralis.rays import RayRequest

__all__ = ["KeptRows", "SummedRows"]


class KeptRows:
    """A collector that keeps every row."""

    takes_all = True  # all replicates may be evaluated as one request

    def __init__(self, evaluator: Evaluator, values: bool, remember: bool = True) -> None:
        self._evaluator, self._values, self._remember = evaluator, values, remember
        self._parts: list[Sequence[Ledger]] = []

    def keep(self, ledgers: Sequence[Ledger]) -> None:
        """Add rows that were evaluated before, one ledger per question. An empty sequence adds nothing."""
        if ledgers:
            self._parts.append(ledgers)

    def add(self, request: RayRequest) -> None:
        self._parts.append(self._evaluator.evaluate(request, values=self._values, remember=self._remember))

    def ledgers(self) -> Sequence[Ledger]:
        self._parts = [tuple(Ledger.join(of_question) for of_question in zip(*self._parts, strict=True))]
        return self._parts[0]


class SummedRows:
    """A collector that adds up the rows, block by block. A block that is interrupted does not count."""

    takes_all = False

    def __init__(
        self,
        evaluator: Evaluator,
        designs: Sequence[Design],
        kernels: Sequence[Kernel],
        before: Sequence[AnyLedger] = (),
    ) -> None:
        self._evaluator, self._designs = evaluator, designs
        self._laws = [[design.with_kernel(kernel).laws for kernel in kernels] for design in designs]
        copies = [ledger.copy() for ledger in before if isinstance(ledger, FoldedLedger)]
        n_features = designs[0].n_features
        self._ledgers = copies or [FoldedLedger.empty(kernels, n_features) for _ in range(evaluator.n_questions)]

    def add(self, request: RayRequest) -> None:
        questions = self._evaluator.questions
        blocks = [
            ledger.block(request, self._laws[number], self._designs[number].baseline_weights)
            for ledger, number in zip(self._ledgers, map(questions.input_of, range(len(questions))), strict=True)
        ]
        for question, part, rows in self._evaluator.gradient_batches(request):
            blocks[question].take(part, rows)
        for block in blocks:
            block.close()

    def ledgers(self) -> Sequence[FoldedLedger]:
        return self._ledgers
