"""The controls of the explorer and its data, as HTML that a script brings to life."""

from __future__ import annotations

import json
from html import escape

from .data import as_json, compute
from .figure import colours
from .settings import DEFAULT, GRID, LABELS, N_STATES, index

_CONTROL = """\
<div class="explorer-control">
<label for="explorer-{name}"><span>{symbol}, {meaning}</span></label>
<span class="explorer-now" id="explorer-{name}-value">{value:g}</span>
<input type="range" id="explorer-{name}" name="{name}" min="0" max="{last}" step="1" value="{place}"
 aria-valuetext="{value:g}" autocomplete="off">
</div>
"""

_PAGE = """\
<div class="explorer-live" role="region" aria-label="Explorer" tabindex="-1" hidden>
<form class="explorer-controls" autocomplete="off">
{controls}<button type="reset">Reset</button>
</form>
<p class="explorer-summary" role="status"></p>
<div class="explorer-views">
<table class="explorer-kernel">
<caption>Kernel M̂: the weight of a source (column) for a query (row)</caption>
<thead><tr><th scope="col">query</th>{sources}</tr></thead>
<tbody>{queries}</tbody>
<tfoot><tr><th scope="row">visits</th>{visits}</tr></tfoot>
</table>
<figure class="explorer-curve">
<figcaption>
<span class="explorer-key explorer-error">‖v<sub>L</sub> − v<sub>π</sub>‖<sub>∞</sub> =
 <span id="explorer-error"></span></span>
<span class="explorer-key explorer-distance">‖v<sub>L</sub> − ṽ‖<sub>∞</sub> =
 <span id="explorer-distance"></span></span>
</figcaption>
<svg role="img" aria-label="Error against depth"></svg>
</figure>
</div>
<table class="explorer-conditions">
<caption>Conditions for convergence at step size 1</caption>
<thead><tr><th scope="col">condition</th><th scope="col">bound</th><th scope="col">context, M̂</th>\
<th scope="col">chain, M<sub>π</sub></th></tr></thead>
<tbody>
{conditions}</tbody>
</table>
<script type="application/json" class="explorer-data">{data}</script>
<script type="application/json" class="explorer-colours">{colours}</script>
</div>
"""

# Name of a condition in the data, what is looked at, and what it is.
_CONDITIONS = (
    ("diagonality", "min<sub>s</sub>&nbsp;M(s,&nbsp;s)", "Assumption 5.1: sufficient"),
    ("nu", "ν", "Theorem A: sufficient"),
    ("rate", "rate ρ", "exact"),
)


def controls() -> str:
    """The part of the page that is hidden until a script is there to answer."""
    heads = "".join(f'<th scope="col">{state}</th>' for state in range(N_STATES))
    row = "".join("<td></td>" for _ in range(N_STATES))
    return _PAGE.format(
        controls="".join(map(_control, GRID)),
        sources=heads,
        queries="".join(f'<tr><th scope="row">{s}</th>{row}</tr>' for s in range(N_STATES)),
        visits=row,
        conditions="".join(_condition(*condition) for condition in _CONDITIONS),
        data=as_json(),
        colours=json.dumps(colours()),
    )


def in_words() -> str:
    """The default setting and its conditions, for the text below the figure."""
    data, (i, j, k, depth) = compute(), index(DEFAULT)
    bound, error = (1 + DEFAULT["gamma"]) / 2, data["error"][i][k][j][depth]
    context = {name: table[i][k][j] for name, table in data["context"].items()}
    chain = {name: table[i][j] for name, table in data["population"].items()}
    symbols = [f"{LABELS[name][0]} = {DEFAULT[name]:g}" for name in ("gamma", "beta", "n")]
    return (
        f"At the default setting, {', '.join(symbols)}. The dot is at depth {depth}, where the error is "
        f"{error:.3g}. "
        f"The smallest weight on the diagonal, ν and the rate are {_three(context)} for the context, and "
        f"{_three(chain)} for the chain. Assumption 5.1 asks the first to exceed {bound:.3g}, Theorem A "
        "asks the second to be below 1; layers converge where the third is."
    )


def _three(conditions: dict[str, float]) -> str:
    first, second, third = (f"{conditions[name]:.3g}" for name, _, _ in _CONDITIONS)
    return f"{first}, {second} and {third}"


def _control(name: str) -> str:
    symbol, meaning = LABELS[name]
    return _CONTROL.format(
        name=name,
        symbol=escape(symbol),
        meaning=escape(meaning),
        value=DEFAULT[name],
        last=len(GRID[name]) - 1,
        place=GRID[name].index(DEFAULT[name]),
    )


def _condition(name: str, what: str, kind: str) -> str:
    """The row of a condition, with a cell for the context and one for the chain."""
    cells = "".join(
        f'<td data-condition="{of}-{name}"><span class="explorer-value"></span> '
        '<span class="explorer-verdict"></span></td>'
        for of in ("context", "population")
    )
    return (
        f'<tr><th scope="row">{what} <small>{kind}</small></th>'
        f'<td class="explorer-bound" data-bound="{name}"></td>{cells}</tr>\n'
    )
