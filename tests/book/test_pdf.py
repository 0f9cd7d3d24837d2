"""The PDF of a small book, and the parts that it is made with."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup

from ictd.book import builder, offline
from ictd.book.errors import BookError
from ictd.book.pdf import assemble, browser, front
from ictd.book.project import PACKAGE, Project

PLACE = '<div class="offline-copy"></div>'
VENDOR = PACKAGE.parent / "chapters" / "vendor"


# --- The pages put together, from a site of a few files.


def write_site(folder: Path, **articles: str) -> Path:
    for name, text in articles.items():
        page = folder / "chapters" / f"{name}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"<body><nav>menu</nav><article>{text}</article><p>foot</p></body>")
    return folder


def together(site: Path, *names: str) -> list[assemble.PaperPage]:
    return assemble.paper_pages(site, [f"chapters/{name}" for name in names], site.parent)


def links(page: assemble.PaperPage) -> list[tuple[str, str]]:
    soup = BeautifulSoup(page.body, "html.parser")
    return [(str(a["href"]), a.get_text()) for a in soup.find_all("a")]


def test_sections_of_one_name_stay_apart(tmp_path: Path) -> None:
    one = '<h1>One</h1><section id="end"><h2>End</h2><a href="#end">here</a></section>'
    two = (
        '<h1>Two</h1><section id="end"><h2>End</h2><a href="#end">here</a>'
        '<a href="one.html#end">there</a><a href="one.html">all</a></section>'
    )
    pages = together(write_site(tmp_path / "html", one=one, two=two), "one", "two")
    assert links(pages[0]) == [("#chapters-one--end", "here")]
    assert links(pages[1]) == [
        ("#chapters-two--end", "here"),
        ("#chapters-one--end", "there"),
        ("#chapters-one", "all"),
    ]
    for page in pages:
        assert f'id="{page.anchor}--end"' in page.body


def test_links_out_of_the_book_stay_and_files_beside_it_are_text(tmp_path: Path) -> None:
    text = (
        '<h1>One</h1><a href="https://example.org/x#y">out</a><a href="mailto:a@example.org">mail</a>'
        '<a href="../_downloads/x.csv">data</a><a href="../search.html">search</a>'
        '<a href="file:///etc/x">mine</a><a href="javascript:go()">go</a>'
    )
    (page,) = together(write_site(tmp_path / "html", one=text), "one")
    assert links(page) == [("https://example.org/x#y", "out"), ("mailto:a@example.org", "mail")]
    assert "datasearchminego" in BeautifulSoup(page.body, "html.parser").get_text()


def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    site = write_site(tmp_path / "html", one='<h1>One</h1><a href="#gone">x</a>')
    with pytest.raises(BookError, match=r"lead nowhere: chapters/one: #gone"):
        together(site, "one")


def test_what_does_nothing_on_paper_is_left_out(tmp_path: Path) -> None:
    text = (
        '<h1>One<a class="headerlink" href="#">#</a></h1><button>click</button><script>run()</script>'
        '<div class="figure-files">PNG</div><div class="explorer-live">slider</div>'
        '<p class="no-print">screen</p><p>kept</p><div class="explorer">still</div>' + PLACE
    )
    (page,) = together(write_site(tmp_path / "html", one=text), "one")
    assert page.title == "One"
    assert BeautifulSoup(page.body, "html.parser").get_text() == "Onekeptstill"


def test_folded_blocks_are_unfolded(tmp_path: Path) -> None:
    text = (
        '<h1>One</h1><details class="hide above-input"><summary>Show</summary><pre>code</pre></details>'
        "<details><summary>More</summary><p>inside</p></details><noscript><p>still</p></noscript>"
        '<div class="solution dropdown admonition toggle toggle-hidden">'
        '<p class="admonition-title">Solution to Exercise 1</p><p>the answer</p></div>'
    )
    (page,) = together(write_site(tmp_path / "html", one=text), "one")
    shown = BeautifulSoup(page.body, "html.parser")
    assert shown.get_text() == "OnecodeMoreinsidestillSolution to Exercise 1the answer"
    assert shown.select("details, summary, noscript, .toggle, .toggle-hidden") == []
    titles = [title.get_text() for title in shown.select(".admonition-title")]
    assert titles == ["More", "Solution to Exercise 1"]
    assert shown.select_one(".solution")["class"] == ["solution", "dropdown", "admonition"]


def test_a_title_and_what_follows_it_are_one_box(tmp_path: Path) -> None:
    text = (
        "<h1>One</h1><h2>Two</h2><p>text</p><h2>Three</h2><div>code</div>"
        '<div class="admonition"><p class="admonition-title">Four</p>'
        '<a class="image-reference" href="x.png"><img src="x.png"></a><p>more</p></div>'
    )
    (page,) = together(write_site(tmp_path / "html", one=text), "one")
    boxes = BeautifulSoup(page.body, "html.parser").select(".together")
    assert [[part.name for part in box.find_all(recursive=False)] for box in boxes] == [
        ["h2", "p"],
        ["p", "img"],
    ]


def test_pictures_are_named_from_where_the_document_is(tmp_path: Path) -> None:
    text = '<h1>One</h1><img src="../_images/a%20b.png"><img src="data:image/png;base64,AA==">'
    (page,) = together(write_site(tmp_path / "html", one=text), "one")
    found = [image["src"] for image in BeautifulSoup(page.body, "html.parser").find_all("img")]
    assert found == ["html/_images/a%20b.png", "data:image/png;base64,AA=="]


@pytest.mark.parametrize("text", ["<p>no title</p>", "<h2>Too low</h2>"])
def test_a_page_has_a_title(tmp_path: Path, text: str) -> None:
    with pytest.raises(BookError, match=r"chapters/one\.html does not begin with a title"):
        together(write_site(tmp_path / "html", one=text), "one")


def test_a_missing_page_is_named(tmp_path: Path) -> None:
    with pytest.raises(BookError, match=r"no page chapters/two\.html"):
        together(write_site(tmp_path / "html", one="<h1>One</h1>"), "one", "two")


def test_the_title_page_tells_what_the_book_is(tmp_path: Path) -> None:
    (tmp_path / "CITATION.cff").write_text(
        "license: [MIT, CC-BY-4.0]\npreferred-citation:\n  title: On X\n  year: 2026\n"
        "  authors: [{family-names: Doe, given-names: Jo}]\n"
        "  identifiers: [{type: other, value: 'arXiv:1'}]\n"
    )
    facts = front.facts(Project(tmp_path), {"title": "A <b>", "author": "we"}, [])
    assert facts.rows == (
        ("On the paper", "Jo Doe. On X. arXiv:1, 2026"),
        ("Commit", "not under git"),
        ("Licence", "MIT (code), CC-BY-4.0 (text and figures)"),
    )
    frame: dict[str, Any] = {"site": "html", "script": "", "mathjax": {}, "style": ""}
    text = front.document(facts, "2026-11-30", [], {}, frame)
    assert "A &lt;b&gt;" in text
    assert "<b>" not in text
    assert "2026-11-30" in text


# --- Chromium.


def test_chromium_is_the_one_named_or_one_on_the_path(tmp_path: Path) -> None:
    for name in ("google-chrome", "chromium", "mine"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    path = str(tmp_path)
    assert browser.program({"PATH": path}) == str(tmp_path / "chromium")
    assert browser.program({"PATH": path, "CHROMIUM": str(tmp_path / "mine")}) == str(
        tmp_path / "mine"
    )
    assert browser.program({"PATH": str(tmp_path / "empty")}) is None
    with pytest.raises(BookError, match="CHROMIUM=nothing: there is no such program"):
        browser.program({"PATH": path, "CHROMIUM": "nothing"})


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BookError, match=r"playwright: pip install -e '\.\[pdf\]', or make pdf"):
        browser.check()


@pytest.mark.browser
def test_a_chromium_that_does_not_start_says_what_to_install(monkeypatch, tmp_path: Path) -> None:
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CHROMIUM", str(broken))
    with pytest.raises(BookError, match="apt install chromium"):
        browser.check()


@pytest.mark.browser
def test_an_old_chromium_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "_OLDEST", 10_000)
    with pytest.raises(BookError, match=r"cannot number pages; 10000 or newer is needed"):
        browser.check()


# --- A book of two chapters, built and printed.

WIDE = r"x = " + " + ".join(rf"\frac{{a_{{{n}}}}}{{b_{{{n}}}}}" for n in range(60))
TABLE = "| " + " | ".join(f"column{n}" for n in range(14)) + " |\n|" + "---|" * 14
TABLE += "\n| " + " | ".join(f"valueofcell{n}" for n in range(14)) + " |"
FIRST = f"""\
## Same name

