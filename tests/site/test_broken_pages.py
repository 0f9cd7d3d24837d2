"""The checks of the site see what is wrong: each is tried on a page broken on purpose."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from browser_checks import ACCEPTED, axe_source
from site_checks import alt_problems, file_problems, name_of, pages

PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


def maths(tex: str) -> str:
    return rf'<span class="math notranslate nohighlight">\({tex}\)</span>'


# name: (what is put at the end of the article, what must be reported)
BROKEN_FILES = {
    "dead link": ('<a href="nowhere.html">x</a>', "link to a missing file: nowhere.html"),
    "dead anchor": ('<a href="#nowhere">x</a>', "link to a missing anchor: #nowhere"),
    "dead anchor of another page": (
        '<a href="index.html#nowhere">x</a>',
        "link to a missing anchor: index.html#nowhere",
    ),
    "redirect to nowhere": (
        '<meta http-equiv="Refresh" content="0; url=nowhere.html">',
        "link to a missing file: nowhere.html",
    ),
    "link out of the site": ('<a href="../../../etc.html">x</a>', "link leaves the site"),
    "script of another host": (
        '<script src="https://a.invalid/x.js"></script>',
        "loads from another host",
    ),
    "style of another host": (
        '<link rel="stylesheet" href="//a.invalid/x.css">',
        "loads from another host",
    ),
    "image of another host": (
        '<img src="https://a.invalid/x.png" alt="a">',
        "loads from another host",
    ),
    "font of another host": (
        '<link rel="preload" as="font" href="https://a.invalid/x.woff2">',
        "loads from another host",
    ),
    "missing script": ('<script src="missing.js"></script>', "loads a missing file: missing.js"),
    "no alt text": (f'<img src="{PIXEL}">', "image without alt text"),
    "empty alt text": (f'<img src="{PIXEL}" alt=" ">', "image without alt text"),
    "alt text that says nothing": (
        f'<img src="{PIXEL}" alt="A figure.">',
        "alt text of fewer than",
    ),
    "file name as alt text": (
        f'<img src="{PIXEL}" alt="../_images/ab12.png">',
        "alt text is a file's name",
    ),
    "image twice": (
        f'<img src="{PIXEL}" alt="a"><img src="{PIXEL}" alt="a">',
        "image drawn 2 times",
    ),
    "colon fence": ("<p>:::{note}</p>", "a directive shows raw in the text"),
    "back-tick fence": ("<p>```{math}</p>", "a directive shows raw in the text"),
    "role": ("<p>see {eq}`one`</p>", "a directive shows raw in the text"),
    "glue": ("<p>{glue:text}`x`</p>", "a directive shows raw in the text"),
    "option": ("<p>:label: one</p>", "a directive shows raw in the text"),
    "label": ("<p>(sec-one)=</p>", "a label shows raw in the text"),
    "substitution": ("<p>{{ x }}</p>", "a substitution shows raw in the text"),
    "TeX command": (r"<p>the \gamma of</p>", "TeX shows raw in the text"),
    "TeX in dollars": ("<p>the $x_1$ of</p>", "TeX shows raw in the text"),
    "TeX letter in dollars": ("<p>the $x$ of</p>", "TeX shows raw in the text"),
    "repr": ("<p>&lt;foo.Bar object at 0x7f00&gt;</p>", "an object's repr shows raw in the text"),
    "traceback": (
        '<div class="output traceback">ZeroDivisionError</div>',
        "a cell shows a traceback",
    ),
    "stderr": ('<div class="output stderr">UserWarning</div>', "a cell writes to stderr"),
    "figure without a word": (
        f'<div class="cell_output"><img src="{PIXEL}" alt="a"></div>',
        "figure neither live nor stored",
    ),
    "stored figure said to be live": (
        f'<div class="admonition stored"><img src="{PIXEL}" alt="a"></div>'
        '<div class="figure-files">Live figure</div>',
        "stored figure said to be live",
    ),
    "live figure said to be stored": (
        f'<div class="cell_output"><img src="{PIXEL}" alt="a"></div>'
        '<div class="figure-files">Stored figure</div>',
        "live figure said to be stored",
    ),
    "alt text of a stored figure": (
        f'<div class="admonition stored"><img src="{PIXEL}" alt="A figure."></div>',
        "alt text of a stored figure does not say so: 'A figure.'",
    ),
    "stored block without a title": (
        '<div class="admonition dropdown stored"><p class="admonition-title">Note</p></div>',
        "stored block does not say so in its title: 'Note'",
    ),
    "stored block that is not folded": (
        '<div class="admonition stored"><p class="admonition-title">At full scale</p></div>',
        "stored block is not folded: 'At full scale'",
    ),
    "progress bar": (
        '<div class="cell_output"> 10%|#  | 1/9\n 20%|## | 2/9</div>',
        "a progress bar shows 2 times",
    ),
}

# As above; all of them are put into one page, and each has to be reported beside the others.
BROKEN_IN_BROWSER = {
    "maths error": (maths(r"\frac{1}"), "maths error: Missing argument"),
    "unknown TeX command": (maths(r"\ictdnone{x}"), "unknown TeX command: \\ictdnone"),
    "maths left alone": (
        '<span class="math tex2jax_ignore mathjax_ignore">alone</span>',
        "maths not rendered: alone",
    ),
    "console error": ("<script>console.error('bad')</script>", "console error: bad"),
    "console warning": ("<script>console.warn('poor')</script>", "console warning: poor"),
    "script error": ("<script>null.x</script>", "script error"),
    "fetch from another host": (
        "<script>fetch('https://a.invalid/').catch(() => 0)</script>",
        "asks another host for a fetch: https://a.invalid/",
    ),
    "script of another host": (
        '<script src="https://a.invalid/x.js"></script>',
        "asks another host for a script: https://a.invalid/x.js",
    ),
    "style of another host": (
        '<link rel="stylesheet" href="https://a.invalid/x.css">',
        "asks another host for a stylesheet: https://a.invalid/x.css",
    ),
    "font of another host": (
        "<style>@font-face { font-family: far; src: url(https://a.invalid/x.woff2) }</style>"
        '<p style="font-family: far">x</p>',
        "asks another host for a font: https://a.invalid/x.woff2",
    ),
    "image of another host": (
        '<img src="https://a.invalid/x.png" alt="a">',
        "asks another host for a image: https://a.invalid/x.png",
    ),
    "background of another host": (
        '<p style="background: url(https://a.invalid/y.png)">x</p>',
        "asks another host for a image: https://a.invalid/y.png",
    ),
    "missing image": ('<img src="missing.png" alt="a">', "image did not load: missing.png"),
    "image out of shape": (
        f'<img src="{PIXEL}" alt="a" style="width: 200px; height: 90px !important">',
        "image out of shape",
    ),
    "image out of its box": (
        f'<div class="admonition"><img src="{PIXEL}" alt="a" style="width: 120%; max-width: none"></div>',
        "image reaches out of its box",
    ),
    "missing style": ('<link rel="stylesheet" href="missing.css">', "missing.css (net::ERR"),
    "wide block": ('<div style="width: 3000px; height: 1px">x</div>', "scrolls sideways: "),
    "wide block in a fold": (
        '<details><summary>x</summary><div style="width: 4000px">x</div></details>',
        "scrolls sideways: 4",
    ),
    "stop for the keyboard": (
        maths("s s").replace("<span", '<div tabindex="0"').replace("</span", "</div"),
        "stop for the keyboard without need: 'ss'",
    ),
    "cut off": (
        '<div style="overflow: hidden"><p style="width: 900px">too wide</p></div>',
        "cut off on the right: 'too wide'",
    ),
    "formula cut off": (
        maths(r"wide \hspace{50em} wide").replace("<span", '<span style="overflow: hidden"'),
        "cut off on the right: 'widewide'",
    ),
}

# Each on a page of its own, since it spoils the whole page.
SPOILT_IN_BROWSER = {
    "no dark mode": (
        "<script>onload = () => { document.documentElement.dataset.theme = 'light' }</script>",
        "asked for dark mode, got light",
    ),
    "no mode at all": (
        "<script>onload = () => { delete document.documentElement.dataset.theme }</script>",
        "asked for dark mode, got None",
    ),
    "white in dark mode": (
        "<style>body { background: white !important }</style>",
        "dark mode has a background",
    ),
}

BROKEN_FOR_AXE = {
    "contrast": ('<p style="color: #888; background: #777">pale</p>', "serious", "color-contrast"),
    "image": (f'<img src="{PIXEL}">', "critical", "image-alt"),
    "button": ("<button></button>", "critical", "button-name"),
    "link": ('<a href="#"></a>', "serious", "link-name"),
    "field": ("<input>", "critical", "label"),
    "list": ("<ul><p>x</p></ul>", "serious", "list"),
    "box that scrolls": (
        '<div style="width: 90px; overflow: auto"><p style="white-space: nowrap">wide, wide text</p></div>',
        "serious",
        "scrollable-region-focusable",
    ),
    "folded": (
        '<details><summary>x</summary><p style="color: #876; background: #765">pale</p></details>',
        "serious",
        'color-contrast: <p style="color: #876',
    ),
    # The rule of an exception, on an element that it is not made for.
    "name of a button": (
        '<button class="mine" aria-label="this">that</button>',
        "serious",
        'label-content-name-mismatch: <button class="mine',
    ),
}

BROKEN_ON_PAPER = {
    "block over the margin": (
        '<div class="over" style="width: 900px">x</div>',
        "cut on paper: div.over",
    ),
    "block before the margin": (
        '<div class="ahead" style="margin-left: -400px; width: 90px">x</div>',
        "cut on paper: div.ahead",
    ),
    "box that scrolls": (
        '<div class="box" style="overflow: auto"><p style="width: 900px">x</p></div>',
        "cut on paper: div.box",
    ),
    "box of a height": (
        '<div class="low" style="overflow: auto; height: 20px"><p style="height: 90px">x</p></div>',
        "cut on paper: div.low",
    ),
    "line of code": (
        '<pre style="white-space: pre !important">' + "x" * 300 + "</pre>",
        'cut on paper: pre "xxx',
    ),
    "formula": (
        maths(r"\hspace{70em} x").replace("span", "div"),
        "cut on paper: mjx-math",
    ),
    "line of text": ('<p style="white-space: nowrap">' + "word " * 90 + "</p>", 'paper: p "word'),
    "button": ('<button class="odd">x</button>', "printed though it is no text: button.odd"),
    "sidebar": (
        "<style>@media print { .bd-sidebar-primary { display: flex !important;"
        " visibility: visible !important } }</style>",
        "printed though it is no text: div.bd-sidebar-primary",
    ),
}


@pytest.fixture(scope="module")
def copy(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shutil.copytree(
        site, tmp_path_factory.mktemp("broken") / "html", copy_function=shutil.copyfile
    )


def with_maths(site: Path) -> Path:
    """The shortest page that has formulas."""
    having = [p for p in pages(site) if 'class="math' in p.read_text(encoding="utf-8")]
    return min((p for p in having if p.name != "broken.html"), key=lambda p: p.stat().st_size)


def broken(site: Path, harm: str) -> Path:
    """A page of the site with `harm` at the end of its article."""
    good = with_maths(site)
    page = good.with_name("broken.html")
    text = good.read_text(encoding="utf-8")
    assert "</article>" in text
    page.write_text(text.replace("</article>", f"{harm}</article>", 1), encoding="utf-8")
    return page


def without(site: Path, good: Path, asset: str) -> Path:
    """A page of the site that lacks one of the files it loads."""
    text = good.read_text(encoding="utf-8")
    assert asset in text
    page = good.with_name("broken.html")
    page.write_text(text.replace(asset, asset.replace("/", "/missing-")), encoding="utf-8")
    return page


@pytest.fixture(scope="module")
def before(copy: Path) -> list[str]:
    """What is reported of the page without any harm; nothing, if the book is well."""
    return file_problems(with_maths(copy), copy)


@pytest.mark.parametrize("kind", BROKEN_FILES)
def test_a_broken_file_is_seen(copy: Path, before: list[str], kind: str) -> None:
    harm, report = BROKEN_FILES[kind]
    new = [problem for problem in file_problems(broken(copy, harm), copy) if problem not in before]
    assert any(report in problem for problem in new), new


def test_tex_in_the_title_is_seen(copy: Path) -> None:
    page = broken(copy, "")
    page.write_text(
        page.read_text(encoding="utf-8").replace("<title>", r"<title>\(\beta\)", 1),
        encoding="utf-8",
    )
    assert any("TeX shows raw in the title" in problem for problem in file_problems(page, copy))


def test_tex_in_the_sidebar_is_seen(copy: Path) -> None:
    page = broken(copy, "")
    text = page.read_text(encoding="utf-8")
    head, mark, tail = text.partition("bd-sidebar-primary")
    page.write_text(head + mark + tail.replace("</a>", r" \(\beta\)</a>", 1), encoding="utf-8")
    assert any("TeX shows raw in the sidebar" in problem for problem in file_problems(page, copy))


def test_two_figures_with_one_alt_text_are_seen(copy: Path) -> None:
    """Over the whole book: the two may be on different pages, and differ in case and spaces."""
    shown = [page for page in pages(copy) if page.name != "broken.html"]
    image = next(
        tag
        for page in shown
        for tag in re.findall(r"<img [^>]*_images/[^>]*>", page.read_text(encoding="utf-8"))
    )
    alt = re.search(r'alt="([^"]+)"', image)[1]
    again = f'<img src="{PIXEL}" alt="{alt.upper().replace(" ", "  ", 1)}">'
    assert alt_problems(shown) == []
    (problem,) = alt_problems([*shown, broken(copy, again)])
    assert problem.startswith("2 images with one alt text")
    # One figure, linked to from two pages, is described in one way.
    page = broken(copy, image)
    assert alt_problems([*shown, page]) == []


def test_a_lost_output_is_seen(copy: Path) -> None:
    chapter = next(
        p
        for p in pages(copy)
        if (copy / "_sources" / p.relative_to(copy)).with_suffix(".ipynb").is_file()
    )
    source = (copy / "_sources" / chapter.relative_to(copy)).with_suffix(".ipynb")
    text = source.read_text(encoding="utf-8")
    shown = chapter.read_text(encoding="utf-8").count("cell_output")
    cell = {
        "cell_type": "code",
        "metadata": {},
        "outputs": [{"output_type": "stream", "name": "stdout", "text": "x"}],
    }
    source.write_text(json.dumps({"cells": [cell] * (shown + 1)}), encoding="utf-8")
    problems = file_problems(chapter, copy)
    source.write_text(text, encoding="utf-8")
    assert any("cells of the executed notebook have outputs" in problem for problem in problems), (
        problems
    )


def together(harms: dict[str, tuple[str, ...]]) -> str:
    return "\n".join(harm for harm, *_ in harms.values())


@pytest.fixture(scope="module")
def seen(reader, copy: Path) -> list[str]:
    page = broken(copy, together(BROKEN_IN_BROWSER))
    return reader(mode="dark", widths=(360,)).visit(page.as_uri()).problems


@pytest.mark.browser
@pytest.mark.parametrize("kind", BROKEN_IN_BROWSER)
def test_a_broken_page_is_seen_in_the_browser(seen: list[str], kind: str) -> None:
    report = BROKEN_IN_BROWSER[kind][-1]
    assert any(report in problem for problem in seen), seen


@pytest.mark.browser
@pytest.mark.parametrize("kind", SPOILT_IN_BROWSER)
def test_a_spoilt_page_is_seen_in_the_browser(reader, copy: Path, kind: str) -> None:
    harm, report = SPOILT_IN_BROWSER[kind]
    problems = reader(mode="dark", widths=(360,)).visit(broken(copy, harm).as_uri()).problems
    assert any(report in problem for problem in problems), problems


@pytest.mark.browser
def test_maths_is_missed_when_mathjax_is(reader, copy: Path) -> None:
    page = without(copy, broken(copy, ""), "mathjax/tex-chtml-full.js")
    problems = reader().visit(page.as_uri()).problems
    assert any("request failed" in problem for problem in problems), problems
    assert any("maths not rendered" in problem for problem in problems), problems


@pytest.mark.browser
def test_a_missing_file_is_seen_over_http(reader, server: str) -> None:
    problems = reader(server=server).visit(f"{server}/nowhere.html").problems
    assert any("answer 404" in problem for problem in problems), problems


# ------------------------------------------------------------------------------------------------ axe


@pytest.fixture(scope="module")
def violations(reader, copy: Path) -> list[str]:
    page = broken(copy, together(BROKEN_FOR_AXE))
    return reader(axe=axe_source()).visit(page.as_uri()).axe


@pytest.mark.browser
@pytest.mark.axe
@pytest.mark.parametrize("kind", BROKEN_FOR_AXE)
def test_a_violation_is_seen(violations: list[str], kind: str) -> None:
    _, impact, rule = BROKEN_FOR_AXE[kind]
    found = [
        problem for problem in violations if problem.startswith(f"{impact} violation of {rule}")
    ]
    assert found, violations


@pytest.mark.browser
@pytest.mark.axe
def test_an_exception_that_nothing_needs_is_seen(reader, copy: Path) -> None:
    """Without the button that it is for, an entry is not among those that were met."""
    page = broken(copy, "<script>document.querySelector('.search-button-field').remove()</script>")
    met = reader(axe=axe_source()).visit(page.as_uri()).accepted
    missed = [ACCEPTED[place].selector for place in {*range(len(ACCEPTED))} - met]
    assert missed == ["button.search-button-field"]


WIDE = maths(r"\text{wide}\hspace{70em}\text{formula}").replace("span", "div")
FOLDED = f"<details><summary>fold</summary>{WIDE}</details>"
SIGNATURE = "<dl><dt>function(<dl><dd>first,</dd><dd>second,</dd></dl>)</dt><dd>Does it.</dd></dl>"


@pytest.mark.browser
@pytest.mark.axe
@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("broken.html", "scrollable-region-focusable: <mjx-container"),
        ("broken.html", "violation of definition-list"),
        ("references.html", "aria-required-children"),
    ],
)
def test_the_script_of_the_book_is_needed(reader, copy: Path, name: str, rule: str) -> None:
    broken(copy, FOLDED + SIGNATURE)
    page = copy / "chapters" / name
    axe = reader(widths=(360,), axe=axe_source())
    assert axe.visit(page.as_uri()).axe == []
    found = axe.visit(without(copy, page, "_static/book.js").as_uri()).axe
    assert any(rule in problem for problem in found), found


# ---------------------------------------------------------------------------------------------- paper


@pytest.fixture(scope="module")
def printed(reader, copy: Path) -> list[str]:
    return reader(paper=True).visit(broken(copy, together(BROKEN_ON_PAPER)).as_uri()).paper


@pytest.mark.browser
@pytest.mark.parametrize("kind", BROKEN_ON_PAPER)
def test_what_is_cut_on_paper_is_seen(printed: list[str], kind: str) -> None:
    report = BROKEN_ON_PAPER[kind][-1]
    assert any(report in problem for problem in printed), printed


@pytest.mark.browser
def test_a_dark_page_on_paper_is_seen(reader, copy: Path) -> None:
    page = without(copy, broken(copy, ""), "_static/book.js")
    problems = reader(mode="dark", paper=True).visit(page.as_uri()).paper
    assert any("pale on paper" in problem for problem in problems), problems


def test_names_are_relative_to_the_site(site: Path) -> None:
    assert name_of(site / "chapters" / "x.html") == "chapters/x.html"
