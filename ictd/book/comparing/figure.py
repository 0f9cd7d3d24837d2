"""The figure of a comparison: each result against the parameter that was swept, with bands over seeds."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from . import panel
from .panel import plain
from .plan import Plan

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from ictd.figures import BookFigure

_SINGLE = "#0072B2"
_LONG = 36  # characters of a name in the legend, from which on there is one in a row


def draw(plan: Plan, title: str) -> BookFigure:
    """Draw what was planned.

    Args:
        plan: The axis, the lines and the panels.
        title: What the runs are of; what the marks mean and what is left out is added to it.
    """
    from matplotlib import style

    # Whatever the reader's own matplotlibrc says.
    with style.context("default"):
        return _draw(plan, title)


def files(plan: Plan, title: str) -> dict[str, bytes]:
    """The figure as the contents of files, by their endings "png" and "svg"."""
    from matplotlib import style

    # Ticks are made when a figure is rendered, with the settings of that moment.
    with style.context("default"):
        data = _draw(plan, title)._repr_mimebundle_()[0]
    return {"png": data["image/png"], "svg": data["image/svg+xml"].encode()}


def _draw(plan: Plan, title: str) -> BookFigure:
    from ictd.figures._style import grid, sequential_colours

    count = len(plan.panels)
    columns = 1 if count == 1 else 2
    rows = -(-count // columns)
    labels = [line.label for line in plan.lines if line.label]
    across = 2 if max(map(len, labels), default=0) < _LONG else 1
    legend = 0.25 * -(-(len(labels) + 1) // across)
    width, height = (5.2, 3.6) if count == 1 else (6.6, 0.6 + 2.1 * rows)
    figure, axes = grid(rows, columns, width, height + legend)
    places: list[Axes] = list(axes.flat)
    for spare in places[count:]:
        spare.remove()
    del places[count:]
    colours = sequential_colours(len(labels)) if labels else [_SINGLE]
    for axis, result in zip(places, plan.panels, strict=True):
        panel.draw(figure, axis, plan, result, colours)
    for axis in places[-columns:]:  # the lowest of each column
        axis.set_xlabel(plain(plan.x))
    lines = [textwrap.fill(plain(line), int(14 * width)) for line in (title, _remarks(plan))]
    figure.suptitle("\n".join(filter(None, lines)), fontsize="small")
    handles: dict[str, Artist] = {}
    for axis in places:
        drawn, texts = axis.get_legend_handles_labels()
        handles |= dict(zip(texts, drawn, strict=True))
    if handles:
        figure.legend(
            list(handles.values()),
            list(handles),
            loc="outside lower center",
            ncols=across,
            frameon=False,
            fontsize="small",
        )
    return figure


def _remarks(plan: Plan) -> str:
    spreads = [s.spreads[r] for line in plan.lines for s in line.settings for r in plan.panels]
    words = []
    if not plan.of_seeds and any(one.smallest < one.largest for one in spreads):
        marks = "bands" if plan.numeric else "bars"
        words.append(f"medians over seeds, {marks} from smallest to largest")
    return "; ".join([*words, *plan.notes])
