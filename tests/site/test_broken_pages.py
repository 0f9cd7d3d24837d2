"""The checks of the site see what is wrong: each is tried on a page broken on purpose."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from site_checks import browse, file_problems, name_of, pages

PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


def maths(tex: str) -> str:
    return rf'<span class="math notranslate nohighlight">\({tex}\)</span>'


# name: (what is put at the end of the article, what must be reported)
BROKEN_FILES = {
    "dead link": ('<a href="nowhere.html">x</a>', "link to a missing file: nowhere.html"),
    "dead anchor": ('<a href="#nowhere">x</a>', "link to a missing anchor: #nowhere"),
    "link out of the site": ('<a href="../../../etc.html">x</a>', "link leaves the site"),
    "script of another host": (
        '<script src="https://a.invalid/x.js"></script>',
        "loads from another host",
    ),
    "style of another host": (
        '<link rel="stylesheet" href="//a.invalid/x.css">',
        "loads from another host",
    ),
    "missing script": ('<script src="missing.js"></script>', "loads a missing file: missing.js"),
    "no alt text": (f'<img src="{PIXEL}">', "image without alt text"),
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
    "progress bar": (
        '<div class="cell_output"> 10%|#  | 1/9\n 20%|## | 2/9</div>',
        "a progress bar shows 2 times",
    ),
}

BROKEN_IN_BROWSER = {
    "maths error": (maths(r"\frac{1}"), "maths error: Missing argument"),
    "unknown TeX command": (maths(r"\ictdnone{x}"), "unknown TeX command: \\ictdnone"),
    "maths left alone": (
        '<span class="math tex2jax_ignore mathjax_ignore">x</span>',
        "maths not rendered",
    ),
    "console error": ("<script>console.error('broken')</script>", "console error: broken"),
    "console warning": ("<script>console.warn('broken')</script>", "console warning: broken"),
    "script error": ("<script>null.x</script>", "script error"),
    "fetch from another host": (
        "<script>fetch('https://a.invalid/').catch(() => 0)</script>",
        "asks another host",
    ),
    "missing image": ('<img src="missing.png" alt="a">', "image did not load: missing.png"),
    "image out of shape": (
        f'<img src="{PIXEL}" alt="a" style="width: 200px; height: 90px !important">',
        "image out of shape",
    ),
    "missing style": ('<link rel="stylesheet" href="missing.css">', "request failed"),
    "wide table": ('<div style="width: 3000px; height: 1px">x</div>', "scrolls sideways"),
    "no dark mode": (
        "<script>onload = () => { document.documentElement.dataset.theme = 'light' }</script>",
        "asked for dark mode",
    ),
    "white in dark mode": (
        "<style>body { background: white !important }</style>",
        "dark mode has a background",
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


@pytest.mark.browser
@pytest.mark.parametrize("kind", BROKEN_IN_BROWSER)
def test_a_broken_page_is_seen_in_the_browser(browser, copy: Path, kind: str) -> None:
    harm, report = BROKEN_IN_BROWSER[kind]
    problems = browse(browser, broken(copy, harm).as_uri(), mode="dark", width=360)
    assert any(report in problem for problem in problems), problems


@pytest.mark.browser
def test_maths_is_missed_when_mathjax_is(browser, copy: Path) -> None:
    page = broken(copy, "")
    text = page.read_text(encoding="utf-8")
    page.write_text(
        text.replace("mathjax/tex-chtml-full.js", "mathjax/missing.js"), encoding="utf-8"
    )
    problems = browse(browser, page.as_uri())
    assert any("request failed" in problem for problem in problems), problems
    assert any("maths not rendered" in problem for problem in problems), problems


@pytest.mark.browser
def test_a_missing_file_is_seen_over_http(browser, server: str) -> None:
    problems = browse(browser, f"{server}/nowhere.html", server=server)
    assert any("answer 404" in problem for problem in problems), problems


def test_names_are_relative_to_the_site(site: Path) -> None:
    assert name_of(site / "chapters" / "x.html") == "chapters/x.html"
