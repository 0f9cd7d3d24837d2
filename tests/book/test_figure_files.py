"""Figures of an executed chapter as files beside the page."""

from __future__ import annotations

import base64
import copy
from pathlib import Path

import pytest

from ictd.book import figure_files, markdown
from ictd.book.errors import BookError

PNG = base64.b64encode(b"a picture").decode()


def notebook(**data: str) -> dict:
    shown = {"figure": {"name": "fig-x", "caption": "What is $x$."}, "image": {"alt": "A line."}}
    return {
        "nbformat_minor": 5,
        "cells": [
            {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# T"},
            {
                "cell_type": "code",
                "id": "b",
                "metadata": {"mystnb": shown},
                "source": "x",
                "outputs": [
                    {"output_type": "stream", "text": "x"},
                    {"output_type": "execute_result", "data": {"image/png": PNG, **data}},
                ],
            },
            {
                "cell_type": "code",
                "id": "c",
                "metadata": {},
                "source": "y",
                "outputs": [{"output_type": "display_data", "data": {"image/png": PNG}}],
            },
        ],
    }


FULL = notebook(**{"image/svg+xml": "<svg/>", "text/csv": "a,β\n1,2\n"})


def test_the_figures_of_a_chapter_are_written(tmp_path: Path) -> None:
    figure_files.write(FULL, "03_some_chapter", tmp_path / "figures")
    written = {path.name: path.read_bytes() for path in (tmp_path / "figures").iterdir()}
    assert written == {
        "03-fig-x.png": b"a picture",
        "03-fig-x.svg": b"<svg/>",
        "03-fig-x.csv": "a,β\n1,2\n".encode(),
        "03-c.png": b"a picture",
    }


def test_without_figures_there_is_no_folder(tmp_path: Path) -> None:
    figure_files.write({"cells": FULL["cells"][:1]}, "03_some_chapter", tmp_path / "figures")
    assert not (tmp_path / "figures").exists()


def test_the_page_shows_one_picture_and_links_all_files() -> None:
    before = copy.deepcopy(FULL)
    linked = figure_files.with_links(FULL, "03_some_chapter", "/figures")
    assert before == FULL
    assert [cell["id"] for cell in linked["cells"]] == ["a", "b", "files-1", "c", "files-2"]
    assert set(linked["cells"][1]["outputs"][1]["data"]) == {"image/png"}
    text = linked["cells"][2]["source"]
    for kind in ("png", "svg", "csv"):
        assert f"{{download}}`{kind.upper()} </figures/03-fig-x.{kind}>`" in text
    assert "svg" not in linked["cells"][4]["source"]


PARTS = figure_files.parts(FULL, "chapters/03_some_chapter", "/chapters/figures")


def asked(name: str) -> str:
    return f"Before.\n\n% ictd build: figure:03_some_chapter/{name}\n% end\n\nAfter.\n"


def test_a_page_gets_the_figure_that_it_asks_for() -> None:
    text = markdown.fill(asked("fig-x"), PARTS, "index.md")
    assert ":::{figure} /chapters/figures/03-fig-x.png\n" in text
    assert ":alt: From a chapter: A line.\n" in text
    assert "What is $x$. From {doc}`/chapters/03_some_chapter`.\n:::" in text
    assert text.startswith("Before.\n\n:::")
    assert text.endswith(":::\n\nAfter.\n")


def test_a_figure_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(
        BookError, match=r"index\.md: there is no part 'figure:03_some_chapter/fig-y'"
    ):
        markdown.fill(asked("fig-y"), PARTS, "index.md")
