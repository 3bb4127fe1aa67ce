"""Which passage made it say that? A small GPT with a planted rule, trained on text that ships with Python.

Passages are pieces of Python's own documentation. One of them contains a code word, the name of an animal, and every
animal stands for a colour; other colours are mentioned here and there. The question asks for the colour, so the rule is
known: the passage with the code word decides the answer. In training, passages are blanked at random, and without the
code word any colour may be the answer; so the model knows what an absent passage is. Everything is trained here, in a
few minutes on one core; nothing is downloaded.
"""

from __future__ import annotations

import pydoc_data.topics
import re
from collections import Counter
from typing import NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

import gralis

CODE = {
    "falcon": "red", "otter": "blue", "lynx": "green", "heron": "black",
    "viper": "white", "bison": "amber", "camel": "coral", "raven": "ivory",
}  # fmt: skip
COLOURS = list(CODE.values())
SPECIAL = ["[PAD]", "[UNK]"]
QUESTION = "question what is the colour ? answer"
N_PASSAGES, N_WORDS = 5, 9
N_CLOSER = 10  # prompts whose passage is split into words


def corpus() -> list[str]:
    """Words of Python's documentation, in order; the 300 most frequent ones, the others are left out."""
    words = re.findall(r"[a-z]+", " ".join(pydoc_data.topics.topics.values()).lower())
    frequent = {word for word, _ in Counter(words).most_common(300)} - {*CODE, *COLOURS}
    return [word for word in words if word in frequent]


def tokenizer_for(words: list[str]) -> PreTrainedTokenizerFast:
    """One token per word."""
    vocabulary = list(dict.fromkeys([*SPECIAL, *COLOURS, *CODE, ".", *QUESTION.split(), *sorted(set(words))]))
    raw = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="[UNK]", pad_token="[PAD]")


class Riddle(NamedTuple):
    """A prompt, its passages, which of them has the code word, that word, and the answer."""

    passages: tuple[str, ...]
    where: int
    code: str

    @property
    def answer(self) -> str:
        return CODE[self.code]

    @property
    def prompt(self) -> str:
        return "\n\n".join([*self.passages, QUESTION])

    @property
    def template(self) -> gralis.text.Prompt:
        """The same prompt, whose passages are features and whose question is fixed."""
        return gralis.text.fill("{passage}\n\n" + QUESTION, {"passage": list(self.passages)}, separator="\n\n")


def riddle(words: list[str], rng: np.random.Generator) -> Riddle:
    """Five passages, one with a code word and two that mention some colour."""
    code, decoys = str(rng.choice(list(CODE))), rng.choice(COLOURS, size=2).tolist()
    where, *elsewhere = rng.permutation(N_PASSAGES)[:3].tolist()
    passages = []
    for number in range(N_PASSAGES):
        start = int(rng.integers(len(words) - N_WORDS))
        piece = words[start : start + N_WORDS]
        place = int(rng.integers(N_WORDS))
        if number == where:
            piece[place] = code
        elif number in elsewhere:
            piece[place] = decoys[elsewhere.index(number)]
        passages.append(" ".join([*piece, "."]))
    return Riddle(tuple(passages), where, code)


def example(one: Riddle, number: dict[str, int], rng: np.random.Generator) -> list[int]:
    """A riddle with its answer as ids; some passages are blank, and without the code word the answer is any colour."""
    blank = rng.random(N_PASSAGES) < rng.choice([0.0, 0.3, 0.7])
    answer = str(rng.choice(COLOURS)) if blank[one.where] else one.answer
    ids: list[int] = []
    for passage, is_blank in zip(one.passages, blank, strict=True):
        piece = [number[word] for word in passage.split()]
        ids += [number["[PAD]"]] * len(piece) if is_blank else piece
    return [*ids, *(number[word] for word in f"{QUESTION} {answer} .".split())]


def train(n_steps: int = 500, seed: int = 0) -> tuple[GPT2LMHeadModel, PreTrainedTokenizerFast, list[str]]:
    """The model, its tokenizer, and the words from which riddles are made."""
    torch.manual_seed(seed)
    rng, words = np.random.default_rng(seed), corpus()
    tokenizer = tokenizer_for(words)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=72, n_embd=64, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0, bos_token_id=0, eos_token_id=0, initializer_range=0.1,
    )  # fmt: skip
    model = GPT2LMHeadModel(config).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=n_steps)
    n_answer, number = 2, tokenizer.get_vocab()
    for _ in range(n_steps):
        batch = torch.tensor([example(riddle(words, rng), number, rng) for _ in range(32)])
        hidden = model.transformer(batch).last_hidden_state
        logits = model.lm_head(hidden[:, -n_answer - 1 : -1])  # the answer; the passages are quotations
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, -n_answer:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return model.eval(), tokenizer, words


def main(n_prompts: int = 3, n_steps: int = 260) -> dict[str, float]:
    """Explain some riddles; returns how often the passage and, after a closer look, the code word were found."""
    model, tokenizer, words = train(n_steps)
    print("Shapley values of the log-probability of the answer, F(x) - F(x'), over passages")
    rng = np.random.default_rng(1)
    right = passage_found = word_found = 0
    for number in range(n_prompts):
        one = riddle(words, rng)
        with torch.no_grad():
            ids = torch.tensor([tokenizer(one.prompt)["input_ids"]])
            right += tokenizer.decode([int(model(ids).logits[0, -1].argmax())]) == one.answer
        answer = gralis.text.explain_generation(model, tokenizer, one.template, f" {one.answer} .", absent="pad")
        low = answer.interval()[0, :, 0]
        passage_found += int(np.argmax(answer.values[0])) == one.where and bool(low[one.where] > 0)
        if number < N_CLOSER:
            closer = answer.drill(one.where, into="words", budget=130)
            best = int(np.argmax(closer.values[0]))
            is_code = closer.spans[best].of(closer.text) == one.code
            word_found += is_code and bool(closer.interval()[0, best, 0] > 0)
        if number == 0:
            print(answer)
    found = {
        "right": right / n_prompts,
        "passage": passage_found / n_prompts,
        "word": word_found / min(n_prompts, N_CLOSER),
    }
    print(f"{n_prompts} prompts: " + ", ".join(f"{name} {share:.0%}" for name, share in found.items()))
    return found


if __name__ == "__main__":
    main(100, 500)
