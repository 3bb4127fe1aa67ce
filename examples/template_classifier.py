"""Do the words get their known weights? A small BERT learns sentences made from a table, whose truth is additive.

Rows of scikit-learn's wine data become sentences such as "the wine has high alcohol , low malic , ...". Every phrase
has a known weight, and the score of a sentence is the sum over its phrases. In training, phrases are masked at random,
and a masked phrase counts nothing. So the contribution of every phrase is known: its weight. Nothing is downloaded.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_wine
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

import gralis

COLUMNS = ["alcohol", "malic", "ash", "magnesium", "phenols", "hue"]
WEIGHTS = {"alcohol": 2.0, "malic": -1.5, "ash": 0.5, "magnesium": 1.0, "phenols": -0.75, "hue": 0.0}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [*SPECIAL, "the", "wine", "has", "high", "low", ",", *COLUMNS]


def tokenizer() -> PreTrainedTokenizerFast:
    """One token per word, and [CLS] ... [SEP] around a sentence."""
    raw = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]",
    )  # fmt: skip


def sentence(high: np.ndarray) -> str:
    """The sentence of one row: which columns are above their median."""
    phrases = [f"{'high' if is_high else 'low'} {name}" for name, is_high in zip(COLUMNS, high, strict=True)]
    return "the wine has " + " , ".join(phrases)


def rows() -> np.ndarray:
    """Which columns of the wine data are above their median, (n_rows, n_columns)."""
    table = load_wine()
    names = list(table.feature_names)
    wanted = ["alcohol", "malic_acid", "ash", "magnesium", "total_phenols", "hue"]
    values = table.data[:, [names.index(name) for name in wanted]]
    return np.asarray(values > np.median(values, axis=0))


def train(n_steps: int, seed: int = 0) -> tuple[BertForSequenceClassification, PreTrainedTokenizerFast]:
    """A BERT with one output, trained on the known score of sentences with masked phrases."""
    torch.manual_seed(seed)
    rng, high, tok = np.random.default_rng(seed), rows(), tokenizer()
    sizes = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}
    config = BertConfig(
        vocab_size=len(WORDS), num_labels=1, max_position_embeddings=40, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, initializer_range=0.1, **sizes,
    )  # fmt: skip
    model = BertForSequenceClassification(config).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=n_steps)
    ids = torch.tensor([tok(sentence(row))["input_ids"] for row in high])
    places = np.array([4 + 3 * k for k in range(len(COLUMNS))])  # where "high" or "low" stands, after [CLS]
    weights = np.array(list(WEIGHTS.values()))
    for _ in range(n_steps):
        chosen = rng.integers(len(high), size=48)
        masked = rng.random((48, len(COLUMNS))) < rng.random((48, 1))
        batch = ids[chosen].clone()
        for k, place in enumerate(places):
            batch[masked[:, k], place], batch[masked[:, k], place + 1] = tok.mask_token_id, tok.mask_token_id
        score = ((np.where(high[chosen], 1.0, -1.0) * ~masked) @ weights).astype(np.float32)
        loss = ((model(input_ids=batch).logits[:, 0] - torch.tensor(score)) ** 2).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return model.eval(), tok


def main(n_sentences: int = 3, n_steps: int = 250) -> tuple[gralis.Explanation, float]:
    """Explain some sentences by their phrases; returns the first explanation and the largest error of any phrase."""
    model, tok = train(n_steps)
    rng, worst, first = np.random.default_rng(1), 0.0, None
    for row in rows()[rng.permutation(178)[:n_sentences]]:
        text = sentence(row)
        phrases = text.removeprefix("the wine has ").split(" , ")
        explanation = gralis.text.explain(model, tok, text, features=phrases, absent="mask", budget=512)
        truth = np.where(row, 1.0, -1.0) * np.array(list(WEIGHTS.values()))
        worst = max(worst, float(np.abs(explanation.shapley().values - truth).max()))
        first = explanation if first is None else first
    print(first)
    print(f"largest error of any Shapley value over {n_sentences} sentences: {worst:.3f}")
    return first, worst


if __name__ == "__main__":
    main(40, 1000)
