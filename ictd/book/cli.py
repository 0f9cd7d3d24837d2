"""The command `ictd`: run a chapter, build the book, pack it, list its claims, try them at other seeds,
store a chapter's full scale.

Exit status: 0 done, 1 a chapter or the site failed, 2 something in the command is not accepted.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from . import builder, ledger, notebook, offline, provenance, results, stored, trials
from .cache import StoredRun
from .errors import BookError
from .parameters import Declaration, ParameterError
from .progress import Progress, say
from .project import UnknownChapter, find_chapter, find_project
from .runner import Execution, Plan, plan


class UsageError(BookError):
    """Something in the command that is not accepted."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a console without ∞ or γ shows something else
    words = sys.argv[1:] if arguments is None else list(arguments)
    pairs, rest = _split_pairs(words) if words[:1] == ["run"] else ([], words)
    options = _parser().parse_args(rest, argparse.Namespace(pairs=pairs))
    try:
        status: int = options.command(options)
    except (ParameterError, UnknownChapter, UsageError) as error:
        say(f"ictd: {error}")
        return 2
    except BookError as error:
        say(f"ictd: {error}")
        return 1
    except KeyboardInterrupt:
        say("ictd: interrupted; finished chapters are stored")
        return 130
    return status


def _split_pairs(arguments: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Take `-p NAME VALUE` out of the arguments; argparse would take a value -1e-3 for an option."""
    pairs, rest = [], list(arguments)
    while "-p" in rest[:-2]:
        place = rest.index("-p")
        pairs.append((rest[place + 1], rest[place + 2]))
        del rest[place : place + 3]
    return pairs, rest


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ictd", description="Run and build the book.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="run a chapter with other parameters", add_help=False)
    run.set_defaults(command=_run, parser=run)
    run.add_argument("chapter", nargs="?", help="number, name or path of the notebook")
    run.add_argument(
        "-p",
        nargs=2,
        default=argparse.SUPPRESS,
        metavar=("NAME", "VALUE"),
        help="a parameter; may be repeated, and goes before -y, which goes before -f",
    )
    run.add_argument("-y", dest="texts", action="append", default=[], metavar="YAML")
    run.add_argument("-f", dest="files", action="append", default=[], metavar="FILE", type=Path)
    run.add_argument("-o", dest="output", metavar="DIR", type=Path, help="folder of the results")
    run.add_argument("--force", action="store_true", help="run although there is a stored run")
    run.add_argument(
        "-h", "--help", action="store_true", help="this help; with CHAPTER, also its parameters"
    )

    build = commands.add_parser("build", help="run the chapters that need it and make the site")
    build.set_defaults(command=_build)
    build.add_argument("--force", action="store_true", help="run and render everything")
    build.add_argument(
        "--record-times", action="store_true", help="write the times to chapters/times.json"
    )

    packed = commands.add_parser("site", help="build, and pack the site as a zip to read offline")
    packed.set_defaults(command=_site)

    claims = commands.add_parser("claims", help="list what the last build checked")
    claims.set_defaults(command=_claims)
    claims.description = (
        "List the statements of the paper, each with its status, then the claims of the chapters, as "
        "the last build found them."
    )
    claims.add_argument("--json", action="store_true", help="as JSON")

    tried = commands.add_parser("trials", help="count how often claims hold at other seeds")
    tried.set_defaults(command=_trials)
    tried.add_argument("chapter", help="number, name or path of the notebook")
    tried.add_argument(
        "--seeds", type=int, default=20, metavar="N", help="how many seeds to try (20)"
    )

    kept = commands.add_parser("store", help="run a chapter at full scale and keep its results")
    kept.set_defaults(command=_store)
    kept.description = (
        "Run a chapter with the parameters of chapters/params/NN_paper.yml, and keep what it shows in "
        "chapters/stored/NN. The pages of the book show it beside their own runs."
    )
    kept.add_argument("chapter", help="number, name or path of the notebook")
    kept.add_argument("--force", action="store_true", help="run although there is a stored run")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.chapter is None:
        options.parser.print_help()
        return 0 if options.help else 2
    project, chapter = find_chapter(options.chapter)
    if options.help:
        options.parser.print_help()
        print(_parameter_help(chapter, notebook.declaration(notebook.read(chapter))))
        return 0
    planned = plan(project, chapter, _given(options))
    if options.output is not None:
        _check_output(options.output)
    expected = planned.expected_seconds(builder.times(project))
    done = _stored_or_run(planned, expected, options.force)
    folder = (options.output or results.default_folder(done)).resolve()
    results.write(done, folder)
    _say_failed(done)
    print(f"results: {folder}")
    return 0


def _store(options: argparse.Namespace) -> int:
    project, chapter = find_chapter(options.chapter)
    planned = plan(project, chapter, _of_file(stored.parameter_file(project, chapter)))
    done = _stored_or_run(planned, stored.expected_seconds(planned), options.force)
    folder = stored.write(project, done)
    _say_failed(done)
    print(f"stored: {folder}")
    return 0


def _say_failed(run: StoredRun) -> None:
    for claim in run.info["claims"]:
        if not claim["passed"]:
            value = float(claim["value"])
            say(f"claim failed: {claim['id']}: measured {value:.4g}: {claim['statement']}")


def _check_output(folder: Path) -> None:
    """Make the folder of the results, or refuse it before anything runs."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"-o {folder}: {error.strerror}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"-o {folder}: the folder cannot be written to")


