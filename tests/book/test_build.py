"""`ictd build` and `ictd claims` on toy books."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import psutil
import pytest
import yaml

from ictd.book import baseline, builder, site
from ictd.book.cache import StoredRun
from ictd.book.project import Project

SLOW = "import os, time\n\ntime.sleep(float(os.environ.get('TOY_SECONDS', '0')))"


def test_it_ends_with_a_table_and_where_the_site_is(built_toy):
    toy, out, err = built_toy
    index = Path(out.strip())
    assert index == toy.root / "_build" / "html" / "index.html"
    assert index.is_file()
    header, *rows = err.splitlines()[-3:]
    assert header.split() == ["chapter", "time", "CPU", "time", "peak", "memory"]
    for row, stem in zip(rows, ("01_toy", "02_other"), strict=True):
        assert re.fullmatch(rf"{stem} +\d+\.\d s +\d+\.\d s +\d+ MB  run now", row)


def test_one_line_of_progress_before_and_after_each_chapter(built_toy):
    lines = built_toy[2].splitlines()
    for stem in ("01_toy", "02_other"):
        mine = [line for line in lines if line.startswith(f"{stem}: ")]
        assert len(mine) == 2
        assert "not known yet (no stored run)" in mine[0]
        assert "done in" in mine[1]


@pytest.mark.parametrize(
    "shown",
    [
        "the constant 777",
        "stream-of-output 9.0 True [2, 3]",
        "frame 4",
        "In words",
        "value-of-a-cell",
        "✓",
        "Claims of the paper",
        "Our own claims",
        "≤ 0.95",
        "Theorem 1",
        'alt="one pixel"',
    ],
)
def test_every_output_is_in_the_page(built_toy, shown):
    toy = built_toy[0]
    page = toy.page("01_toy")
    if shown.startswith("alt"):
        (image,) = re.findall(r'<img[^>]*src="([^"]+\.png)"', page)
        assert (toy.root / "_build/html/chapters" / image).resolve().is_file()
    else:
        assert shown in page


def test_progress_that_overwrites_itself_is_one_line_of_the_page(built_toy):
    text = re.sub(r"<[^>]+>", "", built_toy[0].page("01_toy"))
    assert len(re.findall(r"^frame \d", text, re.MULTILINE)) == 1


def test_records_are_not_shown_and_formulas_in_outputs_are(built_toy):
    page = built_toy[0].page("01_toy")
    assert "application/papermill" not in page
    assert "scrapbook" not in page
    assert r"\(\gamma = 0.9\)" in page


def test_no_cell_has_a_time_limit(monkeypatch, tmp_path):
    """The limit of jupyter-book's own execution is 30 s, after which it drops outputs."""
    from papermill import execute as papermill_execute

    from ictd.book import execute

    asked = {}

    def fake(*paths: str, **options: object) -> None:
        asked.update(options)
        raise RuntimeError("not executed")

    monkeypatch.setattr(papermill_execute, "execute_notebook", fake)
    job = {"notebook": str(tmp_path / "a.ipynb"), "output": "b", "parameters": {}}
    outcome = execute._execute(job, {}, lambda event: None)
    assert outcome["evalue"] == "not executed"
    assert asked["execution_timeout"] == -1


def test_a_page_says_how_it_was_made(built_toy):
    toy = built_toy[0]
    text = re.sub(r"<[^>]+>", "", toy.page("01_toy"))
    head = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"], cwd=toy.root, capture_output=True, text=True
    ).stdout.strip()
    box = text.split("How this page was made", 1)[1][:2000]
    for part in ("gamma = 0.9", "betas = [0.0, 1.0]", "seed = 0", f"Commit: {head}\n"):
        assert part in box
    packages = ("numpy", "torch", "matplotlib")
    versions = [f"{name} {metadata.version(name)}" for name in packages]
    claims = "Claims: 2 pass, 0 fail"
    for part in (
        sys.version.split()[0],
        "ictd 0",
        *versions,
        claims,
        "CPU time",
        "peak memory",
        " UTC, in ",
    ):
        assert part in box
    page = toy.page("01_toy")
    assert page.index("<h1>Title of 01_toy<a class") < page.index("How this page was made")
    assert page.index("How this page was made") < page.index("tag_parameters")


def test_nothing_changed_means_nothing_run_or_rendered(built_toy):
    toy = built_toy[0]
    before = (toy.root / "_build/html/index.html").stat().st_mtime_ns
    start = time.monotonic()
    _, err = toy.ictd("build")
    assert time.monotonic() - start < 10
    assert "up to date" in err
    assert err.count("stored, of 2") == 2
    assert (toy.root / "_build/html/index.html").stat().st_mtime_ns == before


