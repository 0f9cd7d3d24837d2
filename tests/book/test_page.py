"""The HTML page of an executed chapter."""

from __future__ import annotations

import ast
import base64
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_checks import Reader
from bs4 import BeautifulSoup
from chapter_runs import CHAPTERS, quick_parameters
from markdown_it import MarkdownIt
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from warm_runs import run_cells

from ictd.book import claims, figure_files, page
from ictd.book import notebook as nb
from ictd.book.errors import BookError
from ictd.book.page.maths import Converter
from ictd.book.page.tidy import tidy
from ictd.book.project import Project

ROOT = Path(page.__file__).resolve().parents[3]

TEXT = r"""# Layers and kernels

What the reader will see, after {cite}`someone2020paper` and {cite}`nobody`.

## The first part

$$
\hat v_{t+1} = \tfrac12 \big(v_t + \boldsymbol{r}\big)
$$ (eq-here)

By {eq}`eq-here`, and by {eq}`eq-there` too. See {prf:ref}`thm-here`, {prf:ref}`thm-there`,
{numref}`fig-here`,
{numref}`fig-there`, {ref}`ex-there`, {doc}`04_other`, {doc}`its title <04_other>`,
[`a.name`](api.md#a.name),
[a file](data.csv), {eq}`eq-nowhere` and <https://example.org/>.

:::{prf:theorem} A bound
:label: thm-here

It is at most $\lVert x \rVert_\infty$.
:::

:::{prf:proof}
:class: dropdown

Clear.
:::

:::{exercise} A question
:label: ex-here

Why?
:::

:::{solution} ex-here
:class: dropdown

Because of {eq}`eq-here`, and $\unknowncommand{x}$.
:::

:::{admonition} More
:class: dropdown

Folded.
:::

```{nosuchdirective}
```

| a | b |
|:--|--:|
| 1 | $\mathbb{R}$ |

![A picture beside the chapter.](beside.png)
"""
OTHER = r"""# The other chapter

$$
x
$$ (eq-there)

:::{prf:lemma} Small steps
:label: thm-there

Yes.
:::

:::{exercise}
:label: ex-there

Why?
:::
"""
BIBLIOGRAPHY = """\
@article{someone2020paper, author = {Some One}, title = {A paper}, journal = {J}, year = 2020}
"""
# A PNG of one pixel.
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg"
    "=="
)
ALT = "One pixel, of one colour, which is all that there is to see in this picture."


def cell(source: str, *outputs: dict[str, Any], tags: tuple[str, ...] = (), **metadata: Any) -> Any:
    number = cell.count = getattr(cell, "count", 0) + 1  # type: ignore[attr-defined]
    return {
        "cell_type": "code",
        "id": f"code-{number}",
        "metadata": {"tags": list(tags), **metadata},
        "source": source,
        "execution_count": 1,
        "outputs": list(outputs),
    }


def markdown(source: str) -> Any:
    return {"cell_type": "markdown", "id": f"m{hash(source)}", "metadata": {}, "source": source}


def display(**data: str) -> dict[str, Any]:
    kinds = {"html": "text/html", "markdown": "text/markdown", "png": "image/png"}
    kinds |= {"svg": "image/svg+xml", "csv": "text/csv", "plain": "text/plain"}
    shown = {kinds[kind]: text for kind, text in data.items()}
    return {"output_type": "display_data", "data": shown, "metadata": {}}


def notebook(*cells: Any) -> nb.Notebook:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def figure(name: str) -> dict[str, Any]:
    caption = "What is $x^2$."
    return {"mystnb": {"figure": {"name": name, "caption": caption}, "image": {"alt": ALT}}}


