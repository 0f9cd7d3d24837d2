"""Sentences of a comparison: what is compared, what is left out, in what the runs differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..parameters import Value
from .runs import Run, Version
from .settings import SEED, Setting, canonical
from .tables import shortened

_NAMED = 3  # folders that a sentence names


def summary(chapter: str, settings: Sequence[Setting]) -> str:
    """Such as `02_weighted_softmax_td: 12 runs, 4 settings, 3 seeds`."""
    runs = sum(len(setting.runs) for setting in settings)
    seeds = {canonical(seed) for setting in settings for seed in setting.seeds}
    counts = [counted(runs, "run"), counted(len(settings), "setting")]
    if seeds:
        counts.append(counted(len(seeds), "seed"))
    return f"{chapter}: {', '.join(counts)}"


def left_out(failed: Sequence[str], unfinished: Sequence[str], repeated: int) -> Iterator[str]:
    """Which folders do not count, and why."""
    if failed:
        yield f"not compared: {counted(len(failed), 'failed run')} ({_some(failed)})"
    if unfinished:
        yield f"not compared: {counted(len(unfinished), 'unfinished run')} ({_some(unfinished)})"
    if repeated:
        verb = "holds a run" if repeated == 1 else "hold runs"
        yield f"counted once: {counted(repeated, 'further folder')} {verb} of another folder"


def contradictory(pairs: Sequence[Sequence[str]]) -> Iterator[str]:
    """Which folders should hold the same and do not."""
    for kept, other in pairs[:_NAMED]:
        yield f"{other} has other results than {kept}, which counts, although nothing of the run differs"
    if len(pairs) > _NAMED:
        yield f"so it is with {counted(len(pairs) - _NAMED, 'further pair')} of folders"


def of_versions(
    runs: Sequence[Run], folders: Sequence[str], names: Mapping[Version, str]
) -> Iterator[str]:
    """How many versions of the code and the packages there are, and what each has unlike the first."""
    if len(names) < 2:
        return
    (first, name), *others = names.items()
    count = sum(run.version == first for run in runs)
    yield (
        f"the runs are of {len(names)} versions of the code or the packages; "
        f"{counted(count, 'run')} of {name}, which ran first"
    )
    for version, name in others:
        held = [folder for run, folder in zip(runs, folders, strict=True) if run.version == version]
        yield f"{counted(len(held), 'run')} of {name} ({_some(held)}): {version.beside(first)}"


def fixed(parameters: Mapping[str, Value]) -> Iterator[str]:
    """The parameters that are the same in all runs."""
    pairs = [f"{name} {shortened(value)}" for name, value in parameters.items() if name != SEED]
    if pairs:
        yield f"the same in all runs: {', '.join(pairs)}"


def counted(count: int, what: str) -> str:
    """Such as `1 run` or `3 runs`."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"
