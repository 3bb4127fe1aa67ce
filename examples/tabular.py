"""Explain a row of a table: a torch network on scikit-learn's breast cancer data.

The baseline is a sample of the training rows. phi is averaged over them, so that "absent" means "as in the data".
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_breast_cancer

import gralis


def main() -> gralis.Explanation:
    table = load_breast_cancer()
    raw = torch.tensor(table.data, dtype=torch.float32)
    X, y = (raw - raw.mean(0)) / raw.std(0), torch.tensor(table.target)  # 0: malignant, 1: benign

    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(30, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(60):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(network(X), y).backward()
        optimiser.step()
    network.eval()
    print(f"accuracy on the training data {(network(X).argmax(1) == y).float().mean():.3f}")

    explanation = gralis.explain(
        network,
        X[0],
        baseline=gralis.baselines.sample(X, n=8),
        target=gralis.targets.log_odds(0),
        features=gralis.features.columns(table.feature_names),
        budget=1600,
    )
    print(explanation)
    print(explanation.certificate())
    return explanation


if __name__ == "__main__":
    main()
