"""`ictd store`: results at full scale, kept with the book and shown on its pages."""

from __future__ import annotations

import base64
import copy
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from PIL import Image
from site_checks import image_problems, link_problems, stored_problems, text_problems

from ictd.book import stored, stored_blocks
from ictd.book.cache import StoredRun
from ictd.book.errors import BookError
from ictd.book.project import Project

SIZE = "size: int = 2  # size of everything, in [1, 99]\nseed: int = 0  # unused, in [0, 9]"
CHECK = "from ictd.book import Chapter\n\nchapter = Chapter()"
PICTURE = """\
import io

from IPython.display import display
from PIL import Image

made = io.BytesIO()
Image.radial_gradient('L').resize((200 + size, 100)).save(made, 'PNG')
data = {'image/png': made.getvalue(), 'text/csv': f'size\\n{size}\\n', 'text/plain': 'a figure'}
display(data, raw=True, metadata={'image/png': {'width': 120, 'height': 60}})"""
SAME_PICTURE = PICTURE.replace("200 + size", "210").replace("{size}", "10")
NESTED = '''\
chapter.say(f"""\\
| a | b |
|:--|--:|
| the table | {size} |

::::{{note}}
The inner box of {size}.
::::

```python
code = 1
```

1. The list of {size}.""")
chapter.say(f"1. Another list of {size}, with $\\\\gamma^{size}$.")'''

CELLS = [
    ("markdown", "# A chapter\n\nWhat is seen."),
    ("parameters", SIZE),
    CHECK,
    "chapter.claim('small', 'the size $s$ is small', size, at_most=50)\n"
    "chapter.claim('positive', 'the size is positive', size, at_least=0)",
    "chapter.say('The same at every size.')",
    PICTURE,
    SAME_PICTURE,
    NESTED,
    ("timing", "chapter.say(f'The time of {size}.')"),
    ("stored", "chapter.say(f'Loaded by {size}.')"),
    "chapter.say(f'The solution of {size}.')",
    "print('not Markdown', size)",
]
CAPTION = "The picture of the *size*, with $x_{1}$ and `code`: it has [a link](https://a.invalid)."


def write(toy: Any, cells: list[Any] = CELLS) -> Path:
    """Write the chapter, with captions for its figures, and a second chapter without a full scale."""
    path = toy.write("01_first", cells)
    toy.write("02_second", [("markdown", "# Another"), ("parameters", SIZE), CHECK])
    content = json.loads(path.read_text())
    for cell in content["cells"]:
        if "radial" in cell["source"]:
            name = f"fig-{cell['id']}"
            alt = f"A grey disc in a frame, of the cell {cell['id']}; it is lighter outside than inside."
            shown = {"figure": {"name": name, "caption": CAPTION}, "image": {"alt": alt}}
            cell["metadata"]["mystnb"] = shown
        if "solution" in cell["source"]:
            cell["id"] = "sol-one"
    path.write_text(json.dumps(content))
    return path


@pytest.fixture(scope="module")
def kept(make_toy: Any) -> tuple[Any, str, str]:
    """A book whose first chapter has a full scale, at which a claim fails; what `store` printed."""
    toy = make_toy("kept")
    toy.write_index("An index.\n\n% ictd build: chapters\nFilled.\n% end")
    write(toy)
    (toy.root / "chapters" / "params").mkdir()
    (toy.root / "chapters" / "params" / "01_paper.yml").write_text("size: 60\n")
    printed = toy.ictd("store", "1")
    toy.ictd("build")
    return toy, *printed


@pytest.fixture
def book(kept: Any, tmp_path: Path) -> Any:
    """A copy of it, to be changed."""
    return kept[0].copy(tmp_path)


def folder_of(toy: Any) -> Path:
    return toy.root / "chapters" / "stored" / "01"


def info_of(toy: Any) -> dict[str, Any]:
    return json.loads((folder_of(toy) / "run.json").read_text(encoding="utf-8"))


def soup_of(toy: Any, name: str = "01_first") -> BeautifulSoup:
    return BeautifulSoup(toy.page(name), "html.parser")


# -------------------------------------------------------------------------------------------- the folder


def test_it_says_where_the_results_are_and_which_claims_failed(kept):
    toy, out, err = kept
    assert out == f"stored: {folder_of(toy)}\n"
    assert "claim failed: small: measured 60: the size $s$ is small" in err
    assert "01_first: done in" in err
    assert "positive" not in err