def test_the_claims_of_the_last_build_are_listed(built_toy):
    toy = built_toy[0]
    out, _ = toy.ictd("claims", "--json")
    claims = json.loads(out)["claims"]
    assert [(c["chapter"], c["id"], c["passed"]) for c in claims] == [
        ("01_toy", "bound", True),
        ("01_toy", "sign", True),
    ]
    out, _ = toy.ictd("claims")
    assert re.search(r"passed +01_toy +bound +\(arXiv:2605\.07333v2, Theorem 1\)", out)


def test_the_staged_book_is_executed_and_does_not_execute(built_toy):
    staged = built_toy[0].root / "_build" / "executed"
    config = yaml.safe_load((staged / "_config.yml").read_text())
    assert config["execute"]["execute_notebooks"] == "off"
    assert config["title"] == "toy"
    notebook = json.loads((staged / "chapters" / "01_toy.ipynb").read_text())
    assert not any("injected-parameters" in str(cell["metadata"]) for cell in notebook["cells"])


def test_an_edited_constant_changes_the_page_and_a_fault_leaves_the_last_one(built_toy, tmp_path):
    toy = built_toy[0].copy(tmp_path)
    assert "the constant 777" in toy.page("01_toy")
    (toy.library / "ictd" / "probe.py").write_text("CONSTANT = 8\n")
    _, err = toy.ictd("build", "--record")
    assert re.search(r"01_toy: expected about \d+ s \(ictd/probe\.py changed\)", err)
    assert "the constant 888" in toy.page("01_toy")
    recorded = json.loads((toy.root / "chapters" / "defaults.json").read_text())
    assert set(recorded) == {"01_toy", "02_other"}
    assert [claim["id"] for claim in recorded["01_toy"]["claims"]] == ["bound", "sign"]
    assert recorded["01_toy"]["parameters"]["gamma"] == 0.9
    seconds = baseline.seconds(Project(toy.root))
    assert seconds == {name: entry["seconds"] for name, entry in recorded.items()}

    good = toy.site()
    toy.add("01_toy", "1 / 0")
    toy.add("02_other", "print('the other chapter, again')")
    _, err = toy.ictd("build", status=1)
    assert "01_toy failed in cell 4 (id cell-3): ZeroDivisionError: division by zero" in err
    assert "executed.ipynb" in err
    assert toy.site() == good

    toy.add("01_toy", "print('mended')")
    toy.write_index("See {ref}`nowhere`.")
    _, err = toy.ictd("build", status=1)
    # The other chapter had gone on to its end when the first one failed.
    assert "02_other: " not in err
    assert "WARNING: undefined label: 'nowhere'" in err
    assert toy.site() == good

    toy.write_index("Mended.")
    _, err = toy.ictd("build")
    assert "expected" not in err
    assert "mended" in toy.page("01_toy")
    assert "the other chapter, again" in toy.page("02_other")


