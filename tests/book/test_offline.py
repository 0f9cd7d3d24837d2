"""The zip of the site and the link to it, on a site of a few files and on a toy book."""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from pathlib import Path

import pytest

from ictd.book import builder, offline, site
from ictd.book.errors import BookError
from ictd.book.project import Project

PLACE = '<div class="offline-copy"></div>'
FILES = {
    "index.html": '<meta http-equiv="Refresh" content="0; url=chapters/index.html">',
    "chapters/index.html": f"<p>before</p>\n{PLACE}\n<p>after ∞</p>",
    "chapters/a page.html": "<p>a page</p>",
    "_static/x.css": "p {}",
    ".buildinfo": "hidden",
    "_static/.hidden/y.css": "hidden",
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters/index.md").write_text("# Title\n")
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: chapters/index\n")
    for name, text in FILES.items():
        path = tmp_path / "_build/html" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Project(tmp_path)


def landing(project: Project) -> str:
    return (project.root / "_build/html/chapters/index.html").read_text(encoding="utf-8")


def zips(project: Project) -> list[str]:
    found = (project.root / "_build").rglob("*.zip*")
    return sorted(path.relative_to(project.root).as_posix() for path in found)


def test_the_zip_holds_the_site_in_one_folder(project: Project) -> None:
    path = offline.pack(project)
    assert path == project.root / "_build" / "site.zip"
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    shown = {name: text for name, text in FILES.items() if "hidden" not in text}
    assert texts == {f"ictd-book/{name}": text for name, text in shown.items()}


def test_unpacked_files_can_be_read_by_all(project: Project) -> None:
    with zipfile.ZipFile(offline.pack(project)) as archive:
        assert {entry.external_attr >> 16 for entry in archive.infolist()} == {0o644}


def test_the_same_site_makes_the_same_zip(project: Project) -> None:
    first = offline.pack(project).read_bytes()
    for path in (project.root / "_build/html").rglob("*.*"):
        os.utime(path, (1e9, 1e9))
    # Written anew and in another order, with another umask, from a site that has the link and the zip.
    html = project.root / "_build/html"
    for name in reversed(FILES):
        shutil.move(html / name, html / "aside")
        (html / name).write_bytes((html / "aside").read_bytes())
        (html / "aside").unlink()
    old = os.umask(0o077)
    try:
        assert offline.pack(project).read_bytes() == first
    finally:
        os.umask(old)
    with zipfile.ZipFile(project.root / "_build/site.zip") as archive:
        names = [entry.filename for entry in archive.infolist()]
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert names == sorted(names)


def test_the_landing_page_links_the_zip(project: Project) -> None:
    before = landing(project)
    packed = offline.pack(project).read_bytes()
    (href,) = re.findall(r'<a href="([^"]+)" download>', landing(project))
    linked = project.root / "_build/html/chapters" / href
    assert linked.resolve() == project.root / "_build/html/ictd-book.zip"
    assert linked.read_bytes() == packed
    assert re.sub(r"<p><a .*?</p>", "", landing(project)) == before
    after = landing(project)
    offline.pack(project)
    assert landing(project) == after


def test_a_root_page_links_the_zip_beside_it(project: Project) -> None:
    (project.root / "_toc.yml").write_text("format: jb-book\nroot: start\n")
    (project.root / "start.md").write_text("# Title\n")
    (project.root / "_build/html/start.html").write_text(PLACE)
    offline.pack(project)
    assert 'href="ictd-book.zip"' in (project.root / "_build/html/start.html").read_text()


def test_an_interrupted_zip_leaves_the_last_one(project: Project, monkeypatch) -> None:
    packed, shown = offline.pack(project).read_bytes(), landing(project)

    def full(*arguments: object, **options: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with pytest.raises(OSError, match="no space left"):
        offline.pack(project)
    assert (project.root / "_build/site.zip").read_bytes() == packed
    assert landing(project) == shown
    assert zips(project) == ["_build/html/ictd-book.zip", "_build/site.zip"]


def test_there_is_no_link_before_there_is_a_zip(project: Project, monkeypatch) -> None:
    real, order = offline.replacing, []

    def noted(path: Path):
        order.append((path.name, "download" in landing(project)))
        return real(path)

    monkeypatch.setattr(offline, "replacing", noted)
    offline.pack(project)
    assert order == [("site.zip", False), ("ictd-book.zip", False)]


def test_without_a_site_it_says_what_to_do(project: Project) -> None:
    shutil.rmtree(project.root / "_build/html")
    with pytest.raises(BookError, match="run: ictd build"):
        offline.pack(project)


@pytest.mark.parametrize("text", ["<p>no place</p>", PLACE + PLACE])
def test_a_landing_page_has_one_place_for_the_link(project: Project, text: str) -> None:
    (project.root / "_build/html/chapters/index.html").write_text(text)
    with pytest.raises(BookError, match=r'index\.html needs one <div class="offline-copy"></div>'):
        offline.pack(project)
    assert zips(project) == []


def test_a_new_site_has_neither_zip_nor_link(project: Project, monkeypatch) -> None:
    """A build that changes nothing keeps both; one that renders another site removes both."""
    made = {}

    def render(project: Project, staged: Path) -> None:
        if made["fails"]:
            raise site.SiteError("not rendered")
        shutil.rmtree(project.root / "_build/html")
        page = project.root / "_build/html/chapters/index.html"
        page.parent.mkdir(parents=True)
        page.write_text(PLACE)
        (project.root / "_build/html/index.html").write_text("x")

    monkeypatch.setattr(site, "stage", lambda project, runs: project.root)
    monkeypatch.setattr(site, "fingerprint", lambda staged: made["fingerprint"])
    monkeypatch.setattr(site, "render", render)

    def build(fingerprint: str, fails: bool = False) -> None:
        made.update(fingerprint=fingerprint, fails=fails)
        builder._make_site(project, {}, False)

    build("first")
    assert zips(project) == []
    offline.pack(project)
    both = ["_build/html/ictd-book.zip", "_build/site.zip"]
    build("first")
    assert zips(project) == both
    assert "download" in landing(project)
    with pytest.raises(site.SiteError):
        build("second", fails=True)
    assert zips(project) == both
    assert "download" in landing(project)
    build("second")
    assert zips(project) == []
    assert "download" not in landing(project)


def test_the_command_builds_and_packs(built_toy) -> None:
    toy = built_toy[0]
    shown = (toy.root / "_build/html/chapters/index.html").read_bytes()
    out, err = toy.ictd("site", cwd=toy.root / "chapters")
    try:
        assert Path(out.strip()) == toy.root / "_build" / "site.zip"
        assert "up to date" in err
        assert "download" in toy.page("index")
    finally:  # other tests look at the same toy
        for name in ("site.zip", "html/ictd-book.zip"):
            (toy.root / "_build" / name).unlink()
        (toy.root / "_build/html/chapters/index.html").write_bytes(shown)
