"""What each command of the command line does; the options are those that `cli` reads."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from . import builder, comparing, ledger, notebook, offline, points, running, stored, sweeping
from . import colab as installing
from . import pdf as paper
from . import trials as tried
from .errors import UsageError
from .parameter_files import mapping, parse_yaml, read_yaml
from .parameters import Declaration
from .progress import say
from .project import find_chapter, find_project
from .runner import plan


def run(options: argparse.Namespace) -> int:
    if options.help or options.chapter is None:
        return _help(options)
    project, chapter = find_chapter(options.chapter)
    planned = plan(project, chapter, given(options))
    if options.dry_run:
        print(f"{chapter.stem}: {running.outlook(planned)}")
        return 0
    folder = running.run(planned, options.output, force=options.force)
    print(f"results: {folder}")
    return 0


def sweep(options: argparse.Namespace) -> int:
    if options.help or options.chapter is None:
        return _help(options)
    rows = points.rows_of(options.points) if options.points is not None else ()
    found = find_chapter(options.chapter)
    prepared = sweeping.prepare(*found, given(options), rows, options.output)
    if options.dry_run:
        left, why = sweeping.unfinished(prepared, force=options.force)
        print("\n".join(point.name for point in left))
        say("; ".join([f"{len(left)} of {len(prepared.points)} points would run", *why]))
        return 0
    done = sweeping.run(
        prepared, scheduler=options.scheduler, workers=options.workers, force=options.force
    )
    sweeping.report(done)
    print(f"results: {done.folder}")
    return 1 if done.failures else 0


def compare(options: argparse.Namespace) -> int:
    made = comparing.compare(options.folders, only=options.only, output=options.output)
    print(made.table(shutil.get_terminal_size((100, 24)).columns))
    if options.output is not None:
        print(f"written: {options.output.resolve()}")
    return 0


def store(options: argparse.Namespace) -> int:
    project, chapter = find_chapter(options.chapter)
    path = stored.parameter_file(project, chapter)
    planned = plan(project, chapter, mapping(read_yaml(path), str(path)))
    done = running.stored_or_run(planned, stored.expected(planned), force=options.force)
    folder = stored.write(project, done)
    running.say_failed(done)
    print(f"stored: {folder}")
    return 0


def build(options: argparse.Namespace) -> int:
    index = builder.build_book(find_project(), force=options.force, record=options.record)
    print(index)
    return 0


def site(options: argparse.Namespace) -> int:
    project = find_project()
    builder.build_book(project)
    print(offline.pack(project))
    return 0


def pdf(options: argparse.Namespace) -> int:
    paper.check()
    project = find_project()
    builder.build_book(project)
    print(paper.make(project))
    return 0


def claims(options: argparse.Namespace) -> int:
    project = find_project()
    made = ledger.make(project, builder.built_runs(project))
    if options.json:
        print(json.dumps(made.as_json(), indent=2, ensure_ascii=False))
        return 0
    for row in made.rows:
        print(f"{row.status}  {row.statement.id}  [{row.statement.where}]")
        print(f"        {row.statement.statement}")
        checks = [f"{found.chapter} {found.claim.id}" for found in row.claims]
        print(f"        {row.reason or 'claims: ' + ', '.join(checks)}")
    if made.rows:
        print()
    for found in made.claims:
        claim = found.claim
        mark = "passed" if claim.passed else "FAILED"
        print(f"{mark}  {found.chapter}  {claim.id}  ({claim.source})")
        print(f"        {claim.statement}")
        measured = f"measured {claim.measured}; bound: {claim.bound}"
        if found.held is not None:
            measured += f"; held at {found.held} of {found.of_seeds} other seeds"
        print(f"        {measured}")
    return 0


def trials(options: argparse.Namespace) -> int:
    if options.seeds < 1:
        raise UsageError(f"--seeds {options.seeds}: expected a whole number of at least 1")
    found = tried.record(*find_chapter(options.chapter), options.seeds)
    for claim, held in found.held.items():
        print(f"{held} of {found.seeds}  {claim}")
    return 0


def colab(options: argparse.Namespace) -> int:
    for path in installing.write(find_project()):
        print(path)
    return 0


def given(options: argparse.Namespace) -> dict[str, Any]:
    """The parameters of a command, in papermill's order: files, texts, then each by itself."""
    found: dict[str, Any] = {}
    for path in options.files:
        found.update(mapping(read_yaml(path), f"-f {path}"))
    for text in options.texts:
        where = f"-y {text!r}"
        found.update(mapping(parse_yaml(text, where), where))
    names = [name for name, _ in options.values]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(
            f"-p {twice[0]}: given twice; in a sweep, give all its values after one -p"
        )
    for name, words in options.values:
        found[name] = words if len(words) > 1 else words[0]
    return found


def _help(options: argparse.Namespace) -> int:
    options.parser.print_help()
    if options.chapter is None:
        return 0 if options.help else 2
    _, chapter = find_chapter(options.chapter)
    print(_parameter_help(chapter, notebook.declaration(notebook.read(chapter))))
    return 0


def _parameter_help(chapter: Path, declaration: Declaration) -> str:
    lines = [f"\nparameters of {chapter.stem}:"]
    for name, parameter in declaration.items():
        each = "each " if parameter.is_list else ""
        lines.append(f"  {name}: {parameter.type} (default {parameter.default!r})")
        lines.append(f"      {parameter.meaning}; {each}{parameter.expected}")
    return "\n".join(lines)
