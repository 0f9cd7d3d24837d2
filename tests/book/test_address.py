"""Where the project is published, and what becomes of it: buttons, links, the first cell on Colab."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from bs4 import BeautifulSoup

from ictd.book import address, colab
from ictd.book.address import Address
from ictd.book.errors import BookError
from ictd.book.notebook import read
from ictd.book.project import find_project
from ictd.book.trials import code_hash

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
DECLARED = Address("https://github.com/someone/some.book", "main", declared=True)


EMPTY: dict[str, Any] = {"cells": []}


def declare(root: Path, repository: str | None) -> None:
    urls = f'[project.urls]\nRepository = "{repository}"\n' if repository is not None else ""
    (root / "pyproject.toml").write_text(f'[project]\nname = "toy"\n{urls}')


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=root, check=True, capture_output=True)


# ------------------------------------------------------------------------------------------- the address


@pytest.mark.parametrize(
    ("text", "url", "branch"),
    [
        ("https://github.com/a/b", "https://github.com/a/b", "main"),
        ("https://github.com/a/b.git", "https://github.com/a/b", "main"),
        ("https://github.com/a/b/", "https://github.com/a/b", "main"),
        ("https://github.com/a/b/tree/dev/x", "https://github.com/a/b", "dev/x"),
        ("https://gitlab.com/a/b/-/tree/dev", "https://gitlab.com/a/b", "dev"),
        ("git@github.com:a/b.git", "https://github.com/a/b", "main"),
        ("ssh://git@gitlab.com/a/b.git", "https://gitlab.com/a/b", "main"),
    ],
)
@pytest.mark.parametrize("way", ["setting", "remote"])
def test_an_address_is_read_from_the_setting_or_the_remote(
    tmp_path: Path, way: str, text: str, url: str, branch: str
) -> None:
    declare(tmp_path, text if way == "setting" else None)
    if way == "remote":
        git(tmp_path, "init", "-q")
        git(tmp_path, "remote", "add", "origin", text)
    (tmp_path / "_build" / "executed").mkdir(parents=True)
    found = address.find(tmp_path / "_build" / "executed")
    assert found == Address(url, branch, declared=way == "setting")
    assert found.files == f"{url}/blob/{branch}"


def test_the_setting_goes_before_the_remote_and_the_remote_knows_its_branch(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "remote", "add", "origin", "https://github.com/fork/b")
    git(tmp_path, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    declare(tmp_path, None)
    assert address.find(tmp_path) == Address("https://github.com/fork/b", "trunk", declared=False)
    declare(tmp_path, "https://github.com/a/b")
    assert address.find(tmp_path) == Address("https://github.com/a/b", "main", declared=True)


def test_the_remote_of_a_repository_around_the_project_is_not_its_address(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "remote", "add", "origin", "https://github.com/other/mono")
    (tmp_path / "book").mkdir()
    declare(tmp_path / "book", None)
    assert address.find(tmp_path / "book") is None


@pytest.mark.parametrize("remote", ["/srv/git/book", "../book", "https://example.org/a/b", None])
def test_a_remote_elsewhere_is_no_address(tmp_path: Path, remote: str | None) -> None:
    git(tmp_path, "init", "-q")
    if remote:
        git(tmp_path, "remote", "add", "origin", remote)
    declare(tmp_path, None)
    assert address.find(tmp_path) is None
    declare(tmp_path, "")
    assert address.find(tmp_path) is None


@pytest.mark.parametrize("text", ["github.com/a/b", "https://github.com/a", "https://example.org"])
def test_a_setting_that_is_no_repository_is_refused(tmp_path: Path, text: str) -> None:
    declare(tmp_path, text)
    with pytest.raises(BookError, match=rf"Repository .*{re.escape(repr(text))}; expected https"):
        address.find(tmp_path)


# --------------------------------------------------------------------------------------- on the pages


@pytest.fixture(scope="module")
def published(make_toy) -> Any:
    """A toy book with an address, built."""
    toy = make_toy("published")
    toy.add("01_toy", "print('a chapter')")
    declare(toy.root, "https://github.com/someone/some.book/tree/dev")
    config = json.loads((toy.root / "_config.yml").read_text())
    config["sphinx"]["extra_extensions"] = ["sphinx_reredirects", "ictd.book.launch"]
    templates = toy.root / "chapters" / "templates"
    templates.mkdir()
    (templates / "moved.html").write_bytes((ROOT / "chapters/templates/moved.html").read_bytes())
    config["sphinx"]["config"] |= {
        "redirects": {"chapters/old_name": "01_toy.html"},
        "redirect_html_template_file": "chapters/templates/moved.html",
    }
    (toy.root / "_config.yml").write_text(json.dumps(config))
    toy.ictd("build")
    return toy


def links(page: str) -> list[str]:
    return [tag["href"] for tag in BeautifulSoup(page, "html.parser").select("a[href]")]


def test_launch_buttons_lead_to_the_chapter(published: Any) -> None:
    found = links(published.page("01_toy"))
    (binder,) = [urlsplit(link) for link in found if "mybinder.org" in link]
    (colab_link,) = [urlsplit(link) for link in found if "colab.research" in link]
    assert binder.path == "/v2/gh/someone/some.book/dev"
    (opened,) = parse_qs(binder.query)["urlpath"]
    assert opened.startswith("lab/tree/")
    place = "/github/someone/some.book/blob/dev/"
    assert colab_link.path.startswith(place)
    for path in (opened.removeprefix("lab/tree/"), colab_link.path.removeprefix(place)):
        assert (published.root / path).is_file(), path


def test_sources_are_linked(published: Any) -> None:
    base = "https://github.com/someone/some.book"
    found = links(published.page("01_toy"))
    assert base in found
    assert f"{base}/blob/dev/chapters/01_toy.ipynb?plain=1" in found


def test_without_an_address_there_are_no_buttons(built_toy) -> None:
    toy, *_ = built_toy
    assert [link for link in links(toy.page("01_toy")) if link.startswith("https://")] == []


def test_the_notebook_to_download_is_the_one_in_the_project(published: Any) -> None:
    (name,) = [
        x for x in links(published.page("01_toy")) if x.endswith(".ipynb") and "://" not in x
    ]
    page = published.root / "_build/html/chapters/01_toy.html"
    offered = (page.parent / name).resolve()
    assert offered.read_bytes() == (published.root / "chapters/01_toy.ipynb").read_bytes()


@pytest.mark.browser
@pytest.mark.parametrize("script", [True, False], ids=["with scripts", "without scripts"])
def test_an_old_address_leads_to_the_new_one(browser, published: Any, script: bool) -> None:
    context = browser.new_context(java_script_enabled=script)
    tab = context.new_page()
    old = published.root / "_build/html/chapters/old_name.html"
    tab.goto(f"{old.as_uri()}#some-place", wait_until="commit")
    tab.wait_for_url("**/01_toy.html*", wait_until="commit")
    assert tab.url.endswith("/chapters/01_toy.html" + ("#some-place" if script else ""))
    context.close()


def test_every_page_of_the_book_that_can_be_launched_is_tracked_by_git() -> None:
    """A button names the branch and the path of the page's source."""
    done = subprocess.run(
        ["git", "ls-files", "chapters"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    pages = {path.relative_to(ROOT).as_posix() for path in find_project(ROOT).chapters()}
    assert pages <= set(done.stdout.splitlines())


# --------------------------------------------------------------------------- the first cell, on Colab


def cell_of(path: Path) -> dict:
    """The first code cell of a notebook."""
    return next(cell for cell in read(path)["cells"] if cell["cell_type"] == "code")


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_the_first_code_cell_of_a_chapter_is_for_colab(path: Path) -> None:
    cell = cell_of(path)
    expected = colab.source(read(path), address.find(ROOT))
    assert "".join(cell["source"]) == expected, "run: ictd colab"
    assert cell["metadata"]["tags"] == ["colab", "remove-cell"]
    assert cell["metadata"]["jupyter"] == {"source_hidden": True}


def test_the_address_is_written_into_every_chapter(tmp_path: Path, toy: Any) -> None:
    toy.add("01_toy", "print(1)")
    toy.add("02_runs_others", "import nbformat")
    paths = sorted((toy.root / "chapters").glob("*.ipynb"))
    before = [code_hash(read(path)) for path in paths]
    declare(toy.root, "https://github.com/someone/some.book/tree/dev")
    assert colab.write(find_project(toy.root)) == paths
    assert colab.write(find_project(toy.root)) == []
    first, last = ("".join(cell_of(path)["source"]) for path in paths)
    assert 'repository = "https://github.com/someone/some.book"\nbranch = "dev"\n' in first
    assert "./ictd-book[chapters]" in first
    assert "./ictd-book[book]" in last
    # What a chapter computes is as it was: its trials and stored runs still speak of it.
    assert [code_hash(read(path)) for path in paths] == before
    declare(toy.root, None)
    assert colab.write(find_project(toy.root)) == paths
    assert 'repository = ""' in "".join(cell_of(paths[0])["source"])


@pytest.fixture
def on_colab(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """As on Colab before the library is there; the commands that were run."""
    commands: list[list[str]] = []

    def run(command: list[str], check: bool) -> None:
        assert check
        commands.append(command)

    monkeypatch.setitem(sys.modules, "google.colab", sys)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_on_colab_the_cell_installs_a_clone(
    on_colab: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    exec(colab.source(EMPTY, DECLARED), {})
    clone, install = on_colab
    assert clone[:2] == ["git", "clone"]
    assert clone[-4:] == ["--branch", "main", "https://github.com/someone/some.book", "ictd-book"]
    assert install[:4] == [sys.executable, "-m", "pip", "install"]
    assert install[-2:] == ["--editable", "./ictd-book[chapters]"]
    assert sys.path[0] == str(tmp_path / "ictd-book")
    # Once more, after an installation that failed.
    (tmp_path / "ictd-book").mkdir()
    on_colab.clear()
    exec(colab.source(EMPTY, DECLARED), {})
    assert [command[0] for command in on_colab] == [sys.executable]


def test_on_colab_without_an_address_it_says_what_to_do(on_colab: list[list[str]]) -> None:
    with pytest.raises(RuntimeError, match="Set `repository` in this cell"):
        exec(colab.source(EMPTY, None), {})
    assert on_colab == []


@pytest.mark.parametrize("where", ["elsewhere", "a second time on Colab"])
def test_otherwise_it_does_nothing(
    where: str, on_colab: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    if where == "elsewhere":
        monkeypatch.delitem(sys.modules, "google.colab")
    else:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    exec(colab.source(EMPTY, DECLARED), {})
    assert on_colab == []
    assert capsys.readouterr() == ("", "")
