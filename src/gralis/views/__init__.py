"""Pictures and tables of results. Nothing is computed here that a result does not have.

plots       pictures by their kind, and the registry of kinds
bars, heatmap, charts, tokens   the pictures
html        what a notebook shows
pixels      features on the pixels of an image
colours     the colours of all pictures; feature_tags, names: names that are safe and short enough
html_parts, svg_parts           parts of static pages
"""

from gralis.views.plots import new_figure, plot, plot_kinds, register_plot
from gralis.views.tokens import token_html

__all__ = ["new_figure", "plot", "plot_kinds", "register_plot", "token_html"]
