"""One panel of a comparison's figure: a result against the parameter on the axis, with its bounds."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .plan import Line, Plan
from .runs import Result
from .settings import SEED, canonical

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ictd.figures import BookFigure

STYLES = ("-", "--", "-.", ":")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
_BOUND = "#D55E00"
_BOUND_NAME = "bound of the claim"
_LOGARITHMIC = 100.0  # largest over smallest, from which on an axis is logarithmic
_DODGE = 0.08  # of the distance of two categories, between two lines
_FAR = 3.0  # spans of the values, from which on a bound is written and not drawn
_TICKS = 24  # characters below a panel, from which on they are turned
_BOUNDS = {"at_most": "≤", "at_least": "≥"}


@dataclass(frozen=True)
class Curve:
    """The points of one line in one panel; what is not finite is nan."""

    x: list[float]
    middle: list[float]
    low: list[float]
    high: list[float]

    @property
    def ends(self) -> list[float]:
        return [end for end in (*self.low, *self.high) if math.isfinite(end)]


def draw(
    figure: BookFigure, axis: Axes, plan: Plan, result: Result, colours: Sequence[Any]
) -> None:
    """Draw a panel and record what it shows.

    Args:
        figure: Gets the data.
        axis: Where to draw.
        plan: The lines.
        result: What the panel shows.
        colours: Of each line.
    """
    curves = [_curve(plan, number, result) for number in range(len(plan.lines))]
    for number, (line, curve) in enumerate(zip(plan.lines, curves, strict=True)):
        joined = plan.numeric and not plan.of_seeds
        axis.plot(
            curve.x,
            curve.middle,
            color=colours[number],
            linestyle=STYLES[number % len(STYLES)] if joined else "none",
            marker=MARKERS[number % len(MARKERS)],
            markersize=4.5,
            label=plain(line.label) or "_",  # matplotlib leaves such a name out of a legend
        )
        if joined:
            axis.fill_between(
                curve.x, curve.low, curve.high, color=colours[number], alpha=0.15, linewidth=0
            )
        else:
            axis.vlines(curve.x, curve.low, curve.high, color=colours[number], linewidth=1.5)
        _record(figure, plan, line, result, curve)
    ends = [end for curve in curves for end in curve.ends]
    twice = sum(other.name == result.name for other in plan.panels) > 1
    name = f"{result.name} ({result.kind})" if twice else result.name
    axis.set_ylabel(textwrap.fill(plain(name), 24), fontsize="small")
    axis.tick_params(labelsize="small")
    axis.yaxis.get_offset_text().set_fontsize("small")
    if is_logarithmic(ends):
        axis.set_yscale("log")
    _scale_x(axis, plan)
    for bound in _BOUNDS:
        _draw_bound(axis, plan, result, bound, curves, ends, colours)
    missing = sum(s.spreads[result].not_finite for line in plan.lines for s in line.settings)
    if missing:
        _write(axis, 0.98, f"not finite: {missing}", top=True)


def plain(text: str) -> str:
    """Text that matplotlib does not read as mathematics."""
    return text.replace("$", r"\$")


def is_logarithmic(values: Sequence[float]) -> bool:
    """Whether values are positive and span two decades."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    return low > 0 and high >= _LOGARITHMIC * low


def _curve(plan: Plan, number: int, result: Result) -> Curve:
    settings = plan.lines[number].settings
    if plan.of_seeds:
        found = [
            (x, run.results[result].value)
            for x, run in zip(plan.numbers(settings), settings[0].runs, strict=True)
            if result in run.results
        ]
        values = [value if math.isfinite(value) else math.nan for _, value in found]
        return Curve([x for x, _ in found], values, values, values)
    if plan.numeric:
        places = plan.numbers(settings)
    else:
        order = list(plan.categories())
        shift = _DODGE * (number - (len(plan.lines) - 1) / 2)
        places = [order.index(canonical(s.parameters.get(plan.x))) + shift for s in settings]
    spreads = [setting.spreads[result] for setting in settings]
    return Curve(
        places,
        [s.median if math.isfinite(s.median) else math.nan for s in spreads],
        [s.smallest for s in spreads],
        [s.largest for s in spreads],
    )


def _record(figure: BookFigure, plan: Plan, line: Line, result: Result, curve: Curve) -> None:
    columns: dict[str, Any] = {"result": result.name}
    if plan.of_seeds:
        columns |= {SEED: curve.x, "value": curve.middle}
    else:
        texts = [canonical(setting.parameters.get(plan.x)) for setting in line.settings]
        columns |= {"series": line.label, plan.x: curve.x if plan.numeric else texts}
        columns |= {"median": curve.middle, "smallest": curve.low, "largest": curve.high}
    figure.record(**columns)


def _draw_bound(
    axis: Axes,
    plan: Plan,
    result: Result,
    bound: str,
    curves: Sequence[Curve],
    ends: Sequence[float],
    colours: Sequence[Any],
) -> None:
    """Draw a bound as a thin line, or write it where it would squeeze the values together."""
    found = [[getattr(s.spreads[result], bound) for s in line.settings] for line in plan.lines]
    given = {value for values in found for value in values if value is not None}
    if not given:
        return
    if any(_is_far(value, ends, axis.get_yscale() == "log") for value in given):
        low, high = (f"{end:.3g}" for end in (min(given), max(given)))
        between = low if low == high else f"{low} … {high}"
        _write(axis, 0.02, f"bound: {_BOUNDS[bound]} {between}", top=bound == "at_most")
        return
    look: dict[str, Any] = {"linewidth": 0.9, "linestyle": (0, (4, 2)), "label": _BOUND_NAME}
    if len(given) == 1:
        axis.axhline(*given, color=_BOUND, **look)
        return
    for curve, values, colour in zip(curves, found, colours, strict=True):
        heights = [math.nan if value is None else value for value in values]
        axis.plot(curve.x, heights, color=colour if len(curves) > 1 else _BOUND, **look)


def _is_far(bound: float, ends: Sequence[float], logarithmic: bool) -> bool:
    if logarithmic and bound <= 0:
        return True
    low, high, place = (
        math.log(value) if logarithmic else value
        for value in (min(ends, default=bound), max(ends, default=bound), bound)
    )
    span = (high - low) or abs(high) or 1.0
    return not low - _FAR * span <= place <= high + _FAR * span


def _scale_x(axis: Axes, plan: Plan) -> None:
    from matplotlib.ticker import MaxNLocator

    if not plan.numeric:
        texts = [plain(text) for text in plan.categories().values()]
        turned: dict[str, Any] = {"rotation": 25, "ha": "right", "rotation_mode": "anchor"}
        crowded = sum(map(len, texts)) > _TICKS
        axis.set_xticks(range(len(texts)), texts, **(turned if crowded else {}))
        axis.set_xlim(-0.5, len(texts) - 0.5)
        return
    values = [x for line in plan.lines for x in plan.numbers(line.settings)]
    if is_logarithmic(values) and not plan.of_seeds:
        axis.set_xscale("log")
    elif all(value == int(value) for value in values):
        axis.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 5, 10]))


def _write(axis: Axes, x: float, text: str, top: bool) -> None:
    """A remark in a corner of a panel."""
    axis.text(
        x,
        0.96 if top else 0.04,
        text,
        transform=axis.transAxes,
        horizontalalignment="left" if x < 0.5 else "right",
        verticalalignment="top" if top else "bottom",
        fontsize="x-small",
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.0},
    )
