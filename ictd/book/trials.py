"""How often the claims of a chapter hold at other seeds than its own.

`chapters/trials.json` keeps the counts, with a hash of the code that was tried: they speak of no other.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import machine, notebook, provenance
from .errors import BookError
from .files import read_json, write_json
from .progress import Progress
from .project import Project
from .runner import Execution, Expected, Plan, plan


@dataclass(frozen=True)
class Trials:
    """Counts over seeds, of one chapter.

    Attributes:
        code: Hash of the code cells that were run.
        seeds: Number of seeds tried.
        held: Claim id to the number of seeds at which it held.
    """

    code: str
    seeds: int
    held: dict[str, int]


def record(project: Project, chapter: Path, seeds: int = 20) -> Trials:
    """Run a chapter at the seeds after its own, otherwise at its defaults, and record the counts.

    Raises:
        BookError: The chapter has no parameter `seed`, or a run of it failed.
    """
    content = notebook.read(chapter)
    own = notebook.declaration(content).defaults.get("seed")
    if not isinstance(own, int):
        raise BookError(f"{chapter.stem} has no parameter 'seed: int' to try others of")
    plans = [plan(project, chapter, {"seed": own + k + 1}) for k in range(seeds)]
    one = plans[0].expected({}).seconds
    rounds = -(-seeds // machine.workers(seeds))
    line = Progress(
        f"{chapter.stem} at {seeds} seeds", Expected(one and one * rounds), "trials of its claims"
    )
    held: Counter[str] = Counter()
    with ThreadPoolExecutor(machine.workers(seeds)) as pool:
        for done, future in enumerate(as_completed(pool.submit(_passed, p) for p in plans)):
            held.update(future.result())
            line.update(done + 1, seeds)
    line.finish("done")
    trials = Trials(code_hash(content), seeds, dict(sorted(held.items())))
    write_json(_path(project), {**_all(project), chapter.stem: vars(trials)})
    return trials


def recorded(project: Project, chapter: str, content: notebook.Notebook) -> Trials | None:
    """The counts of a chapter, if there are any for the code that it has."""
    found = _all(project).get(chapter)
    return Trials(**found) if found and found["code"] == code_hash(content) else None


def code_hash(content: notebook.Notebook) -> str:
    """A hash of the code cells of a chapter, without the one that installs it on Colab."""
    cells = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    return provenance.digest(
        [notebook.source(cell) for cell in cells if notebook.COLAB not in notebook.tags(cell)]
    )


def _passed(planned: Plan) -> dict[str, int]:
    run = planned.store.find(planned.parts) or Execution(planned).run()
    return {claim["id"]: int(claim["passed"]) for claim in run.info["claims"]}


def _all(project: Project) -> dict[str, Any]:
    found = read_json(_path(project))
    return found if isinstance(found, dict) else {}


def _path(project: Project) -> Path:
    return project.root / "chapters" / "trials.json"