RECORD, RECORD_METADATA = claims.bundle(claims.Number("n", 1, "a number"))
EXECUTED = notebook(
    markdown(TEXT),
    cell("gamma: float = 0.9  # discount factor", tags=("parameters",)),
    cell(
        "def area(x):\n    return 'text'",
        {"output_type": "stream", "name": "stdout", "text": "printed\n"},
    ),
    cell(
        "picture()",
        display(png=PIXEL, svg="<svg/>", csv="a\n1\n", plain="<Figure>"),
        **figure("fig-here"),
    ),
    cell(
        "say()",
        display(markdown=r"So $\gamma = 0.9$, $|x| < 1$.", plain="no"),
        display(plain="7"),
    ),
    cell("hidden()", tags=("hide-input",)),
    cell(
        "removed()",
        {"output_type": "stream", "name": "stdout", "text": "stays\n"},
        tags=("remove-input",),
    ),
    cell(
        "kept()",
        {"output_type": "stream", "name": "stdout", "text": "goes\n"},
        tags=("remove-output",),
    ),
    cell("nothing()", {"output_type": "display_data", "data": RECORD, "metadata": RECORD_METADATA}),
    cell(
        "frame()",
        display(
            html="<b>bold</b><script src='https://example.org/x.js'>alert(1)</script>"
            "<img src='https://example.org/x.png'><iframe src='x'></iframe>",
            plain="no",
        ),
    ),
)
OTHER_CELLS = notebook(markdown(OTHER), cell("p()", **figure("fig-there")))
HEAD = """\
Made with **other** parameters, $\\gamma = 0.5$.

:::{admonition} How
:class: dropdown

- so
:::
"""


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = tmp_path_factory.mktemp("book") / "a {small} book"
    (root / "chapters").mkdir(parents=True)
    own = {"myst_enable_extensions": ["amsmath", "colon_fence", "dollarmath"]}
    options = {"numfig": True, "math_numfig": True, "bibtex_reference_style": "author_year"}
    config = {"title": "toy", "parse": own, "sphinx": {"config": options}}
    config["bibtex_bibfiles"] = ["chapters/references.bib"]
    (root / "_config.yml").write_text(json.dumps(config))
    (root / "chapters" / "references.bib").write_text(BIBLIOGRAPHY)
    (root / "chapters" / "index.md").write_text("# Book\n")
    (root / "chapters" / "beside.png").write_bytes(base64.b64decode(PIXEL))
    for name, content in {"03_here": EXECUTED, "04_other": OTHER_CELLS}.items():
        (root / "chapters" / f"{name}.ipynb").write_text(json.dumps(content))
    files = "".join(f"  - file: chapters/{name}\n" for name in ("03_here", "04_other"))
    toc = f"format: jb-book\nroot: chapters/index\nparts:\n- numbered: true\n  chapters:\n{files}"
    (root / "_toc.yml").write_text(toc)
    return Project(root)


@pytest.fixture(scope="module")
def text(book: Project) -> str:
    return page.render(book, EXECUTED, "03_here", HEAD)


@pytest.fixture(scope="module")
def soup(text: str) -> BeautifulSoup:
    return BeautifulSoup(text, "html.parser")


def words(tag: Any) -> str:
    return " ".join(tag.get_text().split())


def problems(soup: BeautifulSoup, files: set[str]) -> list[str]:
    """What a page loads, and the links and references of it that lead nowhere."""
    ids = [tag["id"] for tag in soup.find_all(id=True)]
    found = [f"two elements with the id {id}" for id in {*ids} if ids.count(id) > 1]
    found += [f"loads {tag['src'][:40]}" for tag in soup.select("[src]:not([src^='data:'])")]
    found += [f"loads {tag['href']}" for tag in soup.select("link:not([href^='data:'])")]
    found += [f"an element {tag.name}" for tag in soup.select("script, iframe")]
    for link in soup.select("a[href]"):
        href = link["href"]
        if href.startswith("#") and href[1:] not in ["", *ids]:
            found.append(f"broken link {href}")
        elif not href.startswith(("#", "https://")) and href not in files:
            found.append(f"link to {href}")
    return found


def files_of(content: nb.Notebook, chapter: str) -> set[str]:
    return {
        f"figures/{figure.file_name(chapter, kind)}"
        for figure in figure_files.collect(content)
        for kind in figure.contents
    }


def test_the_page_stands_alone(soup: BeautifulSoup, text: str) -> None:
    files = files_of(EXECUTED, "03_here")
    assert len(files) == 3
    assert problems(soup, files) == []
    assert [a["href"] for a in soup.select(".figure-files a")] == [
        f"figures/03-fig-here.{kind}" for kind in ("png", "svg", "csv")
    ]
    assert "@import" not in text
    assert not re.search(r"url\((?!data:)", text)


def test_the_page_has_a_title_and_one_heading(soup: BeautifulSoup) -> None:
    assert soup.title is not None
    assert soup.title.get_text() == "3. Layers and kernels — toy"
    assert [words(h) for h in soup.select("h1")] == ["3. Layers and kernels"]
    assert soup.select_one("html")["lang"] == "en"
    assert "width=device-width" in soup.select_one("meta[name=viewport]")["content"]
    (contents,) = soup.select("details.contents")
    assert not contents.has_attr("open")
    assert [words(a) for a in contents.select("a")] == ["3.1. The first part"]