def test_what_is_kept_of_a_run(kept):
    info = info_of(kept[0])
    assert info["command"] == "ictd store 01"
    assert info["chapter"] == "01_first"
    assert info["parameters"] == {"size": 60, "seed": 0}
    assert [(c["id"], c["passed"], c["value"]) for c in info["claims"]] == [
        ("small", False, 60),
        ("positive", True, 60),
    ]
    assert info["claims"][0].keys() >= {"statement", "source", "at_most", "at_least", "holds"}
    assert list(info["packages"]) == ["numpy", "torch", "matplotlib", "papermill"]
    assert all(info["packages"].values())
    assert info["python"].startswith("CPython 3")
    assert info["seconds"] > 0
    assert info["peak_memory"] > 1e6
    assert info["commit"] == "not under git"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT.*\+00:00", info["started"])
    assert info["sources"].keys() >= {"ictd/td.py", "ictd/figures/__init__.py", "ictd/probe.py"}
    assert not any(name.startswith("ictd/book/") for name in info["sources"])


def test_what_cells_showed_is_kept_in_order(kept):
    """No solutions, times, stored results or other outputs than Markdown and pictures."""
    cells = info_of(kept[0])["cells"]
    assert [cell["id"] for cell in cells] == ["cell-3", "cell-4", "cell-5", "cell-6", "cell-7"]
    claims, same, figure, _, nested = cells
    assert [text.split("`")[1] for text in claims["markdown"]] == ["small", "positive"]
    assert same["markdown"] == ["The same at every size."]
    assert [text[:5] for text in nested["markdown"]] == ["| a |", "1. An"]
    assert (figure["picture"], figure["data"], figure["width"]) == ("cell-5.png", "cell-5.csv", 120)
    assert (claims["picture"], claims["data"]) == (None, None)


def test_figures_are_small_and_look_the_same(kept):
    folder = folder_of(kept[0])
    assert {path.name for path in folder.iterdir()} == {
        "run.json",
        *(f"cell-{i}.{kind}" for i in (5, 6) for kind in ("png", "csv")),
    }
    assert (folder / "cell-5.csv").read_text() == "size\n60\n"
    with Image.open(folder / "cell-5.png") as picture:
        assert picture.mode == "P"
        assert picture.size == (260, 100)
        colours = [picture.convert("RGB").getpixel(place) for place in ((130, 50), (0, 0))]
    assert max(colours[0]) < 8
    assert min(colours[1]) > 247


def test_a_transparent_picture_is_on_white():
    made = io.BytesIO()
    Image.new("RGBA", (3, 3), (255, 0, 0, 0)).save(made, "PNG")
    with Image.open(io.BytesIO(stored._small(made.getvalue()))) as picture:
        assert picture.convert("RGB").getpixel((1, 1)) == (255, 255, 255)


def test_a_run_is_used_again_and_forced_again(book):
    before = info_of(book)
    _, err = book.ictd("store", "01_first")
    assert "nothing has changed since its stored run, which is used" in err
    assert info_of(book) == before
    # A fresh clone has no runs, but it has the stored one, which tells the time.
    (book.root / "_build" / "runs").rename(book.root / "gone")
    (folder_of(book).parent / ".new-left").mkdir()
    _, err = book.ictd("store", "1", "--force")
    assert re.search(r"01_first: expected about \d+ s \(no stored run\)", err)
    assert info_of(book)["cells"] == before["cells"]
    assert [path.name for path in folder_of(book).parent.iterdir()] == ["01"]


def test_a_folder_that_was_being_replaced_is_found(book):
    folder = folder_of(book)
    folder.rename(folder.with_name(".01-old"))
    assert stored.load(Project(book.root), "01_first") is not None
    assert folder.is_dir()


def test_a_failed_run_leaves_what_was_stored(book):
    before = {path.name: path.read_bytes() for path in folder_of(book).iterdir()}
    write(book, [*CELLS, "1 / (size - 60)"])
    assert "ZeroDivisionError" in book.ictd("store", "1", status=1)[1]
    assert {path.name: path.read_bytes() for path in folder_of(book).iterdir()} == before


def run_of(tmp_path: Path, outputs: list[dict[str, Any]], source: str = "x") -> StoredRun:
    """A run of one cell with outputs, in a folder."""
    cell = {"cell_type": "code", "id": "one", "metadata": {}, "source": source, "outputs": outputs}
    content = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "executed.ipynb").write_text(json.dumps(content))
    info = dict.fromkeys(stored._OF_RUN, 0)
    info |= {"chapter": "01_x", "packages": {}, "commit": "c", "claims": []}
    info["parts"] = {"sources": {}}
    return StoredRun(tmp_path, info)


def picture(width: int = 2, csv: str = "") -> dict[str, Any]:
    made = io.BytesIO()
    Image.new("RGB", (width, 2)).save(made, "PNG")
    data = {"image/png": base64.b64encode(made.getvalue()).decode(), "text/csv": csv}
    return {"output_type": "display_data", "metadata": {}, "data": data}