Formula $\\gamma$, wide:

$$
{WIDE}
$$ (eq-wide)

{TABLE}

```python
name = "{"longword" * 40}"
```

:::{{admonition}} Folded
:class: dropdown
INSIDE-THE-FOLD
:::

<div class="explorer-live">CONTROLS-OF-A-SCREEN</div>
"""
SECOND = """\
## Same name

See [the first](01_first.ipynb), {eq}`eq-wide`, [outside](https://example.org/) and [here](same-name).
"""


@pytest.fixture(scope="module")
def printed(make_toy: Callable[[str], Any]) -> Any:
    toy = make_toy("printed")
    config = json.loads((toy.root / "_config.yml").read_text())
    config["sphinx"]["config"] |= {
        "html_extra_path": ["chapters/vendor"],
        "mathjax_path": "../mathjax/tex-chtml-full.js",
        "myst_heading_anchors": 3,
    }
    (toy.root / "_config.yml").write_text(json.dumps(config))
    shutil.copytree(VENDOR, toy.root / "chapters" / "vendor")
    image = "from IPython.display import Image\nimport base64\n\n"
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg"
    image += f"Image(base64.b64decode('{pixel}=='), width=5000, alt='one pixel')"
    toy.add("01_first", ("markdown", FIRST), image)
    toy.add("02_second", ("markdown", SECOND.replace("(same-name)", "(#same-name)")))
    for name in ("01_first", "02_second"):
        path = toy.root / "chapters" / f"{name}.ipynb"
        path.write_text(path.read_text().replace("# Title", f"# Title of {name}", 1))
    toy.out, toy.err = toy.ictd("pdf", cwd=toy.root / "chapters")
    return toy


@pytest.fixture(scope="module")
def reader(printed: Any) -> Any:
    from pypdf import PdfReader

    return PdfReader(printed.root / "_build/book.pdf")


def targets(reader: Any) -> Iterator[tuple[int, str]]:
    """Pages, from 1, and where the links on them lead: an address or a name of a place."""
    for number, page in enumerate(reader.pages, 1):
        for note in page.get("/Annots") or []:
            note = note.get_object()
            if note["/Subtype"] == "/Link":
                action = (note.get("/A") or {}).get("/URI")
                yield number, str(action or note["/Dest"]).removeprefix("/")


def place(reader: Any, name: str) -> int:
    found = {key.removeprefix("/"): value for key, value in reader.named_destinations.items()}
    return reader.get_destination_page_number(found[name]) + 1


@pytest.mark.browser
def test_the_command_builds_prints_and_offers(printed: Any) -> None:
    assert Path(printed.out.strip()) == printed.root / "_build" / "book.pdf"
    assert "printing it again" in printed.err
    assert "too wide" not in printed.err
    (link,) = re.findall(r'<p><a href="[^"]+\.pdf" download>.*?</p>', printed.page("index"))
    pdf = printed.root / "_build/html/ictd-book.pdf"
    assert 'href="../ictd-book.pdf"' in link
    assert re.search(r"as a PDF</a>, \d+\.\d MB, \d+ pages", link)
    assert pdf.read_bytes() == (printed.root / "_build/book.pdf").read_bytes()
    left = [path.name for path in (printed.root / "_build").iterdir() if "paper" in path.name]
    assert left == []


@pytest.mark.browser
def test_metadata_and_title_page(reader: Any) -> None:
    assert reader.metadata.title == "toy"
    assert reader.metadata.author == "nobody"
    assert reader.metadata["/TooWide"] == ""
    assert reader.trailer["/Root"]["/Lang"] == "en"
    first = reader.pages[0].extract_text()
    assert first.startswith("toy")
    assert "nobody" in first
    assert not re.search(r"^\d+$", first, re.MULTILINE)
    for number, page in enumerate(reader.pages[1:], 2):
        assert str(number) in page.extract_text().splitlines()


@pytest.mark.browser
def test_contents_tell_the_pages_of_the_outline(reader: Any) -> None:
    from pypdf.generic import Destination

    def flat(items: list[Any]) -> Iterator[tuple[str, int]]:
        for item in items:
            if isinstance(item, Destination):
                yield item.title, reader.get_destination_page_number(item) + 1
            else:
                yield from flat(item)

    outline = list(flat(reader.outline))
    titles = [title for title, _ in outline]
    assert titles[:2] == ["Contents", "Toy book"]
    assert [t for t in titles if t.startswith("Title of")] == [
        "Title of 01_first",
        "Title of 02_second",
    ]
    assert titles.count("Same name") == 2
    contents = reader.pages[1].extract_text()
    listed = re.findall(r"^(.+?)\s*(\d+)$", contents.replace("Contents\n", "", 1), re.MULTILINE)
    assert [(title, int(number)) for title, number in listed if title] == outline[1:]
    leads = [place(reader, name) for page, name in targets(reader) if page == 2]
    assert leads == [number for _, number in outline[1:]]


@pytest.mark.browser
def test_links_lead_within_the_pdf(reader: Any) -> None:
    found = [(page, name) for page, name in targets(reader) if page > 2]
    outside = [name for _, name in found if "://" in name]
    assert outside == ["https://example.org/"]
    inside = {name: place(reader, name) for _, name in found if "://" not in name}
    assert inside["chapters-01_first"] < inside["chapters-02_second--same-name"]
    assert inside["chapters-01_first"] <= inside["chapters-01_first--equation-eq-wide"]


@pytest.mark.browser
def test_pages_show_what_was_folded_and_no_controls(reader: Any) -> None:
    text = "\n".join(page.extract_text() for page in reader.pages)
    assert "INSIDE-THE-FOLD" in text
    assert "CONTROLS-OF-A-SCREEN" not in text
    assert r"\frac" not in text
    assert r"\gamma" not in text


@pytest.mark.browser
def test_nothing_is_cut_at_the_margin(printed: Any) -> None:
    import pypdfium2 as pdfium

    document = pdfium.PdfDocument(printed.root / "_build/book.pdf")
    for number in range(len(document)):
        image = document[number].render(scale=1, grayscale=True).to_numpy()
        edge = round(16 / 25.4 * 72)  # mm of a margin of 18
        assert image[:, :edge].min() == 255, f"page {number + 1}, left"
        assert image[:, -edge:].min() == 255, f"page {number + 1}, right"
    text = "".join(page.get_textpage().get_text_range() for page in document)
    whole = "".join(text.split())
    assert "longword" * 40 in whole
    assert all(f"valueofcell{n}" in whole for n in range(14))


@pytest.mark.browser
def test_a_pdf_of_this_site_is_not_made_again(printed: Any) -> None:
    pdf = printed.root / "_build/book.pdf"
    before = pdf.stat().st_mtime_ns, pdf.stat().st_ino
    _, err = printed.ictd("pdf")
    assert "the PDF is up to date" in err
    assert (pdf.stat().st_mtime_ns, pdf.stat().st_ino) == before
    assert printed.page("index").count("ictd-book.pdf") == 1


@pytest.mark.browser
def test_a_pdf_that_fails_leaves_the_last_one(printed: Any, tmp_path: Path) -> None:
    toy = printed.copy(tmp_path)
    pdf = toy.root / "_build/book.pdf"
    before = pdf.read_bytes()
    page = toy.root / "_build/html/chapters/01_first.html"
    page.write_text(page.read_text().replace("</article>", '<a href="#gone">x</a></article>'))
    style = toy.library / "ictd/book/pdf/print.css"
    style.write_text(style.read_text() + "/* changed */")
    _, err = toy.ictd("pdf", status=1)
    assert "lead nowhere: chapters/01_first: #gone" in err
    assert pdf.read_bytes() == before


# --- The links on the landing page.


@pytest.fixture
def small(tmp_path: Path) -> Project:
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters/index.md").write_text("# Title\n")
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: chapters/index\n")
    (tmp_path / "_build/html/chapters").mkdir(parents=True)
    (tmp_path / "_build/html/chapters/index.html").write_text(f"<p>a</p>{PLACE}")
    (tmp_path / "_build/book.pdf").write_bytes(b"x" * 1_230_000)
    return Project(tmp_path)


def landing(project: Project) -> str:
    return (project.root / "_build/html/chapters/index.html").read_text()


def test_zip_and_pdf_are_offered_beside_each_other(small: Project) -> None:
    pdf = small.root / "_build/book.pdf"
    offline.offer_pdf(small, pdf, 7)
    assert "The whole book as a PDF</a>, 1.2 MB, 7 pages" in landing(small)
    offline.pack(small)
    offline.offer_pdf(small, pdf, 8)
    offline.pack(small)
    assert landing(small).count(".pdf") == landing(small).count(".zip") == 1
    assert "8 pages" in landing(small)
    assert (small.root / "_build/html/ictd-book.pdf").read_bytes() == pdf.read_bytes()


def test_the_zip_holds_no_pdf_and_no_link_to_it(small: Project) -> None:
    import zipfile

    offline.offer_pdf(small, small.root / "_build/book.pdf", 7)
    with zipfile.ZipFile(offline.pack(small)) as archive:
        assert archive.namelist() == ["ictd-book/chapters/index.html"]
        assert archive.read("ictd-book/chapters/index.html").decode() == f"<p>a</p>{PLACE}"


def test_a_new_site_forgets_the_pdf(small: Project) -> None:
    offline.forget(small)
    assert not (small.root / "_build/book.pdf").exists()


def test_without_a_site_it_says_what_to_do(small: Project) -> None:
    with pytest.raises(BookError, match="run: ictd build"):
        builder.built_site(small)
