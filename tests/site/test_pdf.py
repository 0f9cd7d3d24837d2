"""The PDF of the book, made by `make pdf`, against the site and the executed chapters that it is of."""

from __future__ import annotations

import functools
import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup, Tag
from site_checks import PROJECT

from ictd.book import offline
from ictd.book.pdf import front
from ictd.book.project import Project

pytestmark = pytest.mark.pdf

PDF = PROJECT / "_build" / "book.pdf"
PAGES = [page.relative_to(PROJECT).with_suffix("") for page in Project(PROJECT).pages()]
# In points: A4, and what is left white at the left and right, of margins of 18 mm.
A4 = (595, 842)
HYPHENS = "-\x02\ufffe"
WHITE = round(16 / 25.4 * 72)


class Book:
    """What the PDF says of itself, read once."""

    def __init__(self) -> None:
        from pypdf import PdfReader
        from pypdfium2 import PdfDocument

        self.reader: Any = PdfReader(PDF)
        self.document: Any = PdfDocument(PDF)
        places = self.reader.named_destinations
        self.places = {
            name.removeprefix("/"): self.reader.get_destination_page_number(place) + 1
            for name, place in places.items()
        }
        self.texts = [page.get_textpage().get_text_range() for page in self.document]
        self.outline = list(self._flat(self.reader.outline, 1))
        titles = [(title, page) for level, title, page in self.outline if level == 1]
        # The pages of each page of the site, from its title to that of the next.
        self.first = dict(zip(PAGES, [page for _, page in titles[1:]], strict=True))
        ends = [*list(self.first.values())[1:], len(self.texts) + 1]
        self.ranges = {
            page: range(start, end)
            for (page, start), end in zip(self.first.items(), ends, strict=True)
        }

    def _flat(self, items: list[Any], level: int) -> Iterator[tuple[int, str, int]]:
        for item in items:
            if isinstance(item, list):
                yield from self._flat(item, level + 1)
            else:
                yield level, item.title, self.reader.get_destination_page_number(item) + 1

    def text(self, page: Path) -> str:
        """The text of a page of the site, without heads, numbers and spaces: lines break anywhere."""
        texts = []
        for number in self.ranges[page]:
            head, foot, *lines = self.texts[number - 1].splitlines()
            assert foot.strip() == str(number), number
            assert bare(head) in bare(self.texts[self.first[page] - 1]), number
            texts += lines
        return bare("".join(texts))

    def links(self) -> Iterator[tuple[int, str]]:
        """Each link: the page, from 1, and an address or the name of a place."""
        for number, page in enumerate(self.reader.pages, 1):
            for note in page.get("/Annots") or []:
                found = note.get_object()
                if found["/Subtype"] == "/Link":
                    action = (found.get("/A") or {}).get("/URI")
                    yield number, str(action or found.get("/Dest")).removeprefix("/")


@pytest.fixture(scope="module")
def book() -> Book:
    if not PDF.is_file():
        pytest.fail(f"there is no {PDF}: run `make pdf` first", pytrace=False)
    return Book()


def bare(text: str) -> str:
    """Text without what a PDF may have elsewhere: spaces, accents, hyphens at the end of lines."""
    parts = unicodedata.normalize("NFKD", "".join(text.split()))
    return "".join(
        sign for sign in parts if not unicodedata.combining(sign) and sign not in HYPHENS
    )


def accented(text: str) -> bool:
    """Whether letters have accents: they may come from another font, and what is beside them then twice."""
    return any(map(unicodedata.combining, unicodedata.normalize("NFD", text)))


def is_in(line: str, text: str) -> bool:
    """Whether a line is there as a whole, or in two parts: on a page and at the start of the next."""
    parts = ((line[:place], line[place:]) for place in range(1, len(line)))
    return line in text or any(first in text and rest in text for first, rest in parts)


@functools.cache
def article(page: Path, *, formulas: bool = False) -> Tag:
    """The text of a page of the site, without what is not for paper, and without its formulas."""
    text = (PROJECT / "_build/html" / f"{page}.html").read_text(encoding="utf-8")
    found = BeautifulSoup(text, "html.parser").article
    assert found is not None
    left_out = ".headerlink, .figure-files, .offline-copy, .explorer-live, .label, script, button"
    for element in found.select(left_out if formulas else f"{left_out}, .math"):
        element.decompose()
    return found


def picture_boxes(page: Any) -> list[tuple[float, float, float, float]]:
    """The boxes of the pictures of a page: left, bottom, right, top, in points."""
    from pypdfium2.raw import FPDF_PAGEOBJ_IMAGE

    return [found.get_bounds() for found in page.get_objects(filter=[FPDF_PAGEOBJ_IMAGE])]


def test_every_page_has_its_heading_in_the_outline(book: Book) -> None:
    for page, start in book.first.items():
        headings = [bare(h.get_text()) for h in article(page).select("h1, h2, h3")]
        there = [bare(t) for _, t, at in book.outline if at in book.ranges[page]]
        assert there == headings, page
        assert bare(there[0]) in bare(book.texts[start - 1])
    assert book.outline[0][1:] == ("Contents", 2)


def test_contents_lead_to_and_name_the_pages_of_the_headings(book: Book) -> None:
    wanted = [(t, at) for level, t, at in book.outline[1:] if level <= front.DEPTH]
    ends = book.first[PAGES[0]]
    lines = "\n".join(page.extract_text() for page in book.reader.pages[1 : ends - 1])
    assert bare("".join(f"{t}{at}" for t, at in wanted)) in bare(
        re.sub(r"^(Contents|Chapters|Reference|\d+)$", "", lines, flags=re.MULTILINE)
    )
    leads = [book.places[name] for number, name in book.links() if 1 < number < ends]
    assert leads == [at for _, at in wanted]


