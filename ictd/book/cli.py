"""The command `ictd`: run, sweep and compare chapters, build the book, pack and print it, list its claims,
try them at other seeds, store a chapter's full scale, tell the chapters where the project is published.

Exit status: 0 done, 1 a chapter or the site failed, 2 something in the command is not accepted.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from . import commands
from .comparing import CompareError
from .errors import BookError, UsageError
from .parameters import ParameterError
from .progress import say
from .project import UnknownChapter

_REFUSED = (ParameterError, UnknownChapter, UsageError, CompareError)
# A word after which the values of a parameter end; -1e-3 is a value.
_OPTION = re.compile(r"-[A-Za-z]|--.*")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a console without ∞ or γ shows something else
    words = sys.argv[1:] if arguments is None else list(arguments)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        values, rest = split_values(words)
        options = parser().parse_args(rest, argparse.Namespace(values=values))
        status: int = options.command(options)
        sys.stdout.flush()
    except _REFUSED as error:
        say(f"ictd: {error}")
        return 2
    except BookError as error:
        say(f"ictd: {error}")
        return 1
    except KeyboardInterrupt:
        say(
            "ictd: interrupted; what is finished is stored, and the same command goes on from there"
        )
        return 130
    except BrokenPipeError:  # who read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        say(f"ictd: {error}")
        return 1
    return status


def _interrupt(*_: object) -> None:
    """End in order at the first Ctrl-C, at once at the second; what runs for us ends with us."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    raise KeyboardInterrupt


def split_values(words: Sequence[str]) -> tuple[list[tuple[str, list[str]]], list[str]]:
    """Take `-p NAME VALUE …` out of a command; argparse would take a value -1e-3 for an option.

    Args:
        words: The command, without the name of the program.

    Returns:
        Each name with its values, and the other words. `run` takes one value, `sweep` all up to the next
        option.

    Raises:
        UsageError: A name and its value are joined by an equals sign.
    """
    rest = list(words)
    values = []
    while words[:1] in (["run"], ["sweep"]) and "-p" in rest[:-2]:
        start = rest.index("-p")
        end = start + 3
        while words[0] == "sweep" and end < len(rest) and not _OPTION.fullmatch(rest[end]):
            end += 1
        if "=" in rest[start + 1]:
            name, _, value = rest[start + 1].partition("=")
            raise UsageError(
                f"-p {rest[start + 1]}: expected -p NAME VALUE, as in -p {name} {value}"
            )
        values.append((rest[start + 1], rest[start + 2 : end]))
        del rest[start:end]
    return values, rest


