"""Texts: which words, which passage, which turn made a model say that, with errors.

`explain` is for classifiers and encoders, `explain_generation` for models that write.
"""

from gralis.text.explain_answer import explain_generation
from gralis.text.explain_text import explain
from gralis.text.generation import Generation, load
from gralis.text.prompt import Prompt, conversation, fill
from gralis.text.remote_model import RemoteModel, remote
from gralis.text.replay_text import replay
from gralis.text.spans import Span, split
from gralis.text.text_explanation import TextExplanation
from gralis.text.token_matrix import TokenMatrix

__all__ = [
    "Generation",
    "Prompt",
    "RemoteModel",
    "Span",
    "TextExplanation",
    "TokenMatrix",
    "conversation",
    "explain",
    "explain_generation",
    "fill",
    "load",
    "remote",
    "replay",
    "split",
]
