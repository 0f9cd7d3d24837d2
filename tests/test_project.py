"""The project's files keep their promises to who installs, opens and edits them."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml
from browser_checks import AXE
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "chapters").glob("*.ipynb"))
PAGES = sorted((ROOT / "chapters").glob("*.md"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def requirements(lines: list[str]) -> dict[str, Requirement]:
    found = [
        Requirement(line) for line in lines if line.strip() and not line.startswith(("#", "-"))
    ]
    return {canonicalize_name(r.name): r for r in found}


def lines_of(name: str) -> list[str]:
    return (ROOT / name).read_text(encoding="utf-8").splitlines()


BOOK = requirements(lines_of("requirements.txt"))
PINS = requirements(lines_of(".ci/constraints.txt"))
LIBRARY = requirements(PYPROJECT["project"]["dependencies"])
EXTRAS = {
    name: requirements(r) for name, r in PYPROJECT["project"]["optional-dependencies"].items()
}


# ----------------------------------------------------------------------------------------- requirements


@pytest.mark.parametrize(
    "declared", [BOOK, EXTRAS["book"]], ids=["requirements.txt", "the extra book"]
)
@pytest.mark.parametrize("version", ["2.0.0a1", "2.0.0b2", "2.0.0rc1", "2.0.0", "2.1.0", "3.0"])
def test_jupyter_book_2_cannot_be_installed(declared: dict[str, Requirement], version: str) -> None:
    specifier = declared["jupyter-book"].specifier
    assert not specifier.contains(version, prereleases=True)
    assert specifier.contains("1.0.4.post1")


def test_requirements_install_the_project_last() -> None:
    assert [line for line in lines_of("requirements.txt") if line.strip()][-1] == "-e ."


def test_no_requirement_names_an_index() -> None:
    options = [line for line in lines_of("requirements.txt") if line.startswith("-")]
    assert options == ["-e ."]


def test_requirements_cover_what_library_book_and_tests_declare() -> None:
    assert {*LIBRARY, *EXTRAS["book"], *EXTRAS["test"]} <= set(BOOK)


def test_what_chapters_import_is_part_of_what_the_book_needs() -> None:
    assert EXTRAS["chapters"].items() <= EXTRAS["book"].items()


def test_library_has_loose_bounds() -> None:
    """An upper bound in a library blocks newer Pythons for everybody who uses it."""
    assert set(LIBRARY) == {"numpy", "torch"}
    assert {s.operator for r in LIBRARY.values() for s in r.specifier} == {">="}


def test_constraints_are_exact_and_within_the_requirements() -> None:
    for name, pin in PINS.items():
        (specifier,) = pin.specifier
        assert specifier.operator == "==", name
        assert "+" not in specifier.version, f"{name}: a local version exists on one machine only"
        for declared in (BOOK, LIBRARY, *EXTRAS.values()):
            if name in declared:
                assert declared[name].specifier.contains(specifier.version), (name, declared[name])
    needed = {**BOOK, **EXTRAS["dev"]}
    # The exact versions are of one Python, and without what only an older one needs.
    assert {n for n, r in needed.items() if r.marker is None or r.marker.evaluate()} <= set(PINS)


def test_ci_installs_one_version_of_axe_core_where_the_tests_look_for_it() -> None:
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (line,) = re.findall(r"^npm install .*$", ci, re.MULTILINE)
    assert re.search(r" axe-core@\d+\.\d+\.\d+$", line)
    (prefix,) = re.findall(r"--prefix (\S+)", line)
    assert (ROOT / prefix / "node_modules/axe-core/axe.min.js") == AXE
    assert f"{prefix}/" in lines_of(".gitignore")
    assert "registry" not in ci


# -------------------------------------------------------------------------------------------- the code


def imported_packages(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names) - {"ictd"}


PROVIDED_BY = {
    "yaml": "pyyaml",
    "IPython": "ipykernel",
    "jupyter_book": "jupyter-book",
}
# What a declared package cannot be without, and which is named beside it.
PROVIDED_BY |= {"nbclient": "papermill", "traitlets": "ipykernel", "jupyter_client": "ipykernel"}
PROVIDED_BY |= {"jupyter_core": "ipykernel", "sphinx": "jupyter-book", "docutils": "jupyter-book"}
PROVIDED_BY |= {"PIL": "matplotlib", "bs4": "beautifulsoup4"}


@pytest.mark.parametrize("part", ["library", "book", "pdf"])
def test_what_is_imported_is_declared(part: str) -> None:
    """`make book` must not work only because a developer's tool brings a package along."""
    files = sorted((ROOT / "ictd").rglob("*.py"))
    in_book = [path for path in files if "book" in path.relative_to(ROOT / "ictd").parts]
    figures = sorted((ROOT / "ictd" / "figures").glob("*.py"))
    printing = sorted((ROOT / "ictd" / "book" / "pdf").glob("*.py"))
    if part == "library":
        files = [path for path in files if path not in {*in_book, *figures}]
        declared = {*LIBRARY, *EXTRAS["pretrain"]}
    elif part == "book":
        files = [path for path in [*in_book, *figures] if path not in printing]
        declared = {*LIBRARY, *EXTRAS["book"]}
    else:
        files, declared = printing, {*LIBRARY, *EXTRAS["book"], *EXTRAS["pdf"]}
    imported = {name: path.name for path in files for name in imported_packages(path)}
    undeclared = {
        n: f
        for n, f in imported.items()
        if canonicalize_name(PROVIDED_BY.get(n, n)) not in declared
    }
    assert undeclared == {}


