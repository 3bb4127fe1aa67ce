"""Locality kernels pi(S): how much a predecessor coalition S counts. `bind` makes the exact law of one input.

A kernel of your own is any object with the two methods of `Kernel`; `register` makes its class known to files.
"""

from gralis.kernels.functions import MaskKernel, SizeKernel, as_kernel
from gralis.kernels.gaussian import Gaussian, Uniform
from gralis.kernels.kernel import Kernel
from gralis.kernels.stored import TableOfSizes, UnsavedKernel, from_dict, register, to_dict

__all__ = [
    "Gaussian",
    "Kernel",
    "MaskKernel",
    "SizeKernel",
    "TableOfSizes",
    "Uniform",
    "UnsavedKernel",
    "as_kernel",
    "from_dict",
    "register",
    "to_dict",
]