def test_the_head_comes_right_after_the_title(soup: BeautifulSoup) -> None:
    shown = words(soup.article)
    places = [
        shown.index(part) for part in ("Layers and kernels", "Made with other", "What the reader")
    ]
    assert places == sorted(places)
    assert soup.find("summary", string="How") is not None
    assert "γ=0.5" in shown


def test_what_is_numbered_has_the_number_of_the_chapter(soup: BeautifulSoup) -> None:
    shown = words(soup.article)
    assert [words(number) for number in soup.select(".eqno")] == ["(3.1)"]
    assert "Theorem 3.1 (A bound)" in shown
    assert "Exercise 3.1 (A question)" in shown
    assert "Fig. 3.1 What is x2." in shown
    assert "By (3.1), and by" in shown
    assert "See Theorem 3.1, " in shown


def test_what_is_elsewhere_is_named_and_not_linked(soup: BeautifulSoup) -> None:
    shown = words(soup.article)
    assert "by (an equation of chapter 4) too" in shown
    assert (
        "Lemma “Small steps” of chapter 4, Fig. 3.1, a figure of chapter 4, Exercise of chapter 4, "
        "The other chapter, its title, a.name, a file, eq-nowhere and https://example.org/."
        in shown
    )
    assert soup.find("code", string="a.name") is not None
    linked = [words(a) for a in soup.select("p a")]
    assert "a file" not in linked
    assert "https://example.org/" in linked


def test_what_folds_in_the_book_folds_here(soup: BeautifulSoup) -> None:
    titles = [words(summary) for summary in soup.select("details.admonition > summary")]
    assert titles == [
        "How",
        "Proof",
        "Solution to Exercise 3.1 (A question)",
        "More",
        "Show code cell source Hide code cell source",
    ]
    assert not soup.select("div.dropdown")
    assert words(soup.select("details.proof")[0]) == "Proof Proof. Clear."


def test_formulas_are_mathml_or_their_source(soup: BeautifulSoup) -> None:
    (block,) = soup.select("math[display=block]")
    assert words(block) == "vˆt+1=12(vt+𝒓)"
    assert [words(code) for code in soup.select("code.tex")] == [r"\unknowncommand{x}"]
    assert "$" not in words(soup.article)
    table = soup.select_one(".scroll table")
    assert "ℝ" in words(table.select_one("td math"))


def test_citations_lead_to_the_end_of_the_page(soup: BeautifulSoup) -> None:
    (link,) = [a for a in soup.select("p a") if "2020" in words(a)]
    target = soup.find(id=link["href"][1:])
    assert "Some One. A paper." in words(target)
    assert words(soup.select("h2")[-1]) == "References"


def test_outputs_are_shown(soup: BeautifulSoup) -> None:
    outputs = [words(output) for output in soup.select(".cell_output")]
    assert outputs == ["printed", "Fig. 3.1 What is x2.", "So γ=0.9, |x|<1. 7", "stays", "bold"]
    first, second = soup.select("img")
    assert first["alt"] == "A picture beside the chapter."
    assert second["alt"] == ALT
    assert second["src"] == f"data:image/png;base64,{PIXEL}"
    assert "Live figure and data: PNG, SVG, CSV" in words(soup.article)


def test_tags_act_as_in_the_book(soup: BeautifulSoup) -> None:
    shown = words(soup.article)
    assert "hidden()" in words(soup.select_one("details.hide"))
    assert "removed()" not in shown
    assert "kept()" in shown
    assert "goes" not in shown


def test_code_has_colours(soup: BeautifulSoup) -> None:
    code = next(pre for pre in soup.select("pre") if "area" in pre.get_text())
    spans = [(span["class"], span.get_text()) for span in code.select("span")]
    assert spans == [(["k"], "def"), (["f"], "area"), (["k"], "return"), (["s"], "'text'")]
    assert code.get_text() == "def area(x):\n    return 'text'\n"


def test_the_same_notebook_is_the_same_page(book: Project, text: str) -> None:
    assert page.render(book, EXECUTED, "03_here", HEAD) == text


def test_a_notebook_of_no_book_has_a_page(tmp_path: Path) -> None:
    content = notebook(
        markdown("Text with $x$ and {cite}`nobody`.\n\n$$\ny\n$$ (eq-y)\n\nBy {eq}`eq-y`."),
        markdown("# A title\n\n## A part\n\n# Another"),
        cell("picture()", display(png=PIXEL)),
    )
    soup = BeautifulSoup(page.render(Project(tmp_path), content, "alone"), "html.parser")
    assert [words(h) for h in soup.select("h1, h2")] == ["alone", "A title", "A part", "Another"]
    assert len(soup.select("h1")) == 1
    assert words(soup.title) == "alone"
    assert "By (1)." in words(soup.article)
    assert problems(soup, files_of(content, "alone")) == []
    assert list(tmp_path.iterdir()) == []


