"""The book's figures: each function takes data and returns one matplotlib figure, drawn once.

Figures have an opaque white face, so that they read on a dark page, and use matplotlib's own maths
typesetting: no LaTeX is needed. Colours are those of Okabe and Ito, or a perceptually uniform map where
they stand for a number; a method keeps its name and colour throughout the book.
"""

from ictd.figures._algorithm import error_curves, interpolation, kernel_panels, limit_distances
from ictd.figures._attention import (
    entropy_against_scale,
    layer_errors,
    operation_counts,
    weight_panels,
)
from ictd.figures._beyond import (
    certified_shares,
    condition_thresholds,
    eigenvalue_discs,
    growing_errors,
    rates_against_step,
)
from ictd.figures._construction import deviations_by_layer, forward_passes, memory_rows
from ictd.figures._convergence import (
    covariance_panels,
    errors_by_depth,
    floor_against_length,
    norms_against_bound,
    thresholds,
)
from ictd.figures._emergence import neu_curves, neu_training
from ictd.figures._experiments import (
    attention_entries_over_training,
    attention_matrices,
    curves_over_training,
    method_errors,
    value_row_over_training,
)
from ictd.figures._style import METHOD_COLOURS, BookFigure, sequential_colours

__all__ = [
    "METHOD_COLOURS",
    "BookFigure",
    "attention_entries_over_training",
    "attention_matrices",
    "certified_shares",
    "condition_thresholds",
    "covariance_panels",
    "curves_over_training",
    "deviations_by_layer",
    "eigenvalue_discs",
    "entropy_against_scale",
    "error_curves",
    "errors_by_depth",
    "floor_against_length",
    "forward_passes",
    "growing_errors",
    "interpolation",
    "kernel_panels",
    "layer_errors",
    "limit_distances",
    "memory_rows",
    "method_errors",
    "neu_curves",
    "neu_training",
    "norms_against_bound",
    "operation_counts",
    "rates_against_step",
    "sequential_colours",
    "thresholds",
    "value_row_over_training",
    "weight_panels",
]
