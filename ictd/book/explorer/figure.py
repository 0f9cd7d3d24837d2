"""The figure that stands on the page before anything is turned: kernel and error curve of one setting."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from ictd.figures import METHOD_COLOURS

from .data import compute
from .settings import DEFAULT, GRID, index

#: Colours of 0 … 1, the map in which the book draws kernels.
COLOUR_MAP = "cividis"
_WIDTH, _HEIGHT = 5.2, 5.6  # inches
_DPI = 240
#: Width on the page, in pixels.
SHOWN_WIDTH = 624


def colours(count: int = 33) -> list[str]:
    """So many colours of the map of kernels, evenly spaced from 0 to 1, as `#rrggbb`."""
    import matplotlib as mpl
    from matplotlib.colors import to_hex

    return [to_hex(mpl.colormaps[COLOUR_MAP](x)) for x in np.linspace(0, 1, count)]


def png() -> bytes:
    """The figure of the default setting as a PNG, on an opaque white face."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    FigureCanvasAgg(figure)
    top, bottom = figure.subplots(2, 1, height_ratios=(1.25, 1))
    _kernel(top)
    _curves(bottom)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI, facecolor="white", metadata={"Software": None})
    return buffer.getvalue()


def alternative() -> str:
    """What the figure shows, in a sentence."""
    data, (i, j, k, depth) = compute(), index(DEFAULT)
    error, distance = data["error"][i][k][j], data["distance"][i][k][j]
    diagonal = np.diagonal(data["kernel"][k][j])
    last = data["depth"]
    return (
        "Above, the kernel of the context as a heat map of queries by sources, with weights on the "
        f"diagonal from {diagonal.min():.2f} to {diagonal.max():.2f}; below, against the depth on a "
        f"logarithmic axis, the error, {error[0]:.2f} at the start, {error[depth]:.2f} at depth {depth} "
        f"and {error[last]:.2f} at depth {last}, and the distance from the fixed point of the context, "
        f"which falls all the way from {distance[0]:.2f} to {distance[last]:.1g}."
    )


def _kernel(axis: Any) -> None:
    _, j, k, _ = index(DEFAULT)
    kernel = np.array(compute()["kernel"][k][j])
    axis.imshow(kernel, vmin=0, vmax=1, cmap=COLOUR_MAP)
    for (query, source), weight in np.ndenumerate(kernel):
        ink = "white" if weight < 0.5 else "black"
        axis.text(source, query, f"{weight:.2f}", ha="center", va="center", color=ink, fontsize=7.5)
    states = range(len(kernel))
    axis.set(title=r"kernel $\hat M$", xlabel="source state", ylabel="query state")
    axis.set(xticks=states, yticks=states)


def _curves(axis: Any) -> None:
    data, (i, j, k, depth) = compute(), index(DEFAULT)
    layers = GRID["depth"]
    error, distance = data["error"][i][k][j], data["distance"][i][k][j]
    axis.plot(
        layers,
        error,
        color=METHOD_COLOURS["weighted softmax TD"],
        label=r"$\|v_l-v_\pi\|_\infty$",
    )
    axis.plot([depth], [error[depth]], "o", color=METHOD_COLOURS["weighted softmax TD"])
    axis.plot(
        layers,
        distance,
        "--",
        color=METHOD_COLOURS["certainty equivalence"],
        label=r"$\|v_l-\tilde v\|_\infty$",
    )
    axis.set(yscale="log", xlabel="depth $l$", title="error")
    axis.legend(frameon=False, fontsize="small")