def test_a_notebook_of_an_older_format_has_a_page(tmp_path: Path) -> None:
    content = notebook(markdown("# Old"), cell("1"))
    content["nbformat_minor"] = 4
    for one in content["cells"]:
        del one["id"]
    assert "Old</h1>" in page.render(Project(tmp_path), content, "old", "A head.")


@pytest.mark.parametrize(
    ("process", "reason"),
    [
        ("raise ValueError('what went wrong')", "Sphinx made no page: ValueError: what went wrong"),
        ("import no_such_package", "'no_such_package'; pip install -r requirements.txt"),
        ("raise SystemExit(3)", "it ended with status 3"),
    ],
)
def test_no_page_is_an_error_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, process: str, reason: str
) -> None:
    monkeypatch.setattr(page, "_BUILD", process)
    with pytest.raises(BookError, match=re.escape(reason)):
        page.render(Project(tmp_path), notebook(markdown("# T")), "t")


def test_what_executes_notebooks_is_not_imported_for_a_page() -> None:
    code = """
import sys
from ictd.book.notebook import leave_out_slow_grammar
from ictd.book.page import build, stand_ins
leave_out_slow_grammar()
stand_ins.leave_out_what_executes()
import myst_nb.sphinx_ext
from jupyter_cache.cache.db import Anything
assert issubclass(Anything, Exception)
print(*{"jupyter_client", "sqlalchemy", "rfc3986_validator"} & {k for k, m in sys.modules.items() if m})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_a_configuration_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "_config.yml").write_text("a: [")
    with pytest.raises(BookError, match="configuration cannot be read"):
        page.render(Project(tmp_path), notebook(markdown("# T")), "t")


@pytest.mark.parametrize(
    ("toc", "numbered"),
    [
        ("chapters: [{file: chapters/03_here}, {file: chapters/04_other}]", False),
        ("options: {numbered: true}\nchapters: [{file: chapters/03_here}]", True),
        ("parts: [{numbered: true, chapters: [{file: chapters/04_other}]}]", False),
    ],
)
def test_a_chapter_has_a_number_where_the_book_gives_one(
    book: Project, tmp_path: Path, toc: str, numbered: bool
) -> None:
    (tmp_path / "_toc.yml").write_text(f"format: jb-book\nroot: index\n{toc}\n")
    assert page.elsewhere.is_numbered(Project(tmp_path), "chapters/03_here") is numbered


# -------------------------------------------------------------------------------------- the formulas


MARKDOWN = (
    MarkdownIt().enable("table").use(dollarmath_plugin).use(amsmath_plugin).use(colon_fence_plugin)
)


def formulas(text: str) -> Iterator[tuple[str, bool]]:
    """The formulas of a Markdown text, and whether each is displayed."""
    tokens = MARKDOWN.parse(text)
    while tokens:
        token = tokens.pop(0)
        if token.type in (
            "math_inline",
            "math_inline_double",
            "math_block",
            "math_block_label",
            "amsmath",
        ):
            yield token.content, token.type != "math_inline"
        if token.type in ("fence", "colon_fence") and token.info.startswith("{"):
            yield from formulas(token.content)
        tokens += token.children or []


def displayed(source: str) -> Iterator[str]:
    """The texts in the code of a cell, with a 1 for each value that is filled in."""
    tree = ast.parse("\n".join(line for line in source.splitlines() if not line.startswith("%")))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(p.value) if isinstance(p, ast.Constant) else "1" for p in node.values)


def texts(chapter: Path) -> Iterator[str]:
    for one in nb.read(chapter)["cells"]:
        if one["cell_type"] == "markdown":
            yield nb.source(one)
        else:
            yield one["metadata"].get("mystnb", {}).get("figure", {}).get("caption", "")
            yield from displayed(nb.source(one))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_every_formula_of_the_book_is_converted(chapter: Path) -> None:
    found = {formula for text in texts(chapter) for formula in formulas(text)}
    converter = Converter()
    assert len(found) > (4 if chapter.stem.startswith("09") else 20)
    for tex, is_display in sorted(found):
        assert converter.mathml(tex, display=is_display).startswith("<math")


@pytest.mark.parametrize(
    ("tex", "shown"),
    [
        (r"\begin{align}a&=b\label{eq-a}\\c&=d\nonumber\end{align}", "a=bc=d"),
        (r"\begin{equation}\begin{split}a&=b\\c&=d\end{split}\end{equation}", "a=bc=d"),
        (r"a &= b \\ c &= d", "a=bc=d"),
        (r"x \tag{3}", "x(3)"),
        (r"x \tag*{A}", "xA"),
        (r"y \text{ if $x > 0$}", "y if x>0"),
        (r"\sum_{\substack{i \\ j}} x", "∑ijx"),
        (r"\norm{x} \in \R", "‖x‖∈ℝ"),
        (r"\widetilde{x} \mathds{1}", "x~𝟙"),
    ],
)
def test_what_mathjax_knows_and_the_converter_not_is_translated(tex: str, shown: str) -> None:
    converter = Converter({"norm": [r"\lVert #1 \rVert", 1], "R": r"\mathbb{R}"})
    made = converter.mathml(tex, display=True)
    assert (
        re.sub(r"<[^>]*>|&\w+;", lambda m: ">" if m[0] == "&gt;" else "", made).replace("\xa0", " ")
        == shown
    )


def test_a_formula_that_cannot_be_converted_is_named() -> None:
    with pytest.raises(ValueError, match=r"unknowncommand.*in '\\\\unknowncommand'"):
        Converter().mathml(r"\unknowncommand", display=False)


def test_a_formula_and_the_marks_that_touch_it_are_held_together() -> None:
    assert (
        tidy("<p>(<math>x</math>, y</p>") == '<p><span class="held">(<math>x</math>,</span> y</p>'
    )
    assert tidy("<p>a <math>x</math> b</p>") == "<p>a <math>x</math> b</p>"


# ------------------------------------------------------------------------------------ a real chapter


@pytest.fixture(scope="module")
def executed() -> tuple[nb.Notebook, str]:
    chapter = next(path for path in CHAPTERS if path.stem.startswith("03"))
    return run_cells(chapter, quick_parameters(chapter)), chapter.stem


@pytest.fixture(scope="module")
def real_page(executed: tuple[nb.Notebook, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    content, chapter = executed
    text = page.render(Project(ROOT), content, chapter, HEAD)
    (folder / "executed.html").write_text(text, encoding="utf-8")
    figure_files.write(content, chapter, folder / "figures")
    return folder / "executed.html"


def test_the_page_of_a_chapter(real_page: Path, executed: tuple[nb.Notebook, str]) -> None:
    content, _ = executed
    text = real_page.read_text(encoding="utf-8")
    soup = BeautifulSoup(text, "html.parser")
    files = {
        path.relative_to(real_page.parent).as_posix() for path in real_page.parent.glob("figures/*")
    }
    assert problems(soup, files) == []
    assert not soup.select("code.tex, .xref, .problematic, .system-message")
    claimed = [id for one in content["cells"] for id in claims.claimed(one)]
    assert claimed
    assert set(claimed) <= {words(code) for code in soup.select(".cell_output code")}
    pictures = sum(len(image["src"]) for image in soup.select("img"))
    assert len(text.encode()) - pictures < 200_000


@pytest.mark.browser
@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_page_in_a_browser(real_page: Path, browser: Any, mode: str) -> None:
    visit = Reader(browser, mode=mode, widths=(360, 1200), paper=True).visit(real_page.as_uri())
    # The page has no switch of its own, and follows the system.
    assert [p for p in visit.problems if not p.startswith("asked for")] == []
    assert visit.paper == []


@pytest.mark.browser
def test_the_page_in_the_dark_and_on_paper(real_page: Path, browser: Any) -> None:
    tab = browser.new_context(color_scheme="dark").new_page()
    tab.goto(real_page.as_uri())
    colours = """(selector) => {
        const style = getComputedStyle(document.querySelector(selector));
        return [style.color, style.backgroundColor];
    }"""
    assert tab.evaluate(colours, "img")[1] == "rgb(255, 255, 255)"
    hidden = "() => document.querySelector('details:not([open]) > :not(summary)').checkVisibility()"
    assert not tab.evaluate(hidden)
    assert tab.evaluate(colours, "html") == ["rgb(223, 228, 234)", "rgb(20, 24, 29)"]
    tab.emulate_media(media="print")
    assert tab.evaluate(colours, "html") == ["rgb(28, 33, 39)", "rgb(255, 255, 255)"]
    assert tab.evaluate(hidden)
    assert tab.pdf().startswith(b"%PDF")
    tab.close()
