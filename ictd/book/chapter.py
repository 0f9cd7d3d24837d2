"""What a chapter uses while it runs: the check of its parameters, random streams, claims."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from . import markdown
from .claims import Claim, Number, bundle
from .parameters import Declaration, ParameterError, Value, assigned_names, is_declaration, parse

if TYPE_CHECKING:
    import numpy as np


#: Set in the environment of a kernel in which no failed claim stops the chapter.
GO_ON = "ICTD_FAILED_CLAIMS_GO_ON"
# A reader who edits the cell in Jupyter has no other defaults, and wants to see the rest.
_GOES_ON = {GO_ON, "JPY_SESSION_NAME"}


class ClaimFailed(AssertionError):
    """A claim that does not hold at the chapter's default parameters."""


class Chapter:
    """Check the parameters of the running notebook and give them their types.

    Raises:
        ParameterError: It lists every unknown name, wrong type and value out of range.
        RuntimeError: Outside a notebook.

    Attributes:
        parameters: Name to typed value. The same values are written back to the notebook's variables.
        at_defaults: Whether every parameter has the value that the notebook declares.
    """

    def __init__(self) -> None:
        shell = _shell()
        declaration, injected = _declared(shell.user_ns["In"])
        missing = [name for name in declaration if name not in shell.user_ns]
        if missing:
            raise ParameterError(
                "these parameters are not defined; run their cell first", [", ".join(missing)]
            )
        given = {name: shell.user_ns[name] for name in declaration}
        self.parameters: dict[str, Value] = declaration.check(given, unknown=injected)
        self.at_defaults: bool = self.parameters == declaration.defaults
        shell.user_ns.update(self.parameters)
        self._shell = shell
        self._claims: dict[str, tuple[int, Claim]] = {}

    def rng(self, section: str) -> np.random.Generator:
        """An independent random generator for a section of the chapter.

        It depends on the parameter `seed` and on the name alone, so that an edit in one section
        does not move the numbers of another.
        """
        import numpy as np

        seed = self.parameters.get("seed")
        if type(seed) is not int:
            raise ParameterError(
                "a random generator needs a seed", ["the chapter declares no 'seed: int'"]
            )
        digest = hashlib.sha256(section.encode()).digest()
        return np.random.default_rng([seed, *digest[:16]])

    def claim(
        self,
        id: str,
        statement: str,
        value: float,
        *,
        at_most: float | None = None,
        at_least: float | None = None,
        source: str = "ours",
        holds: bool | None = None,
    ) -> None:
        """Check a claim, show it in one line and record it.

        Args:
            id: Unique in the chapter.
            statement: What is claimed, Markdown.
            value: What was measured; nan fails.
            at_most, at_least: Inclusive bounds.
            source: "ours", or where the claim is made, such as "arXiv:2605.07333v2, Theorem 1".
            holds: A condition beside the bounds, or instead of them, that must be true.

        Raises:
            ClaimFailed: If the claim fails at the default parameters, after it is shown and recorded.
                At other parameters, in a sweep, and in a session of Jupyter, it is shown as failed
                and the run goes on.
        """
        if at_most is None and at_least is None and holds is None:
            raise ValueError(f"claim {id!r}: give at_most, at_least or holds")
        claim = Claim(
            id=id,
            statement=statement,
            value=float(value),
            at_most=_bound(id, "at_most", at_most),
            at_least=_bound(id, "at_least", at_least),
            source=source,
            holds=None if holds is None else bool(holds),
        )
        count = self._shell.execution_count
        if self._claims.get(id, (None,))[0] == count:
            raise ValueError(f"claim {id!r} is made twice in one cell; its id must be unique")
        self._claims.pop(id, None)
        self._claims[id] = (count, claim)
        self.say(_line(claim))
        self._record(claim)
        if not claim.passed and self.at_defaults and not _GOES_ON & os.environ.keys():
            raise ClaimFailed(f"{id}: measured {claim.measured}, expected {claim.bound}")

    def number(self, name: str, value: float, meaning: str) -> None:
        """Record a number, with its meaning, for the results of the run; show nothing."""
        plain = value.tolist() if hasattr(value, "tolist") else value  # of numpy or torch
        if isinstance(plain, bool) or not isinstance(plain, (int, float)):
            raise ValueError(f"number {name!r}: got {value!r}, expected one real number")
        self._record(Number(name, plain, meaning))

    def say(self, markdown: str) -> None:
        """Show Markdown, such as a sentence with computed numbers."""
        self._publish({"text/markdown": markdown, "text/plain": markdown}, {})

    def claims(self) -> None:
        """Show the closing table of all claims of this run: the paper's, those of others, ours."""
        groups: dict[str, list[Claim]] = {origin: [] for origin in _HEADINGS}
        for _, claim in self._claims.values():
            groups[claim.origin].append(claim)
        tables = [f"**{_HEADINGS[who]}**\n\n{_table(made)}" for who, made in groups.items() if made]
        self.say("\n\n".join(tables) or "This chapter made no claims.")

    def matrix(self, symbol: str, matrix: Any, rows: Sequence[str] = ()) -> None:
        """Show a small matrix as a displayed equation.

        Where every finite entry is close to a fraction with a denominator of at most 64, fractions are
        shown, else three digits.

        Args:
            symbol: What stands before the equals sign, TeX.
            matrix: Shape (rows, columns), an array or a tensor.
            rows: A name for each row, shown in front of it, plain text; without it the matrix has brackets.
        """
        numbers = [[float(entry) for entry in row] for row in matrix.tolist()]
        exact = all(
            _fraction(entry) is not None for row in numbers for entry in row if math.isfinite(entry)
        )
        entries = [[_tex(entry, exact=exact) for entry in row] for row in numbers]
        if rows and len(rows) != len(entries):
            raise ValueError(f"rows must name each of {len(entries)} rows, got {len(rows)} names")
        if rows:
            entries = [[rf"\text{{{name}}}", *row] for name, row in zip(rows, entries, strict=True)]
            columns = "l|" + "r" * (len(entries[0]) - 1)
            begin, end = rf"\begin{{array}}{{{columns}}}", r"\end{array}"
        else:
            columns = "r" * len(entries[0])
            begin = rf"\left[\begin{{array}}{{{columns}}}"
            end = r"\end{array}\right]"
        body = " \\\\\n".join(" & ".join(row) for row in entries)
        self.say(f"$$\n{symbol} = {begin}\n{body}\n{end}\n$$")

    def _record(self, item: Claim | Number) -> None:
        self._publish(*bundle(item))

    def _publish(self, data: dict[str, str], metadata: dict[str, Any]) -> None:
        self._shell.display_pub.publish(data=data, metadata=metadata)


