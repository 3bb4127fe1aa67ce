"""GRALIS and its peers as functions with one signature over the same features, for comparison.

    method(model, x, *, target, baseline, features, seed, batch_size, budget, ledger, ...) -> Attribution

from_ledger    GRALIS, its limits, Integrated Gradients, KernelSHAP and LIME: arithmetic on one ledger
gradcam_maps   GradCAM and GradCAM-lin at a layer
layer_map      a layer's map, brought to the input and to features
occlude        F(x) - F(x without i)
random_values  random numbers, the control
several        `run`: several methods on one input, one ledger for all that can read it
registry       the methods by name, and `register` for a method of your own
method         what a method is
settings       the keywords that methods and metrics share
"""

from gralis.methods.from_ledger import gralis, gralis_uniform, integrated_gradients, kernel_shap, lime, singles
from gralis.methods.gradcam_maps import Cam, gradcam, gradcam_lin, gradcam_map
from gralis.methods.layer_map import Map
from gralis.methods.method import Method
from gralis.methods.occlude import occlusion
from gralis.methods.random_values import random
from gralis.methods.registry import FROM_LEDGER, METHODS, register
from gralis.methods.several import run

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
    "register",
    "run",
    "singles",
]
