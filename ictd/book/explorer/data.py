"""The numbers of the explorer, at every setting, as the page carries them.

The kernel depends on (n, β) alone; what is said of the chain itself, on (γ, β); conditions of a context, on
(γ, n, β); errors, on (γ, n, β) and the depth. Lists are nested in this order.
"""

from __future__ import annotations

import functools
import json
import math
from typing import Any

import numpy as np

import ictd

from .settings import DEFAULT, GRID, draw, first

#: Errors and rates below this count as zero: rounding decides about them.
SMALLEST = 1e-10
_DIGITS = 5


@functools.cache
def compute() -> dict[str, Any]:
    """All numbers of the page, by the public functions of the library.

    Returns:
        Python lists, numbers, booleans and None, as `json` takes them, with S states:

        - ``gamma``, ``beta``, ``n``: the grids; ``depth``: the largest; ``default``: the first setting;
        - ``visits`` [n][S]: how often a state is a source; ``ends_in_source`` [n]: whether S_n is one;
        - ``kernel`` [n][β][query][source]: M̂;
        - ``population``, with entries [γ][β], and ``context``, [γ][n][β]: ``diagonality``, ``nu`` and
          ``rate``, the values of the three conditions; ``assumption``, ``theorem_a`` and ``converges``,
          whether they hold; ``full_rank``, whether the kernel is not singular on the visited states;
        - ``error`` [γ][n][β][l]: ‖v_l − v_π‖_∞;
        - ``distance`` [γ][n][β][l]: the largest difference of v_l from ṽ over the visited states; None in
          place of the list for a context without ṽ, one that ends in a state it never left.

        Numbers have five significant digits. None stands for what is infinite or overflows.
    """
    _, x, path = draw(DEFAULT["gamma"])
    scores = np.stack([ictd.inner_product_scores(x, beta) for beta in GRID["beta"]])
    contexts = [first(path, int(n)) for n in GRID["n"]]
    operators = [ictd.empirical_operator(context, scores) for context in contexts]
    chains = [draw(gamma)[0] for gamma in GRID["gamma"]]
    # Visits do not depend on β, the leading dimension.
    visits = np.array([operator.visits[0] for operator in operators])
    ends = [visits[k, context.states[-1]] > 0 for k, context in enumerate(contexts)]
    both = [[curves(operator, chain) for operator in operators] for chain in chains]
    return {
        **{name: steps for name, steps in GRID.items() if name != "depth"},
        "depth": GRID["depth"][-1],
        "default": DEFAULT,
        "visits": visits.astype(int).tolist(),
        "ends_in_source": [bool(end) for end in ends],
        "kernel": [numbers(operator.M) for operator in operators],
        "population": _side_by_side(
            [_conditions(ictd.population_operator(chain, scores), chain.gamma) for chain in chains]
        ),
        "context": _side_by_side(
            [
                _side_by_side([_conditions(operator, chain.gamma) for operator in operators])
                for chain in chains
            ]
        ),
        "error": [[numbers(error) for error, _ in row] for row in both],
        "distance": [
            [
                numbers(distance) if end else [None] * len(GRID["beta"])
                for (_, distance), end in zip(row, ends, strict=True)
            ]
            for row in both
        ],
    }


@functools.cache
def as_json() -> str:
    """`compute()` as JSON, for a script element of the page."""
    return json.dumps(compute(), allow_nan=False, separators=(",", ":"))


def numbers(values: Any) -> Any:
    """Numbers as JSON has them: five significant digits, None for what is not finite.

    Args:
        values: A number or an array of any shape.

    Returns:
        A number or None, or lists of them nested as the array.
    """
    return _rounded(np.asarray(values, dtype=float).tolist())


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{_DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def _conditions(operator: ictd.KernelOperator, gamma: float) -> dict[str, list[Any]]:
    """Values and verdicts of the three conditions, for each β."""
    nu, rate = operator.nu(gamma), operator.rate(gamma)
    return {
        "diagonality": numbers(operator.diagonality()),
        "nu": numbers(nu),
        "rate": numbers(np.where(rate < SMALLEST, 0.0, rate)),
        # Decided before rounding.
        "assumption": (operator.margin(gamma) > 0).tolist(),
        "theorem_a": (nu < 1).tolist(),
        "converges": (rate < 1).tolist(),
        "full_rank": (operator.rank == operator.visited.sum(-1)).tolist(),
    }


def curves(operator: ictd.KernelOperator, chain: ictd.MarkovRewardProcess) -> tuple[Any, Any]:
    """The errors of the layers of a context, from zero.

    Args:
        operator: Of the context, or of several contexts, kernels or both.
        chain: The one behind the context.

    Returns:
        ‖v_l − v_π‖_∞ over all states, and ‖v_l − ṽ‖_∞ over the visited ones, of all depths; arrays of shape
        (..., depths). The second means nothing for a context that ends in a state it never left.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        values = operator.values(chain.gamma, int(GRID["depth"][-1]))
        error = np.abs(values - chain.value).max(-1)
        off = np.abs(values - operator.fixed_point(chain.gamma)[..., None, :])
        distance = np.where(operator.visited[..., None, :], off, 0.0).max(-1)
    return np.where(error < SMALLEST, 0.0, error), np.where(distance < SMALLEST, 0.0, distance)


def _side_by_side(parts: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """A dictionary of lists from a list of dictionaries."""
    return {name: [part[name] for part in parts] for name in parts[0]}