@pytest.mark.parametrize(("size", "data"), [(100_000, "one.csv"), (100_001, None), (0, None)])
def test_large_data_is_left_out(tmp_path, size, data):
    folder = stored.write(Project(tmp_path), run_of(tmp_path, [picture(csv="1" * size)]))
    (cell,) = json.loads((folder / "run.json").read_text())["cells"]
    assert (cell["data"], cell["width"]) == (data, None)
    assert (folder / "one.csv").is_file() == bool(data)


def test_two_pictures_of_one_cell_are_refused(tmp_path):
    with pytest.raises(BookError, match="cell one shows two pictures"):
        stored.write(Project(tmp_path), run_of(tmp_path, [picture(), picture(3)]))
    assert list((tmp_path / "chapters" / "stored").iterdir()) == []


# -------------------------------------------------------------------------------------------- the errors


def test_a_chapter_without_a_full_scale_is_refused_at_once(kept):
    _, err = kept[0].ictd("store", "2", status=1)
    assert re.search(r"02_second has no full scale: there is no chapters.params.02_paper\.yml", err)
    assert "no chapter '7'" in kept[0].ictd("store", "7", status=2)[1]


@pytest.mark.parametrize(
    ("text", "problem"),
    [("size: 100\n", "size: got 100"), ("a: [\n", "not YAML"), ("- 1\n", "expected NAME")],
)
def test_parameters_that_are_not_accepted_are_refused_at_once(book, text, problem):
    (book.root / "chapters" / "params" / "01_paper.yml").write_text(text)
    _, err = book.ictd("store", "1", status=2)
    assert problem in err
    assert "expected about" not in err


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": 0}', '{"format": 1, "chapter": "01_first"}']
)
def test_a_damaged_record_is_refused_with_a_word_how_to_mend_it(book, text):
    (folder_of(book) / "run.json").write_text(text)
    with pytest.raises(BookError, match=r"01/run\.json is damaged.*ictd store 01"):
        stored.load(Project(book.root), "01_first")


def test_a_build_with_damaged_results_leaves_the_last_site(book):
    good = book.site()
    (folder_of(book) / "cell-5.png").unlink()
    _, err = book.ictd("build", status=1)
    assert re.search(r"stored.01 has no cell-5\.png; make it again: ictd store 01", err)
    assert book.site() == good


def test_results_of_another_chapter_are_refused(book):
    (folder_of(book).parent / "02").mkdir()
    text = (folder_of(book) / "run.json").read_text()
    (folder_of(book).parent / "02" / "run.json").write_text(text)
    with pytest.raises(BookError, match="is of the chapter 01_first"):
        stored.load(Project(book.root), "02_second")


# ---------------------------------------------------------------------------------------------- the page


def test_the_page_says_how_its_full_scale_was_made(kept):
    page = kept[0].page("01_first")
    assert page.index("How this page was made") < page.index("At full scale</p>")
    assert page.index("At full scale</p>") < page.index("tag_parameters")
    head = soup_of(kept[0]).select(".admonition.stored")[0]
    assert "dropdown" in head["class"]
    text, info = head.get_text(), info_of(kept[0])
    for part in (
        "Computed before this page was made",
        "Parameters other than the defaults: size = 60\n",
        "Claims: 1 pass, 1 fail: small\n",
        f"in {info['seconds']:.1f} s",
        f"{info['peak_memory'] / 1e6:.0f} MB",
        f"numpy {info['packages']['numpy']}",
        "Commit: not under git",
        "ictd store 01",
    ):
        assert part in text, part
    assert "Changed since" not in text
    assert "no more" not in text


def test_what_cells_showed_is_folded_below_them(kept):
    """Where a cell shows the same in both runs, nothing is said twice."""
    soup = soup_of(kept[0])
    _, *blocks = soup.select(".admonition.stored")
    assert all("dropdown" in block["class"] for block in blocks)
    titles = {block.select_one(".admonition-title").get_text() for block in blocks}
    assert titles == {"At full scale (stored)"}
    claims, figure, nested = blocks
    before = [block.find_previous(class_="cell_output") for block in blocks]
    assert "✓ small" in before[0].get_text()
    assert "✗ failed small" in claims.get_text()
    assert "Measured 60; bound: ≤ 50." in claims.get_text()
    assert before[1].select_one("img")["alt"].startswith("A grey disc")
    assert figure.select_one("img")["style"] == "width: 120px;"
    assert "the table" in before[2].get_text()
    rows = [[cell.get_text() for cell in row.select("td")] for row in nested.select("tbody tr")]
    assert rows == [["the table", "60"]]
    assert "The inner box of 60." in nested.select_one(".admonition.note").get_text()
    assert nested.select_one(".highlight-python").get_text().strip() == "code = 1"
    assert [len(items.select("li")) for items in nested.select("ol")] == [1, 1]
    assert r"\(\gamma^60\)" in nested.get_text()
    for word in ("same at every", "time of", "Loaded by", "solution of"):
        assert word in soup.get_text()
        assert word not in "".join(block.get_text() for block in blocks)


