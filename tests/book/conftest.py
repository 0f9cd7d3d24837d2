"""A toy book, run by a copy of the library that tests may edit."""

from __future__ import annotations

import copy
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import ictd

KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}

DECLARATION = """\
gamma: float = 0.9  # discount factor, in [0, 1)
n_states: int = 10  # states of the chain, in [3, 200]
n_layers: int = 2  # layers, in [1, 50]
betas: list[float] = [0.0, 1.0]  # sharpness of the kernel, each in [0, 1000]
sizes: list[int] = [2, 3]  # sizes to try, each in [0, 9]
features: str = "sphere"  # distribution of the features, one of sphere, uniform
flag: bool = True  # whether to centre the rewards
seed: int = 0  # seed of all random numbers, in [0, 4294967295]"""

SHORT_DECLARATION = "gamma: float = 0.9  # discount factor, in [0, 1)"

CHECK = "from ictd.book import Chapter\n\nchapter = Chapter()"

# A PNG of one pixel.
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg"
    "=="
)

# In the place of Sphinx, which takes two seconds for the page of a run; most tests do not look at it.
PAGE = Path("ictd/book/page/build.py")
NO_SPHINX = """\
import json
import sys


def main():
    json.load(sys.stdin)
    json.dump({"title": "A page", "contents": "", "body": "<h1>A page without Sphinx</h1>"}, sys.stdout)
"""

# The landing page's place for a link to the zip of the site.
PLACE = '<div class="offline-copy"></div>'

Cell = str | tuple[str, str]