def parser() -> argparse.ArgumentParser:
    """The commands and their options; `split_values` has taken the values of parameters out."""
    made = argparse.ArgumentParser(prog="ictd", description="Run and build the book.")
    found = made.add_subparsers(required=True, metavar="COMMAND")

    run = found.add_parser("run", help="run a chapter with other parameters", add_help=False)
    run.set_defaults(command=commands.run, parser=run)
    run.add_argument("chapter", nargs="?", help="number, name or path of the notebook")
    _parameters(run, ("NAME", "VALUE"), "a parameter; may be repeated")
    run.add_argument("-o", dest="output", metavar="DIR", type=Path, help="folder of the results")
    run.add_argument(
        "--force",
        action="store_true",
        help="run although there is a stored run, and replace other results in DIR",
    )
    _look(run)

    sweep = found.add_parser("sweep", help="run a chapter at many points", add_help=False)
    sweep.set_defaults(command=commands.sweep, parser=sweep)
    sweep.description = (
        "Run a chapter at every combination of the values, and at every point of a file. A point whose "
        "results are there is not run again: the same command goes on where it was stopped."
    )
    sweep.add_argument("chapter", nargs="?", help="number, name or path of the notebook")
    _parameters(
        sweep,
        ("NAME", "VALUE"),
        "the values of a parameter, several or one; 0:30 is 0 up to 29; may be repeated",
    )
    sweep.add_argument(
        "--points",
        metavar="FILE",
        type=Path,
        help="a CSV with names in its first line, or a YAML or JSON list of points",
    )
    sweep.add_argument("-o", dest="output", metavar="DIR", type=Path, help="folder of the results")
    sweep.add_argument(
        "--workers", type=int, metavar="N", help="points side by side on this machine"
    )
    sweep.add_argument(
        "--scheduler", metavar="ADDRESS", help="of a Dask scheduler, such as tcp://10.0.0.1:8786"
    )
    sweep.add_argument("--force", action="store_true", help="run finished points again")
    _look(sweep)

    compare = found.add_parser("compare", help="put the results of runs side by side")
    compare.set_defaults(command=commands.compare)
    compare.add_argument("folders", nargs="+", metavar="DIR", help="results, or folders of them")
    compare.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="a number or claim to show"
    )
    compare.add_argument(
        "-o", dest="output", metavar="DIR", type=Path, help="folder for CSV, Markdown and figure"
    )

    build = found.add_parser("build", help="run the chapters that need it and make the site")
    build.set_defaults(command=commands.build)
    build.add_argument("--force", action="store_true", help="run and render everything")
    build.add_argument(
        "--record",
        action="store_true",
        help="write times, claims and numbers to chapters/defaults.json",
    )

    packed = found.add_parser("site", help="build, and pack the site as a zip to read offline")
    packed.set_defaults(command=commands.site)

    paper = found.add_parser("pdf", help="build, and print the whole book as a PDF")
    paper.set_defaults(command=commands.pdf)
    paper.description = (
        "Build the book, and print it to _build/book.pdf, A4, with Chromium: the program that the variable "
        "CHROMIUM names, or one that is found."
    )

    claims = found.add_parser("claims", help="list what the last build checked")
    claims.set_defaults(command=commands.claims)
    claims.description = (
        "List the statements of the paper, each with its status, then the claims of the chapters, as "
        "the last build found them."
    )
    claims.add_argument("--json", action="store_true", help="as JSON")

    tried = found.add_parser("trials", help="count how often claims hold at other seeds")
    tried.set_defaults(command=commands.trials)
    tried.add_argument("chapter", help="number, name or path of the notebook")
    tried.add_argument(
        "--seeds", type=int, default=20, metavar="N", help="how many seeds to try (20)"
    )

    kept = found.add_parser("store", help="run a chapter at full scale and keep its results")
    kept.set_defaults(command=commands.store)
    kept.description = (
        "Run a chapter with the parameters of chapters/params/NN_paper.yml, and keep what it shows in "
        "chapters/stored/NN. The pages of the book show it beside their own runs."
    )
    kept.add_argument("chapter", help="number, name or path of the notebook")
    kept.add_argument("--force", action="store_true", help="run although there is a stored run")

    written = found.add_parser("colab", help="write the project's address into the chapters")
    written.set_defaults(command=commands.colab)
    written.description = (
        "Bring the cell of each chapter that installs the library on Colab up to date: it names the "
        "Repository of [project.urls] in pyproject.toml."
    )
    return made


def _parameters(parser: argparse.ArgumentParser, metavar: tuple[str, str], text: str) -> None:
    # `split_values` has taken these out; here they are for the help, and for one that is cut short.
    parser.add_argument(
        "-p",
        nargs=2,
        default=argparse.SUPPRESS,
        metavar=metavar,
        help=f"{text}; goes before -y, which goes before -f",
    )
    parser.add_argument(
        "-y", dest="texts", action="append", default=[], metavar="YAML", help="NAME: VALUE pairs"
    )
    parser.add_argument(
        "-f",
        dest="files",
        action="append",
        default=[],
        metavar="FILE",
        type=Path,
        help="of the same",
    )


def _look(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would run, and why; run nothing"
    )
    parser.add_argument(
        "-h", "--help", action="store_true", help="this help; with CHAPTER, also its parameters"
    )
