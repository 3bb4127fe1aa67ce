"""Attributions in canonical form: phi_i = sum over q in Q_i of w_i(q) Delta_i(q) (Theorem 1).

gradcam_lin           Q = channels x positions     w = 1 / Z                        Delta = dy/dA^k_q A^k_p
shap                  Q = coalitions without i     w = |S|! (n - |S| - 1)! / n!     Delta = F(x_{S u i}) - F(x_S)
lime                  Q = perturbations            w = row i of the fit             Delta = F(x_z)
integrated_gradients  Q = nodes in [0, 1]          w = (x_i - x'_i) / k             Delta = dF/dx_i
gralis                Q = coalitions x [0, 1]      w = w(S) pi(S) / Z_i             Delta = (x_i - x'_i) dF/dx_i

The weights do not depend on F and the marginals are linear in F, so each of these attributions is linear in F. Standard
GradCAM (`gradcam`) is not, because its ReLU acts on the sum.
"""

from gralis.canonical.channels import gradcam, gradcam_lin
from gralis.canonical.coalitions import gralis, shap
from gralis.canonical.path import integrated_gradients
from gralis.canonical.surrogate import lime
from gralis.canonical.triple import Triple

__all__ = ["Triple", "gradcam", "gradcam_lin", "gralis", "integrated_gradients", "lime", "shap"]