def test_a_killed_build_loses_no_finished_chapter(toy, until):
    toy.add("01_quick", "print('quick')")
    toy.add("02_slow", "print('started')", SLOW)
    process = subprocess.Popen(
        [sys.executable, "-m", "ictd", "build"],
        cwd=toy.root,
        env=toy.environment | {"TOY_SECONDS": "600"},
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    runs = toy.root / "_build" / "runs"
    until(lambda: list(runs.glob("01_quick/*/run.json")))
    until(lambda: any("started" in p.read_text() for p in runs.glob("02_slow/.new-*/exec*.ipynb")))
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    assert children
    until(lambda: not any(child.is_running() for child in children))
    assert list(runs.glob("02_slow/.new-*"))
    assert not (toy.root / "_build" / "html").exists()
    _, err = toy.ictd("build")
    assert "01_quick: " not in err
    assert "02_slow: done in" in err
    assert not list(runs.glob("02_slow/.new-*"))
    assert "started" in toy.page("02_slow")


def test_two_builds_at_once_are_safe(built_toy, tmp_path):
    toy = built_toy[0].copy(tmp_path)
    toy.write_index("Another index.")
    builds = [
        subprocess.Popen(
            [sys.executable, "-m", "ictd", "build"],
            cwd=toy.root,
            env=toy.environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    errors = [build.communicate(timeout=240)[1] for build in builds]
    assert [build.returncode for build in builds] == [0, 0], errors
    assert sum("another build of this book is running" in text for text in errors) == 1
    assert sum("up to date" in text for text in errors) == 1
    assert "Another index." in toy.page("index")


def test_a_book_whose_parameters_are_malformed_is_refused_at_once(toy):
    toy.write("01_toy", [("parameters", "gamma = 0.9"), "print(1)"])
    toy.write("02_other", ["print(1)"])
    start = time.monotonic()
    _, err = toy.ictd("build", status=1)
    assert time.monotonic() - start < 5
    assert "01_toy: the parameters cell is not well formed" in err
    assert "02_other: the notebook does not declare its parameters" in err


def test_a_table_of_contents_that_names_a_missing_page_is_refused(toy):
    toy.add("01_toy")
    (toy.root / "chapters" / "01_toy.ipynb").unlink()
    assert "names 'chapters/01_toy'" in toy.ictd("build", status=1)[1]


def test_claims_before_a_build_say_what_to_do(toy):
    toy.add("01_toy")
    assert "ictd build" in toy.ictd("claims", status=1)[1]


@pytest.mark.parametrize("version", ["2.0.0", "2.1.0b1", "10.0"])
def test_jupyter_book_2_is_refused_with_a_word_how_to_get_1(version, monkeypatch, tmp_path):
    monkeypatch.setattr(metadata, "version", lambda name: version)
    with pytest.raises(site.SiteError, match=rf"{re.escape(version)} is installed.*<2"):
        builder.build_book(Project(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_missing_jupyter_book_is_refused_with_a_word_how_to_get_it(monkeypatch, tmp_path):
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(site.SiteError, match=r"pip install -r requirements\.txt"):
        builder.build_book(Project(tmp_path))


@pytest.mark.parametrize(
    ("of_run", "now", "shown"),
    [
        ("aaa", "aaa", "aaa"),
        ("aaa", "bbb", "aaa"),
        ("aaa with uncommitted changes", "bbb", "bbb"),
        ("aaa", "bbb with uncommitted changes", "aaa"),
        ("aaa with uncommitted changes", "bbb with uncommitted changes", "aaa with"),
        ("not under git", "not under git", "not under git"),
    ],
)
def test_the_commit_on_a_page_is_one_that_holds_its_inputs(of_run, now, shown):
    info = {
        "commit": of_run,
        "parameters": {},
        "packages": {},
        "started": "2030-01-01T00:00:00+00:00",
        "seconds": 1.0,
        "cpu_seconds": 1.0,
        "peak_memory": 1,
        "python": "p",
        "ictd": "1",
        "claims": [],
    }
    page = site.with_provenance({"cells": [], "nbformat_minor": 4}, info, now)
    (cell,) = page["cells"]
    assert f"Commit: {shown}" in cell["source"]
    assert "id" not in cell


def test_a_chapter_over_the_limits_is_a_warning(tmp_path):
    """Time depends on the machine: it fails no build."""
    took = {"01_long": (60.1, 1e9), "02_fits": (59.9, 1.4e9), "03_large": (1.0, 1.6e9)}
    runs = [
        StoredRun(tmp_path, {"chapter": name, "cpu_seconds": seconds, "peak_memory": memory})
        for name, (seconds, memory) in took.items()
    ]
    assert builder._over_the_limits(runs) == [
        "warning: 01_long: CPU time 60.1 s; a chapter should take 60 s",
        "warning: 03_large: peak memory 1600 MB; a chapter should take 1500 MB",
    ]


def test_what_the_configuration_names_is_part_of_the_book(toy):
    toy.add("01_toy")
    for name in ("references.bib", "extra/page.html", "icon.svg", "secret.txt", "out/x.md"):
        (toy.root / name).parent.mkdir(exist_ok=True)
        (toy.root / name).write_text("x")
    config = {"bibtex_bibfiles": ["references.bib"], "html": {"favicon": "icon.svg"}}
    config["sphinx"] = {"config": {"html_extra_path": ["extra"]}}
    (toy.root / "_config.yml").write_text(json.dumps(config))
    staged = site.stage(Project(toy.root), {})
    found = {p.relative_to(staged).as_posix() for p in staged.rglob("*") if p.is_file()}
    assert found == {
        "_config.yml",
        "_toc.yml",
        "chapters/01_toy.ipynb",
        "chapters/01_toy.ipynb.as-written",
        "chapters/index.md",
        "claims.json",
        "extra/page.html",
        "icon.svg",
        "references.bib",
    }
    fingerprint = site.fingerprint(staged)
    assert site.fingerprint(site.stage(Project(toy.root), {})) == fingerprint
    (toy.root / "extra" / "page.html").write_text("y")
    assert site.fingerprint(site.stage(Project(toy.root), {})) != fingerprint
