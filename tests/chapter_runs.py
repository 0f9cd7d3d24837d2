"""Run a chapter, or a changed copy of it, and look at what it shows and records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import yaml
from warm_runs import run_cells

from ictd.book.claims import collect
from ictd.book.notebook import declaration, read
from ictd.book.parameters import Declaration, Parameter

ROOT = Path(__file__).resolve().parents[1]
CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))


def quick_parameters(chapter: Path) -> dict[str, Any]:
    """The chapter's parameters of a few seconds."""
    return yaml.safe_load((chapter.parent / "params" / f"{chapter.stem[:2]}_quick.yml").read_text())


@cache
def as_it_is(chapter: Path) -> dict[str, Any]:
    """The chapter executed at its quick parameters; one run for all tests, which only look at it.

    Raises:
        CellFailed: A cell raised an error.
    """
    return run_cells(chapter, quick_parameters(chapter))


def another_value(parameter: Parameter, current: Any) -> Any:
    """An allowed value other than the current one, close to it."""
    if parameter.is_list:
        return current[:-1] if len(current) > 1 else [another_value_of(parameter, current[0])]
    return another_value_of(parameter, current)


def another_value_of(parameter: Parameter, current: Any) -> Any:
    if parameter.choices:
        return next(choice for choice in parameter.choices if choice != current)
    if parameter.item_type == "bool":
        return not current
    assert parameter.range is not None
    step = 1 if parameter.item_type == "int" else 0.25 * (current or 1.0)
    return next(v for v in (current + step, current - step) if v in parameter.range)


def edited(
    chapter: Path, folder: Path, edit: Callable[[list[Any]], None], claims: Iterable[str] = ()
) -> Path:
    """A copy of the chapter in another folder, its list of cells changed by ``edit``.

    The solutions of exercises are left out: what breaks a claim may break them too, and they raise. Where
    ``claims`` are named, the copy ends with the last of them.
    """
    notebook = nbformat.read(chapter, as_version=4)
    notebook.cells = [cell for cell in notebook.cells if not cell.id.startswith("sol-")]
    edit(notebook.cells)
    if claims:
        code = [cell.source if cell.cell_type == "code" else "" for cell in notebook.cells]
        places = [[i for i, text in enumerate(code) if f'"{claim}"' in text] for claim in claims]
        if all(places):  # an id may be made up where the claim is made
            del notebook.cells[max(map(max, places)) + 1 :]
    folder.mkdir(parents=True)
    copy = folder / chapter.name
    nbformat.write(notebook, copy)
    return copy


def after_check(source: str) -> Callable[[list[Any]], None]:
    """An edit that runs ``source`` right after the check of the parameters."""

    def edit(cells: list[Any]) -> None:
        index = next(i for i, cell in enumerate(cells) if "Chapter()" in cell.source)
        cells.insert(index + 1, nbformat.v4.new_code_cell(source))

    return edit


def replaced(old: str, new: str) -> Callable[[list[Any]], None]:
    """An edit that replaces a piece of code that stands in the chapter exactly once."""

    def edit(cells: list[Any]) -> None:
        code = [cell for cell in cells if cell.cell_type == "code"]
        assert sum(cell.source.count(old) for cell in code) == 1, f"not exactly once: {old}"
        for cell in code:
            cell.source = cell.source.replace(old, new)

    return edit


def passed_claims(executed: dict[str, Any]) -> dict[str, bool]:
    """Claim id to whether it passed."""
    claims, _ = collect(executed)
    return {claim["id"]: claim["passed"] for claim in claims}


def side_by_side(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Call the function on each item, two at a time; the runs are processes of their own."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        return list(pool.map(function, items))


def declared(chapter: Path) -> Declaration:
    """The chapter's parameters by name."""
    return declaration(read(chapter))
