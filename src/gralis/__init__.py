"""gralis: explanations of machine-learning predictions that come with an error certificate.

>>> import torch, gralis
>>> model = torch.nn.Linear(4, 1).eval()
>>> explanation = gralis.explain(model, torch.ones(4), baseline=0.0)
>>> explanation.values.shape
(4,)
"""

from gralis import (
    baselines,
    canonical,
    certificates,
    faithfulness,
    features,
    games,
    many,
    methods,
    models,
    plans,
    targets,
)
from gralis.agreement import Replay
from gralis.archive import load
from gralis.batch import explain_batch
from gralis.compare import compare
from gralis.errors import BudgetError, GralisError, ModelError
from gralis.explain import cost, explain
from gralis.explanation import Explanation
from gralis.explanations import Explanations
from gralis.features import Features
from gralis.granularity import Granularity, granularity
from gralis.kernels import Gaussian, SizeKernel, Uniform
from gralis.ledger import Ledger
from gralis.many import explain_many, global_importance
from gralis.models import Model
from gralis.multiscale import MultiScale, multiscale
from gralis.replay import replay
from gralis.sensitivity import Hoeffding, Sensitivity, hoeffding, sensitivity
from gralis.sweep import Sweep
from gralis.verify import verify
from gralis.version import __version__

__all__ = [
    "BudgetError",
    "Explanation",
    "Explanations",
    "Features",
    "Gaussian",
    "GralisError",
    "Granularity",
    "Hoeffding",
    "Ledger",
    "Model",
    "ModelError",
    "MultiScale",
    "Replay",
    "Sensitivity",
    "SizeKernel",
    "Sweep",
    "Uniform",
    "__version__",
    "baselines",
    "canonical",
    "certificates",
    "compare",
    "cost",
    "explain",
    "explain_batch",
    "explain_many",
    "faithfulness",
    "features",
    "games",
    "global_importance",
    "granularity",
    "hoeffding",
    "load",
    "many",
    "methods",
    "models",
    "multiscale",
    "plans",
    "replay",
    "sensitivity",
    "targets",
    "verify",
]
