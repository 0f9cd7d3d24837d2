"""What must hold of every page of the built site, told from its files; `browser_checks` is for the rest.

Each check returns a list of problems, empty for a good page. `tests/site` runs them over the book, and over
pages broken on purpose.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

PROJECT = Path(__file__).resolve().parent.parent
# Another folder can be looked at, for example what a plain `jupyter-book build` made.
SITE = Path(os.environ.get("ICTD_SITE", PROJECT / "_build" / "html"))
NO_SITE = f"there is no built site in {SITE}: run `make book` first"

# Marks that a renderer should have consumed. Text in code, maths and scripts is not looked at.
RAW_MARKUP = {
    "a directive": re.compile(r":::|```|\{[a-z]+[a-z:_-]*\}\s*`|^\s*:[a-z-]+: ", re.MULTILINE),
    "a substitution": re.compile(r"\{\{.*?\}\}"),
    "TeX": re.compile(r"\\[a-zA-Z]{2,}|\\[()\[\]]|\$[^$\n]*[\\^_{][^$\n]*\$|\$\$|\$[A-Za-z]\$"),
    "a label": re.compile(r"^\([a-z0-9-]+\)=", re.MULTILINE),
    "an object's repr": re.compile(r"<[\w.]+ (?:object )?at 0x[0-9a-f]+>"),
}
REFRESH = re.compile("^refresh$", re.IGNORECASE)
NOT_TEXT = "script, style, pre, code, .math, mjx-container, noscript, template"


def pages(site: Path = SITE) -> list[Path]:
    """The site's pages, without the theme's own parts."""
    found = sorted(site.rglob("*.html"))
    return [
        p
        for p in found
        if not {"_static", "_sources", "_downloads"} & set(p.relative_to(site).parts)
    ]


def is_redirect(page: Path) -> bool:
    """Whether a page only leads to another one."""
    return _soup(page).find("meta", attrs={"http-equiv": REFRESH}) is not None


def name_of(page: Path, site: Path = SITE) -> str:
    return page.relative_to(site).as_posix()


def _parse(page: Path) -> BeautifulSoup:
    return BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")


def _soup(page: Path) -> BeautifulSoup:
    """The parsed page, shared: to be read, not changed."""
    return _parsed(page, page.stat().st_mtime_ns)


@lru_cache(maxsize=16)
def _parsed(page: Path, changed: int) -> BeautifulSoup:
    return _parse(page)


def _anchors(page: Path) -> frozenset[str]:
    return _anchors_of(page, page.stat().st_mtime_ns)


@lru_cache(maxsize=128)
def _anchors_of(page: Path, changed: int) -> frozenset[str]:
    soup = _soup(page)
    named = {str(a["name"]) for a in soup.find_all("a", attrs={"name": True})}
    return frozenset(named | {str(tag["id"]) for tag in soup.find_all(id=True)})


def link_problems(page: Path, site: Path = SITE) -> list[str]:
    """Links and anchors that lead nowhere inside the site."""
    soup = _soup(page)
    targets = [str(a["href"]) for a in soup.find_all("a", href=True)]
    for meta in soup.find_all("meta", attrs={"http-equiv": REFRESH}):
        targets.append(str(meta["content"]).partition("url=")[2])
    problems = []
    for target in dict.fromkeys(targets):
        parts = urlsplit(target)
        if parts.scheme or parts.netloc or target in ("#", "#top"):
            continue
        goal = (page.parent / unquote(parts.path)).resolve() if parts.path else page.resolve()
        if site.resolve() not in [goal, *goal.parents]:
            problems.append(f"link leaves the site: {target}")
        elif not goal.is_file():
            problems.append(f"link to a missing file: {target}")
        elif (
            parts.fragment
            and goal.suffix == ".html"
            and unquote(parts.fragment) not in _anchors(goal)
        ):
            problems.append(f"link to a missing anchor: {target}")
    return problems


def asset_problems(page: Path) -> list[str]:
    """Scripts, styles, fonts and images that are on another host or missing."""
    soup = _soup(page)
    assets = [str(tag["src"]) for tag in soup.find_all(src=True)]
    loading = {
        "stylesheet",
        "icon",
        "preload",
        "modulepreload",
        "preconnect",
        "dns-prefetch",
        "manifest",
    }
    for link in soup.find_all("link", href=True):
        if loading & set(link.get("rel") or []):
            assets.append(str(link["href"]))
    problems = []
    for asset in dict.fromkeys(assets):
        parts = urlsplit(asset)
        if parts.scheme == "data":
            continue
        if parts.scheme or parts.netloc:
            problems.append(f"loads from another host: {asset}")
        elif not (page.parent / unquote(parts.path)).is_file():
            problems.append(f"loads a missing file: {asset}")
    return problems


# What is plotted and what is seen cannot be said in fewer words.
ALT_WORDS = 12


def _images(page: Path) -> list[Tag]:
    """The images of the page's text."""
    return [
        img for img in _soup(page).select("article img") if "logo" not in (img.get("class") or [])
    ]


def _alt(image: Tag) -> str:
    return " ".join(str(image.get("alt") or "").split())