def test_pages_are_numbered_but_the_first(book: Book) -> None:
    assert len(book.texts) > 60
    for number, text in enumerate(book.texts, 1):
        numbers = re.findall(r"^\s*(\d+)\s*$", text, re.MULTILINE)
        assert (str(number) in numbers) == (number > 1), f"page {number}"


def test_metadata_and_title_page(book: Book) -> None:
    assert book.reader.metadata.title == "In-context TD learning by softmax transformers"
    assert book.reader.metadata.author == "the ictd authors"
    assert book.reader.trailer["/Root"]["/Lang"] == "en"
    first = bare(book.texts[0])
    for part in ("the ictd authors", "Beyond Linear Attention", "arXiv:2605.07333", "Zixuan Xie"):
        assert bare(part) in first
    for part in (r"Commit\w{10}", r"CPython3\.", r"ictd\d", r"numpy\d", r"torch\d", "MIT", "CCBY"):
        assert re.search(part, first), part


def test_the_site_offers_it(book: Book, site: Path) -> None:
    landing = (site / f"{PAGES[0]}.html").read_text(encoding="utf-8")
    name = f"{offline.NAME}.pdf"
    (link,) = re.findall(rf'<a href="\.\./{name}" download>[^<]*</a>[^<]*', landing)
    assert f" {PDF.stat().st_size / 1e6:.1f} MB, {len(book.texts)} pages" in link
    assert (site / name).read_bytes() == PDF.read_bytes()


def test_every_figure_is_there(book: Book) -> None:
    """Pictures of the PDF, page by page, against those that the cells and texts of the book show."""
    for page, numbers in book.ranges.items():
        wanted = len(article(page).select("img"))
        notebook = PROJECT / "_build/executed" / f"{page}.ipynb"
        if notebook.is_file():
            cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
            live = sum(
                "image/png" in out.get("data", {}) for c in cells for out in c.get("outputs", [])
            )
            assert 0 < live <= wanted, page
        found = [box for number in numbers for box in picture_boxes(book.document[number - 1])]
        assert len(found) == wanted, page
        assert all(right - left > 100 and top - low > 50 for left, low, right, top in found), page


def test_no_source_of_a_formula_shows(book: Book) -> None:
    """Where the site shows code, the PDF may show the same; elsewhere there is no TeX."""
    tex = re.compile(r"\\(?:frac|sum|hat|gamma|begin|mathbb|top)\b|\\\(|\\\[|\$\$")
    for page in PAGES:
        code = bare("".join(c.get_text() for c in article(page).select("pre, code")))
        for found in set(tex.findall(book.text(page))):
            assert book.text(page).count(found) <= code.count(found), (page, found)


def test_nothing_of_a_page_is_missing(book: Book) -> None:
    """Paragraphs without formulas, cells of tables, terms and lines of code, folded ones included."""
    for page in PAGES:
        text, missing = book.text(page), []
        for element in article(page, formulas=True).select("p, td, dt, pre"):
            if element.select_one(".math, p, dl") is None:
                shown = element.get_text()
                lines = shown.splitlines() if element.name == "pre" else [shown]
                missing += [
                    line for line in lines if not (accented(line) or is_in(bare(line), text))
                ]
        assert missing == [], page


def test_every_solution_follows_its_exercise(book: Book) -> None:
    for page in PAGES:
        for solution in article(page).select(".solution"):
            title = bare(solution.select_one(".admonition-title").get_text())
            assert title.startswith("SolutiontoExercise")
            assert title in book.text(page)
    text = "".join(book.texts)
    assert "Click to show" not in text
    assert "Click to hide" not in text


def test_no_title_stands_alone_at_the_foot_of_a_page(book: Book) -> None:
    """The lowest line of a page, above its number, is no title."""
    foot = 18 / 25.4 * 72
    for page, numbers in book.ranges.items():
        titles = {bare(t.get_text()) for t in article(page).select("h2, h3, h4, .admonition-title")}
        for number in numbers:
            text = book.document[number - 1].get_textpage()
            boxes = [text.get_rect(index) for index in range(text.count_rects())]
            boxes = [box for box in boxes if box[1] > foot]
            if boxes:
                low, high = min((box[1], box[3]) for box in boxes)
                line = text.get_text_bounded(0, low - 1, A4[0], high + 1)
                pictures = [box[1] for box in picture_boxes(book.document[number - 1])]
                assert bare(line) not in titles or min(pictures, default=low) < low, number


def test_links_lead_into_the_pdf_or_to_the_web(book: Book) -> None:
    wrong = [
        (number, name)
        for number, name in book.links()
        if not (name.startswith(("https://", "http://", "mailto:")) or name in book.places)
    ]
    assert wrong == []


def test_links_between_pages_lead_to_their_pages(book: Book) -> None:
    anchors = {str(page).replace("/", "-"): page for page in PAGES}
    led = set()
    for number, name in book.links():
        if name in book.places:
            page = anchors[name.split("--")[0]]
            assert book.places[name] in book.ranges[page], (number, name)
            led.add(page)
    assert led == set(PAGES)


def test_nothing_is_cut_at_the_margins(book: Book) -> None:
    """The bands at the left and right of every page are white, on paper that is A4."""
    dark, sizes = [], set()
    for number, page in enumerate(book.document, 1):
        sizes.add(tuple(map(round, page.get_size())))
        image = page.render(scale=1, grayscale=True).to_numpy()
        if min(image[:, :WHITE].min(), image[:, -WHITE:].min()) < 255:
            dark.append(number)
    assert book.reader.metadata["/TooWide"] == ""
    assert sizes == {A4}
    assert dark == []
