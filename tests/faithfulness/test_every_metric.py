"""Every metric: a word that it does not know, and an attribution that is none, are said in its own name."""

import inspect

import numpy as np
import pytest
from torch import nn

from gralis import GralisError, faithfulness

METRICS = [*faithfulness.METRICS.values(), faithfulness.rank_agreement]
OWN = {
    "annotation": np.eye(4),
    "method": "occlusion",
    "others": [np.ones(16)],
}


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.__name__)
def test_every_metric_names_itself_and_what_is_wrong(metric) -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 1)).double().eval()
    own = {name: OWN[name] for name in inspect.signature(metric).parameters if name in OWN}
    asked = {"x": np.arange(16.0).reshape(4, 4), "attribution": np.arange(16.0), **own}
    metric(net, **asked)
    with pytest.raises(TypeError, match=rf"^{metric.__name__}\(\) has no parameter 'sede'; .*seed"):
        metric(net, **asked, sede=1)
    for ragged in ([1.0, [2.0]], ["a"] * 16):
        with pytest.raises(GralisError, match=r"'attribution' .* finite numbers"):
            metric(net, **{**asked, "attribution": ragged})
