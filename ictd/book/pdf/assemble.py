"""The pages of the built site as one HTML document for paper.

The pages are put together rather than made again by Sphinx's builder `singlehtml`, which knows neither
theorems nor proofs, and in which the names of sections that two pages share lead to the first of them.

What a reader of the site can fold is unfolded here, since paper does not fold:

- solutions stand after their exercises, under the title "Solution to Exercise …": who wants to think first
  can cover them, and a book that is read away from a screen has no other place to look them up;
- proofs, and the notes and the code that a page folds, are part of the text;
- "How this page was made" tells with which parameters and versions, without which the numbers mean little;
- "At full scale (stored)" shows what larger parameters gave, which a reader on paper cannot run.

Left out is what does nothing on paper: buttons, scripts, the signs that link to a heading, the links to
the files of figures beside the site, and what is of the classes `explorer-live`, `no-print` and
`d-print-none`.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from ..errors import BookError

if TYPE_CHECKING:
    from bs4 import Tag

_LEFT_OUT = (
    "script, style, link, button, .headerlink, .figure-files, .offline-copy, .toctree-wrapper, "
    ".explorer-live, .no-print, .d-print-none, details.hide > summary"
)
# Pieces of code in the colour of the text around them: each would be a piece of its own in the PDF.
_PLAIN = re.compile(r'<span class="(?:pre|n|p|o|w)">([^<]*)</span>')
# Classes of blocks that scripts of the site fold.
_FOLDS = {"toggle", "toggle-hidden"}


@dataclass(frozen=True)
class Heading:
    """A heading of the book: its level from 1, its text, and the name of the place that it stands at."""

    level: int
    text: str
    anchor: str


@dataclass(frozen=True)
class PaperPage:
    """A page of the site, ready to stand in the document: its anchor, its headings and its HTML."""

    anchor: str
    headings: tuple[Heading, ...]
    body: str

    @property
    def title(self) -> str:
        return self.headings[0].text


def paper_pages(site: Path, documents: Sequence[str], target: Path) -> list[PaperPage]:
    """The pages of a site with their links leading to each other.

    Args:
        site: Folder of the built site.
        documents: The pages in the order of the book, without suffix, such as `chapters/index`.
        target: Folder in which the document will stand; pictures are named from there.

    Raises:
        BookError: If a page is missing or has no title, or if a link within the book leads nowhere.
    """
    articles = {document: _article(site, document) for document in documents}
    anchors = {document: _anchor(document) for document in documents}
    names = {
        anchor + (f"--{element['id']}" if element is not None else "")
        for document, anchor in anchors.items()
        for element in [None, *articles[document].find_all(id=True)]
    }
    made, broken = [], []
    for document, article in articles.items():
        _unfold(article)
        _hold_titles(article)
        for link in article.find_all("a", href=True):
            found = _destination(str(link["href"]), document, anchors)
            if found is None or "image-reference" in str(link.get("class")):
                link.unwrap()
            elif found.startswith("#") and found[1:] not in names:
                broken.append(f"{document}: {link['href']}")
            else:
                link["href"] = found
        for image in article.find_all("img", src=True):
            if not urlsplit(str(image["src"])).scheme:
                path = site / os.path.dirname(document) / str(image["src"])
                image["src"] = Path(os.path.relpath(path, target)).as_posix()
        for element in article.find_all(id=True):
            element["id"] = f"{anchors[document]}--{element['id']}"
        made.append(
            PaperPage(anchors[document], _headings(article, document), article.decode_contents())
        )
    if broken:
        raise BookError(f"links of the site that lead nowhere: {'; '.join(sorted(set(broken)))}")
    return made


def _article(site: Path, document: str) -> Tag:
    from bs4 import BeautifulSoup

    path = site / f"{document}.html"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BookError(f"the site has no page {document}.html; run: ictd build --force") from None
    # The rest of a page, menus and scripts, need not be parsed.
    found = re.search(r"<article\b.*</article>", text, re.DOTALL)
    text = _PLAIN.sub(r"\1", _PLAIN.sub(r"\1", found[0])) if found else ""
    article = BeautifulSoup(text, "html.parser").article
    if article is None:
        raise BookError(f"{path} has no <article>")
    for element in article.select(_LEFT_OUT):
        element.decompose()
    return article


def _anchor(document: str) -> str:
    return re.sub(r"[^\w.-]", "-", document)


def _unfold(article: Tag) -> None:
    for element in article.find_all("noscript"):
        element.unwrap()
    for details in article.find_all("details"):
        details.name = "div"
        for summary in details.find_all("summary", recursive=False):
            summary.name = "p"
            summary["class"] = "admonition-title"
    for name in _FOLDS:
        for block in article.find_all(class_=name):
            names = block.get_attribute_list("class")
            block["class"] = " ".join(str(other) for other in names if other not in _FOLDS)


def _hold_titles(article: Tag) -> None:
    """Put each title into one box with the text or the picture after it.

    Chromium does not always keep to `break-after: avoid`, but it does not break such a box.
    """
    from bs4 import BeautifulSoup

    soup = BeautifulSoup("", "html.parser")
    for title in article.select("h2, h3, h4, h5, h6, .admonition-title"):
        after = title.find_next_sibling()
        if after is None:
            continue
        if after.name in ("p", "img", "figure") or (after.name == "a" and after.img is not None):
            box = soup.new_tag("div", attrs={"class": "together"})
            title.insert_before(box)
            box.extend([title, after])


def _destination(href: str, document: str, anchors: Mapping[str, str]) -> str | None:
    """Where a link of a page leads in the document, None if to a file beside the site."""
    parts = urlsplit(href)
    if parts.scheme or parts.netloc:
        return href if parts.scheme in ("http", "https", "mailto") else None
    folder = posixpath.dirname(document)
    path = posixpath.normpath(posixpath.join(folder, unquote(parts.path)))
    page = path.removesuffix(".html") if parts.path else document
    if page not in anchors:
        return None
    return f"#{anchors[page]}" + (f"--{unquote(parts.fragment)}" if parts.fragment else "")


def _headings(article: Tag, document: str) -> tuple[Heading, ...]:
    """The headings of a page; one without a name gets one, to which the contents lead."""
    found: list[Heading] = []
    for element in article.find_all(re.compile("^h[1-6]$")):
        anchor = str(element.get("id") or f"{_anchor(document)}--heading-{len(found)}")
        element["id"] = anchor
        text = " ".join(element.get_text().split())
        found.append(Heading(int(element.name[1]), text, anchor))
    if not found or found[0].level != 1:
        raise BookError(f"{document}.html does not begin with a title")
    return tuple(found)