def _stored_or_run(planned: Plan, expected: float | None, force: bool) -> StoredRun:
    name = planned.chapter.stem
    found = None if force else planned.store.find(planned.parts)
    if found is not None:
        say(f"{name}: nothing has changed since its stored run, which is used")
        return found
    line = Progress(name, expected, planned.why)
    done = Execution(planned).run(line.update)
    took, memory = provenance.seconds(done.info), provenance.memory(done.info)
    line.finish(f"done in {took}, peak memory {memory}")
    return done


def _build(options: argparse.Namespace) -> int:
    index = builder.build_book(
        find_project(), force=options.force, record_times=options.record_times
    )
    print(index)
    return 0


def _site(options: argparse.Namespace) -> int:
    project = find_project()
    builder.build_book(project)
    print(offline.pack(project))
    return 0


def _claims(options: argparse.Namespace) -> int:
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


def _trials(options: argparse.Namespace) -> int:
    if options.seeds < 1:
        raise UsageError(f"--seeds {options.seeds}: expected a whole number of at least 1")
    found = trials.record(*find_chapter(options.chapter), options.seeds)
    for claim, held in found.held.items():
        print(f"{held} of {found.seeds}  {claim}")
    return 0


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """The parameters of the command line, in papermill's order: files, texts, pairs."""
    given: dict[str, Any] = {}
    for path in options.files:
        given.update(_of_file(path))
    for text in options.texts:
        given.update(_mapping(f"-y {text!r}", text))
    given.update(options.pairs)
    return given


def _of_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"-f {path}: {error}") from None
    return _mapping(f"-f {path}", text)


def _mapping(where: str, text: str) -> dict[str, Any]:
    try:
        data = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise UsageError(f"{where}: not YAML: {error}") from None
    if not isinstance(data, dict | None):
        raise UsageError(f"{where}: expected 'NAME: VALUE' pairs")
    return {str(name): value for name, value in (data or {}).items()}


class _Loader(yaml.SafeLoader):
    """YAML as papermill reads it: a date stays text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _parameter_help(chapter: Path, declaration: Declaration) -> str:
    lines = [f"\nparameters of {chapter.stem}:"]
    for name, parameter in declaration.items():
        each = "each " if parameter.is_list else ""
        lines.append(f"  {name}: {parameter.type} (default {parameter.default!r})")
        lines.append(f"      {parameter.meaning}; {each}{parameter.expected}")
    return "\n".join(lines)
