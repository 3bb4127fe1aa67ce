"""GRALIS and its peers as functions with one signature over the same features, for comparison.

    method(model, x, *, target, baseline, features, budget, seed, batch_size, ledger, ...) -> Attribution

from_ledger  GRALIS, its limits, Integrated Gradients, KernelSHAP, LIME: arithmetic on one ledger
gradcam      GradCAM and GradCAM-lin at a layer
occlusion    F(x) - F(x without i)
chance       random numbers, the control
map          a layer's map, brought to the input and to features
run          several methods on one input, one ledger for all that can read it
"""

from gralis.methods.at_random import random
from gralis.methods.from_ledger import gralis, gralis_uniform, integrated_gradients, kernel_shap, lime, singles
from gralis.methods.gradcam import Cam, gradcam, gradcam_lin, gradcam_map
from gralis.methods.map import Map
from gralis.methods.method import Method
from gralis.methods.occlude import occlusion
from gralis.methods.several import FROM_LEDGER, METHODS, run

__all__ = [
    "FROM_LEDGER",
    "METHODS",
    "Cam",
    "Map",
    "Method",
    "gradcam",
    "gradcam_lin",
    "gradcam_map",
    "gralis",
    "gralis_uniform",
    "integrated_gradients",
    "kernel_shap",
    "lime",
    "occlusion",
    "random",
    "run",
    "singles",
]
