"""What the figures share: size, resolution, colours, curves with a band."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

#: Name and colour of each method, the same in every chapter.
METHOD_COLOURS = {
    "tabular TD": "#000000",
    "linear TD": "#D55E00",
    "LSTD": "#CC79A7",
    "certainty equivalence": "#555555",
    "weighted softmax TD": "#0072B2",
    "softmax in the linear layer": "#E69F00",
    "softmax, both signs flipped": "#009E73",
}

# Few inches and many pixels an inch: text stays legible where the page shrinks a figure to a phone.
_SCREEN_DPI = 120
_PIXEL_RATIO = 2


class BookFigure(Figure):
    """A figure that a notebook shows as one PNG, twice as fine as it is laid out."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=_PIXEL_RATIO * _SCREEN_DPI, facecolor="white")
        width, height = (int(inches * _SCREEN_DPI) for inches in self.get_size_inches())
        return buffer.getvalue(), {"width": width, "height": height}


def sequential_colours(count: int) -> Sequence[Any]:
    """Colours for ``count`` increasing values of a number, from dark to light."""
    return [mpl.colormaps["viridis"](x) for x in np.linspace(0.0, 0.85, max(count, 1))][:count]


def grid(rows: int, columns: int, width: float, height: float) -> tuple[BookFigure, Any]:
    """A figure of so many inches with rows × columns of axes, an array of that shape."""
    figure = BookFigure(figsize=(width, height), dpi=_SCREEN_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def band(axis: Axes, errors: ArrayLike, colour: Any, label: str, style: str) -> None:
    """The median over the first axis with the band of the middle half, against 0, 1, 2, …"""
    low, middle, high = np.percentile(np.asarray(errors), [25, 50, 75], axis=0)
    iterations = np.arange(len(middle))
    axis.plot(iterations, middle, style, color=colour, label=label)
    axis.fill_between(iterations, low, high, color=colour, alpha=0.12, linewidth=0)
