"""Which words decide? This explains a small transformer on token ids through its embedding layer.

The network is built from a configuration, so nothing is downloaded. It is trained for a few seconds on a toy language:
"good" speaks for a film, "bad" speaks against it, and "not" reverses the opinion.
"""

from __future__ import annotations

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification

import gralis

SCORE = {"good": 1, "great": 1, "bad": -1, "awful": -1}
NEUTRAL = ["the", "film", "plot", "was", "it", "and"]
WORDS = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "not", *SCORE, *NEUTRAL]
LENGTH = 5  # words in a sentence


class Tokenizer:
    """Words to ids and back. gralis needs only `convert_ids_to_tokens`."""

    def encode(self, sentence: str) -> list[int]:
        return [WORDS.index(word) for word in ["[CLS]", *sentence.split(), "[SEP]"]]

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        return [WORDS[i] for i in ids]


def sentences(n: int, rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Random sentences of neutral words around one opinion, which "not" reverses in half of them."""
    tokenizer, ids, labels = Tokenizer(), [], []
    for _ in range(n):
        opinion, negated = str(rng.choice(list(SCORE))), bool(rng.random() < 0.5)
        words = [str(word) for word in rng.choice(NEUTRAL, LENGTH)]
        words[rng.integers(1, LENGTH)] = opinion
        if negated:
            words[words.index(opinion) - 1] = "not"
        ids.append(tokenizer.encode(" ".join(words)))
        labels.append(int((SCORE[opinion] > 0) != negated))
    return torch.tensor(ids), torch.tensor(labels)


def train(steps: int = 140) -> BertForSequenceClassification:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=16,
        initializer_range=0.2,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    network = BertForSequenceClassification(config)
    optimiser = torch.optim.Adam(network.parameters(), lr=2e-3)
    rng = np.random.default_rng(0)
    for _ in range(steps):
        ids, labels = sentences(64, rng)
        ids[torch.rand(ids.shape) < 0.15] = WORDS.index("[MASK]")  # the network must learn the token of the baseline
        loss = torch.nn.functional.cross_entropy(network(ids).logits, labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return network.eval()


def main() -> gralis.Explanation:
    network, tokenizer = train(), Tokenizer()
    ids = torch.tensor(tokenizer.encode("the plot was not good"))
    absent = ids.clone()
    absent[1:-1] = WORDS.index("[MASK]")  # x': the same sentence with every word masked

    explanation = gralis.explain(
        network,
        ids,
        baseline=absent,
        target=gralis.targets.margin(0, against=1),  # by how much "against" leads
        layer="bert.embeddings.word_embeddings",
        features=gralis.features.tokens(ids, tokenizer),
        budget=800,
    )
    print(explanation)
    words = list(explanation.names)
    together = explanation.interactions(order=2)[(words.index("not"), words.index("good"))]
    print(f'"not" and "good" have the interaction {together:.3g} of {explanation.delta:.3g}')
    page = explanation.token_html()  # coloured words for a web page; explanation.plot("text") draws the same
    print(f"HTML of {len(page)} characters")
    return explanation


if __name__ == "__main__":
    main()
