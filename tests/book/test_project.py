"""Where the book is and what its chapters are; the commit that a run is of."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ictd.book import project, provenance
from ictd.book.errors import BookError
from ictd.book.project import Project, UnknownChapter, find_chapter, find_project

TOC = """\
format: jb-book
root: index
parts:
  - caption: One
    chapters:
      - file: chapters/01_one
        sections:
          - file: chapters/01b_more.md
      - url: https://example.org
  - caption: Two
    chapters:
      - file: chapters/02_two.ipynb
      - glob: chapters/1*
"""
PAGES = ["index.md", "chapters/01_one.ipynb", "chapters/01b_more.md", "chapters/02_two.ipynb"]
GLOBBED = ["chapters/10_ten.ipynb", "chapters/12_twelve.ipynb"]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "chapters").mkdir()
    (tmp_path / "_toc.yml").write_text(TOC)
    for name in (*PAGES, *GLOBBED, "chapters/1.png", "chapters/99_draft.ipynb"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path / "chapters")
    return tmp_path


def test_pages_are_those_of_the_table_of_contents_in_its_order(root):
    book = find_project()
    assert book.root == root
    assert [str(page.relative_to(root)) for page in book.pages()] == [*PAGES, *GLOBBED]
    assert [chapter.stem for chapter in book.chapters()] == (
        ["01_one", "02_two", "10_ten", "12_twelve"]
    )


@pytest.mark.parametrize("name", ["1", "01", "01_one", "01_one.ipynb", "../chapters/01_one.ipynb"])
def test_a_chapter_is_found_by_number_name_and_path(root, name):
    book, chapter = find_chapter(name)
    assert (book.root, chapter) == (root, root / "chapters" / "01_one.ipynb")


def test_a_notebook_outside_the_table_of_contents_is_found_by_path(root, tmp_path_factory):
    assert find_chapter("99_draft.ipynb")[0].root == root
    other = tmp_path_factory.mktemp("other") / "x.ipynb"
    other.write_text("")
    assert find_chapter(other)[1] == other


def test_an_unknown_or_ambiguous_name_is_answered_with_the_chapters(root):
    known = "the chapters are: 01_one, 02_two, 10_ten, 12_twelve"
    with pytest.raises(UnknownChapter, match=f"no chapter '99'; {known}"):
        find_chapter("99")
    (root / "chapters" / "12_also.ipynb").write_text("")
    with pytest.raises(UnknownChapter, match="more than one chapter '12'"):
        find_chapter("12")


def test_two_chapters_of_one_name_are_refused(root):
    (root / "01_one.ipynb").write_text("")
    (root / "_toc.yml").write_text("root: 01_one\nchapters: [{file: chapters/01_one}]")
    with pytest.raises(BookError, match="two chapters of one name: 01_one"):
        Project(root).chapters()


def test_without_a_book_the_library_s_own_is_used_if_it_has_one(
    root, monkeypatch, tmp_path_factory
):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    monkeypatch.setattr(project, "PACKAGE", root / "ictd")
    assert find_project().root == root
    monkeypatch.setattr(project, "PACKAGE", elsewhere / "ictd")
    with pytest.raises(BookError, match="no book"):
        find_project()
    with pytest.raises(UnknownChapter, match="no notebook 2, and no book"):
        find_chapter("2")
    (elsewhere / "x.ipynb").write_text("")
    assert find_chapter("x.ipynb") == (Project(elsewhere), elsewhere / "x.ipynb")


def test_the_commit_in_words(root):
    def git(*words: str) -> str:
        identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        command = ["git", *identity, *words]
        return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout

    assert provenance.commit(root) == "not under git"
    git("init", "-q")
    assert provenance.commit(root) == "no commit yet"
    assert provenance.commit(root / "chapters") == "not under git"
    git("add", ".")
    git("commit", "-q", "-m", "first")
    head = git("rev-parse", "--short=10", "HEAD").strip()
    assert provenance.commit(root) == head
    (root / "notes.txt").write_text("beside the book")
    assert provenance.commit(root) == head
    (root / "chapters" / "new.md").write_text("")
    assert provenance.commit(root) == f"{head} with uncommitted changes"
    assert provenance.is_clean(head)
    assert not provenance.is_clean(provenance.commit(root))


def test_without_git_there_is_no_commit(root, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert provenance.commit(root) == "not under git"