def test_the_science_does_not_import_the_machinery() -> None:
    for path in (ROOT / "ictd").rglob("*.py"):
        if path.name == "__main__.py" or "book" in path.relative_to(ROOT / "ictd").parts:
            continue
        assert not re.search(
            r"ictd\.book|from \.book|from ictd import book", path.read_text(encoding="utf-8")
        ), path


def test_no_figure_needs_latex() -> None:
    for path in [*(ROOT / "ictd").rglob("*.py"), *NOTEBOOKS]:
        assert "usetex" not in path.read_text(encoding="utf-8"), path


# ------------------------------------------------------------------------------------------- the pages


def load(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def text_of(cell: dict) -> str:
    return "".join(cell["source"])


def markdown_of(path: Path) -> str:
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    return "\n\n".join(text_of(c) for c in load(path)["cells"] if c["cell_type"] == "markdown")


def test_there_are_chapters() -> None:
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    listed = {chapter["file"] for part in toc["parts"] for chapter in part["chapters"]} | {
        toc["root"]
    }
    there = {p.relative_to(ROOT).with_suffix("").as_posix() for p in [*NOTEBOOKS, *PAGES]}
    assert NOTEBOOKS
    assert listed == there


@each_notebook
def test_notebook_has_no_outputs(path: Path) -> None:
    for cell in load(path)["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], cell["id"]
            assert cell["execution_count"] is None, cell["id"]


@each_notebook
def test_notebook_runs_anywhere(path: Path) -> None:
    """A private kernel's name, or what a run left behind, would travel with the file."""
    metadata = load(path)["metadata"]
    assert metadata["kernelspec"]["name"] == "python3"
    assert set(metadata) <= {"kernelspec", "language_info"}


@each_notebook
def test_notebook_has_stable_cell_ids(path: Path) -> None:
    book = load(path)
    assert (book["nbformat"], book["nbformat_minor"]) >= (4, 5)
    ids = [cell["id"] for cell in book["cells"]]
    assert [name for name, n in Counter(ids).items() if n > 1] == []
    # A random id says that a tool made it up; names last.
    assert [name for name in ids if re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f-]+)?", name)] == []


@each_notebook
def test_notebook_has_one_parameters_cell_before_first_use(path: Path) -> None:
    code = [cell for cell in load(path)["cells"] if cell["cell_type"] == "code"]
    tagged = [cell for cell in code if "parameters" in cell["metadata"].get("tags", [])]
    assert len(tagged) == 1
    place = code.index(tagged[0])
    declared = {
        node.target.id
        for node in ast.parse(text_of(tagged[0])).body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    assert {"seed", "gamma", "n_states"} <= declared or not declared & {"gamma", "n_states"}
    for cell in code[:place]:
        used = {
            node.id for node in ast.walk(ast.parse(text_of(cell))) if isinstance(node, ast.Name)
        }
        assert not used & declared, cell["id"]
    assert "Chapter()" in text_of(code[place + 1]), "the cell after the parameters checks them"


@each_notebook
def test_notebook_starts_with_a_plain_title(path: Path) -> None:
    first = load(path)["cells"][0]
    assert first["cell_type"] == "markdown"
    title = text_of(first).splitlines()[0]
    assert re.fullmatch(r"# [^$\\`{}]+", title), title


LABELS = (
    re.compile(r"\$\$\s*\(([^)\s]+)\)"),  # $$ … $$ (label)
    re.compile(r"^:label:\s*(\S+)", re.MULTILINE),
    re.compile(r"\\label\{([^}]+)\}"),
    re.compile(r"^\(([^)\s]+)\)=", re.MULTILINE),
)


def test_labels_are_unique_over_the_book() -> None:
    labels: list[str] = []
    for path in [*NOTEBOOKS, *PAGES]:
        text = markdown_of(path)
        labels += [label for pattern in LABELS for label in pattern.findall(text)]
        if path.suffix == ".ipynb":
            figures = [
                c["metadata"].get("mystnb", {}).get("figure", {}) for c in load(path)["cells"]
            ]
            labels += [figure["name"] for figure in figures if "name" in figure]
    assert labels
    assert [label for label, n in Counter(labels).items() if n > 1] == []


def figures_of(path: Path) -> dict[str, tuple[str, str]]:
    """Alternative text and caption of each cell of a notebook that is shown as a figure."""
    settings = {c["id"]: c["metadata"].get("mystnb", {}) for c in load(path)["cells"]}
    return {
        f"{path.stem}: {name}": (said.get("image", {}).get("alt", ""), said["figure"]["caption"])
        for name, said in settings.items()
        if "figure" in said
    }


def test_figures_say_what_is_seen_and_no_two_say_the_same() -> None:
    """Plain sentences, since a screen reader reads TeX letter by letter; not the caption again."""
    shown = {name: said for path in NOTEBOOKS for name, said in figures_of(path).items()}
    assert len(shown) > 5
    for name, (alt, caption) in shown.items():
        assert len(alt.split()) >= 20, name
        assert re.fullmatch(r"[A-Z].*\.", alt), name
        assert len(re.findall(r"\.(?: |$)", alt)) >= 2, f"{name}: what is plotted, and what is seen"
        assert not re.search(r"[$\\{}`]", alt), name
        assert caption not in alt, name
    for place in (0, 1):
        said = Counter(" ".join(texts[place].casefold().split()) for texts in shown.values())
        assert [text for text, n in said.items() if n > 1] == []


def test_no_page_defines_tex_macros() -> None:
    """A macro would have to be defined in the book and in each notebook; MathJax's own do."""
    config = (ROOT / "_config.yml").read_text(encoding="utf-8")
    assert "macros" not in config
    for path in [*NOTEBOOKS, *PAGES]:
        text = markdown_of(path)
        found = re.findall(
            r"\\(?:re)?newcommand|\\def\b|\\DeclareMathOperator|\\require\b|\\let\b", text
        )
        assert found == [], path.name


def test_parameter_files_are_full_and_quick() -> None:
    """`params/NN_quick.yml` and `NN_paper.yml` name parameters that the chapter has."""
    for path in (ROOT / "chapters" / "params").glob("*.yml"):
        (notebook,) = (ROOT / "chapters").glob(f"{path.name[:2]}_*.ipynb")
        cells = load(notebook)["cells"]
        (cell,) = [c for c in cells if "parameters" in c["metadata"].get("tags", [])]
        declared = {
            n.target.id for n in ast.parse(text_of(cell)).body if isinstance(n, ast.AnnAssign)
        }
        assert set(yaml.safe_load(path.read_text(encoding="utf-8"))) <= declared, path.name


def test_vendored_mathjax_is_whole() -> None:
    folder = ROOT / "chapters" / "vendor" / "mathjax"
    assert (folder / "LICENSE").is_file()
    assert 'VERSION="3.2.2"' in (folder / "tex-chtml-full.js").read_text(encoding="utf-8").replace(
        "'", '"'
    )
    assert len(list((folder / "output/chtml/fonts/woff-v2").glob("*.woff"))) == 23
