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
    interop,
    many,
    methods,
    models,
    plans,
    report,
    targets,
    text,
    views,
)
from gralis.api.batch import explain_batch
from gralis.api.compare import compare
from gralis.api.cost import cost
from gralis.api.explain import explain
from gralis.api.explainer import Explainer
from gralis.api.replay import replay
from gralis.errors import BudgetError, GralisError, ModelError
from gralis.features import Features
from gralis.files.row_archive import load
from gralis.kernels import Gaussian, SizeKernel, Uniform
from gralis.ledger import Ledger
from gralis.many import explain_many, global_importance
from gralis.models import Model
from gralis.paper import verify
from gralis.reading_room import gallery
from gralis.results import Attribution, Explanation, Explanations, Interactions, Sweep
from gralis.results.replay import Replay
from gralis.scales import Granularity, MultiScale, granularity, multiscale
from gralis.sobol import Hoeffding, Sensitivity, TermShares, hoeffding, sensitivity, term_shares
from gralis.version import __version__

__all__ = [
    "Attribution",
    "BudgetError",
    "Explainer",
    "Explanation",
    "Explanations",
    "Features",
    "Gaussian",
    "GralisError",
    "Granularity",
    "Hoeffding",
    "Interactions",
    "Ledger",
    "Model",
    "ModelError",
    "MultiScale",
    "Replay",
    "Sensitivity",
    "SizeKernel",
    "Sweep",
    "TermShares",
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
    "gallery",
    "games",
    "global_importance",
    "granularity",
    "hoeffding",
    "interop",
    "load",
    "many",
    "methods",
    "models",
    "multiscale",
    "plans",
    "replay",
    "report",
    "sensitivity",
    "targets",
    "term_shares",
    "text",
    "verify",
    "views",
]


def __dir__() -> list[str]:
    """The public names, and nothing else."""
    return __all__