def notebook(cells: Sequence[Cell]) -> dict[str, Any]:
    """A notebook of code cells; a tuple is (tag of the cell, or "markdown", and its text)."""
    made = []
    for index, cell in enumerate(cells):
        tag, text = cell if isinstance(cell, tuple) else ("", cell)
        node: dict[str, Any] = {"id": f"cell-{index}", "metadata": {}, "source": text}
        if tag == "markdown":
            node["cell_type"] = "markdown"
        else:
            node |= {"cell_type": "code", "outputs": [], "execution_count": None}
            node["metadata"] = {"tags": [tag]} if tag else {}
        made.append(node)
    metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    return {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def chapter_cells(title: str) -> list[Cell]:
    """A chapter that uses everything a chapter uses of the machinery."""
    return [
        ("markdown", f"# {title}\n\nWhat the reader will see."),
        ("parameters", DECLARATION),
        CHECK,
        "from ictd.probe import CONSTANT\n\nprint('the constant', CONSTANT * 111)",
        "print('stream-' + 'of-output', gamma * n_states, repr(flag), sizes)",
        "import sys\n\nfor step in range(5):\n    print('\\rframe', step, end='', file=sys.stderr)",
        "import base64\n\nfrom IPython.display import Image, display\n\n"
        f"display(Image(base64.b64decode('{PIXEL}'), alt='one pixel'))",
        "chapter.claim('bound', 'the factor $\\\\gamma$ is small', gamma, at_most=0.95,\n"
        "              source='arXiv:2605.07333v2, Theorem 1')\n"
        "chapter.claim('sign', 'a draw is positive', chapter.rng('draw').random(), at_least=0)",
        "chapter.number('product', gamma * n_states, 'the factor times the states')\n"
        "chapter.say(f'In words, $\\\\gamma = {gamma}$ was given.')",
        "'value-' + 'of-a-cell'",
        "chapter.claims()",
    ]


CONFIG = {
    "title": "toy",
    "author": "nobody",
    "logo": "",
    "only_build_toc_files": True,
    "execute": {"execute_notebooks": "force"},
    "parse": {"myst_enable_extensions": ["colon_fence", "dollarmath"]},
    "sphinx": {"config": {"nb_render_markdown_format": "myst"}},
}


class Toy:
    """A book in a folder of its own, and the command line run there."""

    def __init__(self, root: Path, library: Path) -> None:
        self.root = root
        self.library = library
        self._stems: list[str] = []
        (root / "chapters").mkdir(parents=True)
        (root / "_config.yml").write_text(json.dumps(CONFIG))  # JSON is YAML
        self.write_index("An index.")

    def with_pages(self) -> Toy:
        """Let its own library make the pages of runs as readers get them."""
        shutil.copyfile(Path(ictd.__file__).parents[1] / PAGE, self.library / PAGE)
        return self

    def write_index(self, text: str) -> None:
        (self.root / "chapters" / "index.md").write_text(f"# Toy book\n\n{text}\n\n{PLACE}\n")

    def copy(self, folder: Path) -> Toy:
        """A copy of the book as it is, stored runs and all, with a library of its own."""
        other = copy.copy(self)
        other.library = folder / "library"
        other.root = folder / self.root.name
        other._stems = list(self._stems)
        shutil.copytree(self.library, other.library)
        shutil.copytree(self.root, other.root)
        return other

    def add(self, stem: str, *cells: Cell) -> Path:
        """Write a chapter of some cells; without any, one that uses the whole machinery."""
        head = [("markdown", "# Title"), ("parameters", SHORT_DECLARATION), CHECK]
        return self.write(stem, [*head, *cells] if cells else chapter_cells(f"Title of {stem}"))

    def write(self, stem: str, cells: Sequence[Cell]) -> Path:
        """Write a notebook, into the table of contents too if it is new."""
        path = self.root / "chapters" / f"{stem}.ipynb"
        path.write_text(json.dumps(notebook(cells)))
        if stem not in self._stems:
            self._stems.append(stem)
        chapters = "".join(f"\n- file: chapters/{stem}" for stem in self._stems)
        toc = f"format: jb-book\nroot: chapters/index\nchapters:{chapters}\n"
        (self.root / "_toc.yml").write_text(toc)
        return path

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"PYTHONPATH": str(self.library)}

    def ictd(
        self, *arguments: str | Path, status: int = 0, cwd: Path | None = None, options: Any = ()
    ) -> tuple[str, str]:
        """Run the command; return its standard output and error."""
        done = subprocess.run(
            [sys.executable, *options, "-m", "ictd", *map(str, arguments)],
            cwd=cwd or self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout, done.stderr

    def papermill(self, *arguments: str | Path, status: int = 0) -> str:
        """Run plain papermill; return what it printed."""
        done = subprocess.run(
            [sys.executable, "-m", "papermill", *map(str, arguments)],
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def page(self, stem: str) -> str:
        return (self.root / "_build/html/chapters" / f"{stem}.html").read_text(encoding="utf-8")

    def site(self) -> dict[str, bytes]:
        """The files of the site."""
        html = self.root / "_build" / "html"
        return {str(p.relative_to(html)): p.read_bytes() for p in html.rglob("*") if p.is_file()}


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the library and a module that toy chapters use; pages are stand-ins."""
    folder = tmp_path_factory.mktemp("library")
    source = Path(ictd.__file__).parent
    shutil.copytree(source, folder / "ictd", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "ictd" / "probe.py").write_text("CONSTANT = 7\n")
    (folder / PAGE).write_text(NO_SPHINX)
    return folder


@pytest.fixture
def toy(tmp_path: Path, library: Path) -> Toy:
    """An empty toy book with a library of its own, in a folder with a space and a brace."""
    own = tmp_path / "library"
    shutil.copytree(library, own)
    return Toy(tmp_path / "a {toy} book", own)


@pytest.fixture(scope="session")
def make_toy(tmp_path_factory: pytest.TempPathFactory, library: Path) -> Callable[[str], Toy]:
    """Makes an empty toy book that the tests of a module share, with the common library."""
    return lambda name: Toy(tmp_path_factory.mktemp(name) / "a {toy} book", library)


@pytest.fixture(scope="session")
def shared_toy(tmp_path_factory: pytest.TempPathFactory, library: Path) -> Toy:
    """One toy book for tests that only run its chapter."""
    toy = Toy(tmp_path_factory.mktemp("shared") / "a {toy} book", library)
    toy.add("01_toy")
    return toy


@pytest.fixture(scope="session")
def built_toy(tmp_path_factory: pytest.TempPathFactory, library: Path) -> tuple[Toy, str, str]:
    """A book of two chapters under git, built from a folder below its root; what was printed."""
    toy = Toy(tmp_path_factory.mktemp("built") / "a {toy} book", library)
    toy.add("01_toy")
    toy.add("02_other", "print('the other chapter')")
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org"]
    (toy.root / ".gitignore").write_text("_build/\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], cwd=toy.root, check=True)
    return toy, *toy.ictd("build", cwd=toy.root / "chapters")


def _until(condition: Callable[[], Any], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


@pytest.fixture
def until() -> Callable[..., None]:
    """Wait until a condition holds."""
    return _until


class Kernel:
    """An IPython shell in this process, for what a chapter does without a whole run."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell

    def run(self, *cells: str) -> list[dict[str, Any]]:
        """Run cells; raise what a cell raises; return the data of what they displayed."""
        shown = len(self.shell.display_pub.outputs)
        for cell in cells:
            self.shell.run_cell(cell, store_history=True, silent=False).raise_error()
        return [output["data"] for output in self.shell.display_pub.outputs[shown:]]

    def __getitem__(self, name: str) -> Any:
        return self.shell.user_ns[name]


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config(HistoryManager={"enabled": False})
    shell = InteractiveShell.instance(config=config)
    shell.display_pub = CapturingDisplayPublisher(parent=shell)
    yield Kernel(shell)
    InteractiveShell.clear_instance()


class Dask:
    """A scheduler and workers as processes of their own, on loopback."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        file = folder / "scheduler.json"
        where = ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)]
        self.scheduler = self._start("scheduler", *where)
        _until(lambda: file.is_file() and file.read_text().strip().endswith("}"))
        self.address: str = json.loads(file.read_text())["address"]

    def worker(
        self, *, nanny: bool = False, library: Path | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a worker of one thread; without a nanny, nothing starts it again."""
        watched = "--nanny" if nanny else "--no-nanny"
        scratch = ["--local-directory", str(self._folder)]
        words = [self.address, "--nthreads", "1", watched, *scratch]
        return self._start("worker", *words, library=library)

    def _start(self, kind: str, *words: str, library: Path | None = None) -> Any:
        path = str(library or Path(ictd.__file__).parents[1])
        with (self._folder / f"{len(self._processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{kind}", *words, "--no-dashboard"],
                cwd=self._folder,
                env=os.environ | {"PYTHONPATH": path},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def stop(self) -> None:
        for process in reversed(self._processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dask]:
    made = Dask(tmp_path_factory.mktemp("dask"))
    yield made
    made.stop()
