"""What the figures share: size, resolution, colours, curves with a band."""

from __future__ import annotations

import csv
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
    "trained": "#56B4E9",
}

# Few inches and many pixels an inch: text stays legible where the page shrinks a figure to a phone.
_SCREEN_DPI = 120
_PIXEL_RATIO = 2


class BookFigure(Figure):
    """A figure that a notebook shows as one picture, and that carries the data behind it.

    Its output is one PNG, twice as fine as it is laid out, with the same picture as SVG and the data as
    CSV beside it.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._rows: list[dict[str, Any]] = []

    def record(self, **columns: ArrayLike) -> None:
        """Add rows to the data: columns of one shape, flattened together; scalars are repeated."""
        arrays = np.broadcast_arrays(*(np.asarray(values) for values in columns.values()))
        for values in zip(*(array.ravel().tolist() for array in arrays), strict=True):
            self._rows.append(dict(zip(columns, values, strict=True)))

    def csv(self) -> str:
        """The data behind the figure, one line a row; a row leaves the columns of others empty."""
        names = list(dict.fromkeys(name for row in self._rows for name in row))
        text = io.StringIO()
        writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self._rows)
        return text.getvalue()

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        width, height = (int(inches * _SCREEN_DPI) for inches in self.get_size_inches())
        bundle = {
            "image/png": self._file("png", dpi=_PIXEL_RATIO * _SCREEN_DPI),
            # A fixed salt and no date: the same figure is the same file.
            "image/svg+xml": self._file("svg", metadata={"Date": None}).decode(),
            "text/csv": self.csv(),
        }
        return bundle, {"image/png": {"width": width, "height": height}}

    def _file(self, kind: str, **options: Any) -> bytes:
        buffer = io.BytesIO()
        with mpl.rc_context({"svg.hashsalt": "ictd"}):
            self.savefig(buffer, format=kind, facecolor="white", **options)
        return buffer.getvalue()


def plain(label: str) -> str:
    """A label without the marks of mathematics, for the data."""
    return label.replace("$", "").replace("\\", "")


def sequential_colours(count: int) -> Sequence[Any]:
    """Colours for ``count`` increasing values of a number, from dark to light."""
    return [mpl.colormaps["viridis"](x) for x in np.linspace(0.0, 0.85, max(count, 1))][:count]


def grid(rows: int, columns: int, width: float, height: float) -> tuple[BookFigure, Any]:
    """A figure of so many inches with rows × columns of axes, an array of that shape."""
    figure = BookFigure(figsize=(width, height), dpi=_SCREEN_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def band(
    figure: BookFigure, axis: Axes, errors: ArrayLike, colour: Any, label: str, style: str
) -> None:
    """The median over the first axis with the band of the middle half, against 0, 1, 2, …"""
    low, middle, high = np.percentile(np.asarray(errors), [25, 50, 75], axis=0)
    iterations = np.arange(len(middle))
    axis.plot(iterations, middle, style, color=colour, label=label)
    axis.fill_between(iterations, low, high, color=colour, alpha=0.12, linewidth=0)
    figure.record(
        series=plain(label), iteration=iterations, quartile_1=low, median=middle, quartile_3=high
    )
