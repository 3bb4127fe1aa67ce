"""Texts: which words, which passage, which turn made a model say that, with errors.

`explain` is for classifiers and encoders, `explain_generation` for models that write.
"""

from gralis.text.explain_text import explain
from gralis.text.prompt import Prompt, conversation, fill
from gralis.text.spans import Span, split

__all__ = ["Prompt", "Span", "conversation", "explain", "fill", "split"]