def _shell() -> Any:
    try:
        from IPython import get_ipython
    except ImportError:
        shell = None
    else:
        shell = get_ipython()
    if shell is None:
        raise RuntimeError(
            "Chapter() reads the parameters cell of a running notebook; outside one, use "
            "ictd.book.run(chapter, {name: value})"
        )
    return shell


def _declared(inputs: Sequence[str]) -> tuple[Declaration, list[str]]:
    """The parameters that the inputs so far declare, and the names injected after them.

    A kernel does not see the tags of cells: the last input that consists of annotated
    assignments of literals declares, later ones whose first line is `# Parameters` are injected.
    """
    for index in range(len(inputs) - 1, -1, -1):
        if is_declaration(inputs[index]):
            return parse(inputs[index]), _injected(inputs[index + 1 :])
    raise ParameterError(
        "no parameters are declared", ["run the cell tagged 'parameters' before Chapter()"]
    )


def _injected(inputs: Iterable[str]) -> list[str]:
    names = []
    for text in inputs:
        if text.lstrip().partition("\n")[0].rstrip() == "# Parameters":
            names += assigned_names(text)
    # `papermill --inject-paths` adds names of its own.
    return [name for name in names if not name.startswith("PAPERMILL_")]


def _bound(id: str, name: str, value: float | None) -> float | None:
    if value is None:
        return None
    if not math.isfinite(value):
        raise ValueError(f"claim {id!r}: {name} is {value!r}, expected a finite number")
    return float(value)


_HEADINGS = {
    "paper": "Claims of the paper",
    "other": "Claims of other papers",
    "ours": "Our own claims",
}


def _fraction(number: float) -> Fraction | None:
    """The fraction with a small denominator that a finite number is but for rounding, if there is one."""
    near = Fraction(number).limit_denominator(64)
    return near if abs(near - number) <= 1e-12 else None


def _tex(number: float, *, exact: bool) -> str:
    if not math.isfinite(number):
        return {math.inf: r"\infty", -math.inf: r"-\infty"}.get(number, r"\text{NaN}")
    near = _fraction(number)
    # Among decimals, a rounded number could pass for a fraction; a whole number is one either way.
    if near is None or not (exact or near.denominator == 1):
        return f"{number:.3g}"
    if near.denominator == 1:
        return str(near.numerator)
    sign = "-" if near < 0 else ""
    return rf"{sign}\tfrac{{{abs(near.numerator)}}}{{{near.denominator}}}"


def _mark(claim: Claim) -> str:
    return "✓" if claim.passed else "✗ failed"


def _line(claim: Claim) -> str:
    where = "" if claim.source == "ours" else f" ({claim.source})"
    return (
        f"{_mark(claim)} `{claim.id}`: {claim.statement}{where}. "
        f"Measured {claim.measured}; bound: {claim.bound}."
    )


def _table(claims: Iterable[Claim]) -> str:
    rows = [
        (
            f"`{claim.id}`",
            claim.statement,
            claim.source,
            claim.bound,
            claim.measured,
            _mark(claim),
        )
        for claim in claims
    ]
    return markdown.table(("id", "claim", "source", "bound", "measured", "holds"), rows)
