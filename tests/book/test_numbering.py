"""Chapters have the numbers that their files' names begin with, whatever is missing between them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

import ictd

ROOT = Path(ictd.__file__).resolve().parents[1]

TOC = """\
format: jb-book
root: index
parts:
  - caption: Chapters
    numbered: true
    chapters:
      - file: 01_one
      - file: 03_three
        sections:
          - file: 05_below
      - file: 07_seven
  - caption: More
    numbered: true
    chapters:
      - file: appendix
  - caption: Reference
    chapters:
      - file: 09_words
"""

CHAPTER = """\
# Title of {n}

## A section of {n}

:::{{figure}} pixel.png
:name: fig-{n}
The figure of {n}.
:::

$$ {n} $$ (eq-{n})

:::{{prf:theorem}}
:label: thm-{n}
Of {n}.
:::

:::{{exercise}}
:label: ex-{n}
Of {n}.
:::
"""

# As the command jupyter-book does, of this Python.
RENDER = "from jupyter_book.cli.main import main; main()"
REFERENCES = "{numref}`fig-three`, {eq}`eq-three`, {prf:ref}`thm-three`, {ref}`ex-three`"


def write(folder: Path, extensions: list[str]) -> None:
    """A book of chapters 1, 3 (with a page below it) and 7, an appendix, and a page without a number."""
    config = {
        "title": "toy",
        "author": "nobody",
        "logo": "",
        "only_build_toc_files": True,
        "execute": {"execute_notebooks": "off"},
        "parse": {"myst_enable_extensions": ["dollarmath", "colon_fence"]},
        "sphinx": {
            "extra_extensions": ["sphinx_proof", "sphinx_exercise", *extensions],
            "config": {"numfig": True, "math_numfig": True},
        },
    }
    (folder / "_config.yml").write_text(json.dumps(config))  # JSON is YAML
    (folder / "_toc.yml").write_text(TOC)
    (folder / "pixel.png").write_bytes(
        bytes.fromhex(
            "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154"
            "08d763f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
        )
    )
    (folder / "index.md").write_text(f"# Toy book\n\n{REFERENCES}\n")
    for name in ("01_one", "03_three", "07_seven"):
        (folder / f"{name}.md").write_text(CHAPTER.format(n=name.partition("_")[2]))
    for name in ("05_below", "appendix", "09_words"):
        (folder / f"{name}.md").write_text(f"# Title of {name}\n\n## A section of {name}\n")


def build(folder: Path) -> str:
    """A plain build, with every warning an error; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", RENDER, "build", ".", "-W", "-n", "--keep-going"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def article(folder: Path, name: str, part: str = "article") -> str:
    """The text of a page, or of another part of it, its spaces single."""
    page = (folder / "_build" / "html" / f"{name}.html").read_text(encoding="utf-8")
    return " ".join(BeautifulSoup(page, "html.parser").select_one(part).get_text().split())


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("numbers")
    write(folder, ["ictd.book.numbering"])
    build(folder)
    return folder


@pytest.mark.parametrize(("name", "number"), [("01_one", 1), ("03_three", 3), ("07_seven", 7)])
def test_a_chapter_has_the_number_of_its_file(book: Path, name: str, number: int) -> None:
    word, text = name.partition("_")[2], article(book, name)
    for part in (
        f"{number}. Title of {word}",
        f"{number}.1. A section of {word}",
        f"Fig. {number}.1 The figure of {word}.",
        f"({number}.1)",
        f"Theorem {number}.1",
        f"Exercise {number}.1",
    ):
        assert part in text, part
    assert f"{number}. Title of {word}" in article(book, "index", ".bd-sidebar-primary")


def test_the_links_to_the_pages_before_and_after_show_the_numbers(book: Path) -> None:
    footer = article(book, "05_below", ".prev-next-footer")
    assert "3. Title of three" in footer
    assert "7. Title of seven" in footer


def test_references_show_the_numbers(book: Path) -> None:
    assert "Fig. 3.1, (3.1), Theorem 3.1, Exercise 3.1" in article(book, "index")


def test_a_page_below_a_chapter_has_the_number_of_the_chapter(book: Path) -> None:
    text = article(book, "05_below")
    assert "3.2. Title of 05_below" in text
    assert "3.2.1. A section of 05_below" in text


def test_pages_without_a_number_in_name_or_contents_stay_as_they_are(book: Path) -> None:
    assert "4. Title of appendix" in article(book, "appendix")
    assert article(book, "09_words").startswith("Title of 09_words")


def test_an_edit_leaves_the_numbers(book: Path) -> None:
    """What is not read again keeps its numbers too."""
    page = book / "07_seven.md"
    page.write_text(page.read_text() + "\nAn edit.\n")
    build(book)
    assert "Fig. 7.1 The figure of seven." in article(book, "07_seven")
    assert "7. Title of seven" in article(book, "01_one", ".bd-sidebar-primary")
    assert "Fig. 3.1 The figure" in article(book, "03_three")


def test_without_the_extension_chapters_are_counted(tmp_path: Path) -> None:
    """If this fails, the extension is no longer needed."""
    write(tmp_path, [])
    build(tmp_path)
    assert "2. Title of three" in article(tmp_path, "03_three")