def image_problems(page: Path) -> list[str]:
    """Images without alternative text, or with one that says nothing, and images drawn twice."""
    images = _images(page)
    problems = [f"image without alt text: {img['src']}" for img in images if not _alt(img)]
    problems += [
        f"alt text of fewer than {ALT_WORDS} words: {_alt(img)!r}"
        for img in images
        if 0 < len(_alt(img).split()) < ALT_WORDS
    ]
    names = [str(img["src"]) for img in images]
    # A cell that shows a figure without saying what is seen gets its file's name as alt text.
    problems += [
        f"alt text is a file's name: {img['src']}"
        for img in images
        if re.search(r"\.(png|svg|jpe?g)$|^_images/", _alt(img))
    ]
    problems += [f"image drawn {n} times: {src}" for src, n in Counter(names).items() if n > 1]
    return problems


def stored_problems(page: Path) -> list[str]:
    """Figures that are not said to be live or stored, and stored results that look like live ones."""
    soup = _soup(page)
    problems = []
    for box in soup.select(".admonition.stored"):
        title = _words(box.select_one(".admonition-title"))
        if not title.startswith("At full scale"):
            problems.append(f"stored block does not say so in its title: {title!r}")
        if "dropdown" not in box["class"]:
            problems.append(f"stored block is not folded: {title!r}")
    for img in soup.select("article :is(.cell_output, .admonition.stored) img"):
        box, cell = img.find_parent(class_="stored"), img.find_parent(class_="tag_stored")
        said = _label(img)
        if said not in ("Live", "Stored"):
            problems.append(f"figure neither live nor stored: {img['src']}")
        elif (said == "Stored") != bool(box or cell):
            problems.append(
                f"stored figure said to be live: {img['src']}"
                if said == "Live"
                else f"live figure said to be stored: {img['src']}"
            )
        if box and not _alt(img).endswith("at full scale, stored"):
            problems.append(f"alt text of a stored figure does not say so: {_alt(img)!r}")
    return problems


def _label(image: Tag) -> str:
    """The first word of the line below a figure, empty if another figure comes first."""
    below = image.find_next(lambda tag: tag.name == "img" or "figure-files" in tag.get("class", []))
    return _words(below).partition(" ")[0]


def _words(tag: Any) -> str:
    return " ".join(tag.get_text().split()) if tag else ""


def alt_problems(book: Iterable[Path]) -> list[str]:
    """Different images of the book with the same alternative text."""
    described = defaultdict(set)
    for page in book:
        for image in _images(page):
            described[_alt(image).casefold()].add(Path(str(image["src"])).name)
    return [
        f"{len(sources)} images with one alt text: {alt!r}"
        for alt, sources in described.items()
        if alt and len(sources) > 1
    ]


def text_problems(page: Path) -> list[str]:
    """Raw directives, raw TeX and the like in the title, the sidebar or the text."""
    soup = _parse(page)
    title = soup.title.get_text() if soup.title else ""
    parts = {"title": title}
    for tag in soup.select(NOT_TEXT):
        tag.decompose()
    for name, selector in {
        "sidebar": ".bd-sidebar-primary",
        "contents": ".bd-sidebar-secondary",
    }.items():
        parts[name] = "\n".join(tag.get_text("", strip=False) for tag in soup.select(selector))
    article = soup.select_one("article")
    parts["text"] = article.get_text("", strip=False) if article else ""
    problems = []
    for where, text in parts.items():
        for what, pattern in RAW_MARKUP.items():
            if match := pattern.search(text):
                around = text[max(0, match.start() - 30) : match.end() + 30].strip()
                problems.append(f"{what} shows raw in the {where}: {around!r}")
    if "\\" in title or "$" in title:
        problems.append(f"TeX shows raw in the title: {title.strip()!r}")
    return list(dict.fromkeys(problems))


def output_problems(page: Path, site: Path = SITE) -> list[str]:
    """Outputs of the executed notebook that the page lacks, errors, and progress bars of many lines."""
    source = site / "_sources" / page.relative_to(site).with_suffix(".ipynb")
    soup = _soup(page)
    problems = [
        f"a cell shows a traceback: {_short(tag)}" for tag in soup.select(".output.traceback")
    ]
    problems += [f"a cell writes to stderr: {_short(tag)}" for tag in soup.select(".output.stderr")]
    for cell in soup.select(".cell_output"):
        frames = re.findall(r"\d+%\|.*", cell.get_text())
        if len(frames) > 1:
            problems.append(f"a progress bar shows {len(frames)} times in one cell: {frames[0]}")
    if not source.is_file():
        return problems
    expected, shown = 0, len(soup.select(".cell_output"))
    for cell in json.loads(source.read_text(encoding="utf-8"))["cells"]:
        hidden = {"remove-output", "remove-cell"} & set(cell["metadata"].get("tags", []))
        if cell["cell_type"] == "code" and not hidden and any(map(_is_shown, cell["outputs"])):
            expected += 1
    if shown < expected:
        problems.append(
            f"{expected} cells of the executed notebook have outputs, the page shows {shown}"
        )
    return problems


def _short(tag: Tag) -> str:
    return repr(tag.get_text().strip()[:120])


def _is_shown(output: dict[str, Any]) -> bool:
    shown = ("text/plain", "text/html", "text/markdown", "image/png", "image/svg+xml", "text/latex")
    return output["output_type"] in ("stream", "error") or any(
        m in output.get("data", {}) for m in shown
    )


def file_problems(page: Path, site: Path = SITE) -> list[str]:
    """All that can be told without a browser."""
    return [
        *link_problems(page, site),
        *asset_problems(page),
        *image_problems(page),
        *stored_problems(page),
        *text_problems(page),
        *output_problems(page, site),
    ]