def test_the_checks_of_the_site_accept_the_page(kept):
    html = kept[0].root / "_build" / "html"
    page = html / "chapters" / "01_first.html"
    assert stored_problems(page) == []
    assert image_problems(page) == []
    assert text_problems(page) == []
    assert link_problems(page, html) == []


def test_a_stored_figure_is_described_by_its_caption_and_has_its_files(kept):
    figure = soup_of(kept[0]).select(".admonition.stored")[2]
    assert figure.select_one("img")["alt"] == (
        "The picture of the size, with x_1 and code: it has a link, at full scale, stored"
    )
    assert " ".join(figure.select_one(".figure-files").get_text().split()) == (
        "Stored figure and data: PNG, CSV"
    )
    (png, csv) = (link["href"] for link in figure.select(".figure-files a"))
    chapters = kept[0].root / "_build" / "html" / "chapters"
    assert (chapters / csv).resolve().read_text() == "size\n60\n"
    assert (chapters / png).resolve().read_bytes() == (
        folder_of(kept[0]) / "cell-5.png"
    ).read_bytes()


def test_a_page_without_stored_results_has_none(kept):
    assert "full scale" not in kept[0].page("02_second")


def test_the_status_says_which_chapters_have_a_full_scale(kept):
    info = info_of(kept[0])
    rows = soup_of(kept[0], "index").select("table.made-status tbody tr")
    assert [row.select("td")[-1].get_text() for row in rows] == [
        f"stored, of {info['started'][:10]}, {info['seconds']:.1f} s; 1 failed",
        "none",
    ]


def test_the_page_says_what_has_changed_since(book):
    """Cells that are gone are counted, and what remains is shown where it belongs."""
    path = write(book)
    content = json.loads(path.read_text())
    del content["cells"][3:5]
    path.write_text(json.dumps(content))
    (book.library / "ictd" / "probe.py").write_text("CONSTANT = 8\n")
    (book.library / "ictd" / "td.py").write_text(
        (book.library / "ictd" / "td.py").read_text() + "# more\n"
    )
    (book.library / "ictd" / "book" / "__init__.py").touch()
    (book.library / "ictd" / "newer.py").write_text("")
    book.ictd("build")
    head, *blocks = soup_of(book).select(".admonition.stored")
    assert "Changed since: the chapter’s code, ictd/probe.py, ictd/td.py\n" in head.get_text()
    assert "Cells that the chapter has no more: 2; they are not shown" in head.get_text()
    assert len(blocks) == 2


FULL = stored.FullScale(
    Path("stored/03"),
    {
        "command": "ictd store 03",
        "chapter": "03_x",
        "parameters": {"size": 1},
        "claims": [],
        "started": "2030-01-01T00:00:00+00:00",
        "seconds": 1.0,
        "peak_memory": 1,
        "ictd": "1",
        "python": "p",
        "packages": {},
        "commit": "aaa with uncommitted changes",
        "code": "",
        "sources": {},
        "cells": [],
    },
)


@pytest.mark.parametrize(
    ("same_code", "shown"),
    [
        (True, "aaa with uncommitted changes; chapter and library were those of bbb"),
        (False, "aaa with uncommitted changes"),
    ],
)
def test_with_the_commit_of_the_run_one_is_shown_that_holds_what_was_run(same_code, shown):
    content = {"cells": [], "nbformat_minor": 5}
    info = FULL.info | ({"code": stored.trials.code_hash(content)} if same_code else {})
    page = stored_blocks.with_blocks(
        content, stored.FullScale(FULL.folder, info), {"size": 1}, "bbb"
    )
    (head,) = page["cells"]
    assert f"- Commit: {shown}\n" in head["source"]
    assert "Parameters other than the defaults: none" in head["source"]
    assert "folded below" not in head["source"]


def test_a_figure_without_a_caption_is_named_by_its_cell():
    entry = {"id": "one", "markdown": [], "picture": "one.png", "width": None, "data": None}
    text = stored_blocks._block(entry, FULL, None)
    assert ':alt: "The figure of the cell one of 03_x, at full scale, stored"' in text
    assert ":width:" not in text
    assert "Stored figure: {download}`PNG </chapters/stored/03/one.png>`" in text


def test_the_page_itself_is_not_changed():
    cell = {"cell_type": "code", "id": "one", "metadata": {}, "source": "x", "outputs": [picture()]}
    content = {"cells": [cell], "nbformat_minor": 5}
    entry = stored.shown(cell, None) | {"markdown": ["a"], "picture": None}
    full = stored.FullScale(FULL.folder, FULL.info | {"cells": [entry]})
    before = copy.deepcopy(content)
    assert len(stored_blocks.with_blocks(content, full, {}, "")["cells"]) == 3
    assert content == before
