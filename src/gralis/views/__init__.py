"""Pictures and tables of results. Nothing is computed here that a result does not have.

plots       pictures by their kind, and the registry of kinds
bars, heatmap, charts, tokens   the pictures
row_plots   pictures of many rows by their kind: row_summaries, row_relations, row_paths; row_parts is what they share
html        what a notebook shows
pixels      features on the pixels of an image
colours     the colours of all pictures; feature_tags, names: names that are safe and short enough
html_parts, svg_parts           parts of static pages
"""

from gralis.views.plots import new_figure, plot, plot_kinds, register_plot
from gralis.views.row_plots import plot_rows, row_plot_kinds
from gralis.views.tokens import token_html

__all__ = ["new_figure", "plot", "plot_kinds", "plot_rows", "register_plot", "row_plot_kinds", "token_html"]
