"""What decides whether a chapter runs again, and how runs are stored."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from ictd.book import files, provenance
from ictd.book.cache import KEPT, Store
from ictd.book.errors import BookError

NOTEBOOK = {"cells": [{"cell_type": "code", "source": "x = 1", "metadata": {}}]}


def parts(**other: Any) -> dict[str, Any]:
    return {
        "notebook": "n",
        "parameters": {"gamma": 0.9},
        "sources": {"ictd/td.py": "a"},
        "python": "CPython 3.11",
        "packages": {"numpy": "2.0"},
        **other,
    }


def add(store: Store, at_defaults: bool = False, seconds: float = 1.0, **other: Any) -> str:
    aside = store.new_folder()
    (aside / "executed.ipynb").write_text("{}")
    info = {"parts": parts(**other), "at_defaults": at_defaults, "seconds": seconds}
    return store.add(aside, info).key


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path, "01_toy")


def test_a_run_is_found_by_what_decides_it(store):
    assert store.find(parts()) is None
    key = add(store)
    found = store.find(parts())
    assert found is not None
    assert (found.key, found.notebook.read_text()) == (key, "{}")


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"notebook": "m"}, "the notebook changed"),
        ({"parameters": {"gamma": 0.5}}, "gamma changed"),
        ({"sources": {"ictd/td.py": "b"}}, "ictd/td.py changed"),
        ({"sources": {"ictd/td.py": "a", "ictd/mrp.py": "a"}}, "ictd/mrp.py changed"),
        ({"python": "CPython 3.12"}, "CPython 3.12 instead of CPython 3.11"),
        ({"packages": {"numpy": "2.1"}}, "another version of numpy"),
        ({"packages": {}}, "another version of numpy"),
    ],
)
def test_anything_that_decides_it_makes_it_run_again_and_is_named(store, other, why):
    assert store.why(parts()) == "no stored run"
    add(store)
    assert store.find(parts(**other)) is None
    assert store.why(parts(**other)) == why


def test_the_parts_of_a_run_follow_notebook_parameters_sources_and_versions(tmp_path, monkeypatch):
    def key(notebook: dict[str, Any] = NOTEBOOK, **parameters: Any) -> str:
        return provenance.digest(provenance.run_parts(notebook, parameters, tmp_path / "none"))

    package = tmp_path / "ictd"
    (package / "book").mkdir(parents=True)
    (package / "td.py").write_text("STEP = 1\n")
    monkeypatch.setattr(provenance, "PACKAGE", package)
    first = key(gamma=0.9)
    assert key(gamma=0.9) == first
    (cell,) = NOTEBOOK["cells"]
    as_lines = {**cell, "source": ["x = ", "1"], "outputs": [], "execution_count": 3, "id": "a"}
    assert key({"cells": [as_lines], "metadata": {"x": 1}}, gamma=0.9) == first
    others = [key(gamma=0.8), key(gamma=0.9, n=1), key(gamma="0.9")]
    for change in ({"source": "x = 2"}, {"cell_type": "raw"}, {"metadata": {"tags": ["a"]}}):
        others.append(key({"cells": [{**cell, **change}]}, gamma=0.9))
    (package / "td.py").write_text("STEP = 2\n")
    others.append(key(gamma=0.9))
    (package / "td.py").write_text("STEP = 1\n")
    (package / "book" / "new.py").write_text("")
    others.append(key(gamma=0.9))
    (package / "book" / "new.py").unlink()
    assert key(gamma=0.9) == first
    monkeypatch.setattr(provenance, "package_versions", lambda: {"numpy": "0.1"})
    others.append(key(gamma=0.9))
    monkeypatch.setattr(provenance.platform, "python_version", lambda: "3.99")
    others.append(key(gamma=0.9))
    assert len({first, *others}) == len(others) + 1


def test_the_versions_are_those_of_the_library_and_the_book():
    versions = provenance.package_versions()
    assert versions["numpy"] == metadata.version("numpy")
    assert {"torch", "papermill", "matplotlib"} <= set(versions)
    assert "pytest" not in versions


def test_a_library_that_is_not_installed_is_refused(monkeypatch):
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", missing)
    with pytest.raises(BookError, match="pip install"):
        provenance.package_versions.__wrapped__()


def test_half_written_runs_are_never_read(store):
    key = add(store)
    aside = store.new_folder()
    (aside / "run.json").write_text('{"format": 1')
    for text in ('{"format": 1', "", "[]", '{"format": 0}'):
        (store.folder / key / "run.json").write_text(text)
        assert store.find(parts()) is None
        assert store.runs() == []
        assert store.why(parts()) == "no stored run"


def test_what_dead_processes_left_is_removed_and_what_live_ones_make_is_not(store):
    add(store)
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    left = store.folder / f".new-{done.stdout.strip()}-abc"
    left.mkdir()
    mine = store.new_folder()
    assert not left.exists()
    store.new_folder()
    assert mine.exists()


def test_a_run_again_takes_the_place_of_the_last(store):
    add(store, seconds=1.0)
    add(store, seconds=2.0)
    (run,) = store.runs()
    assert run.info["seconds"] == 2.0


def test_only_the_last_runs_are_kept_and_always_one_at_the_defaults(store):
    def age(key: str, seconds: int) -> None:
        os.utime(store.folder / key, (seconds, seconds))

    age(add(store, at_defaults=True), 10)
    keys = []
    for number in range(KEPT + 2):
        keys.append(add(store, parameters={"gamma": number}))
        age(keys[-1], 20 + number)
    kept = {run.key for run in store.runs()}
    assert set(keys[-KEPT:]) <= kept
    assert keys[0] not in kept
    assert store.find(parts()) is not None


def test_a_used_run_counts_as_recent(store):
    first = add(store)
    os.utime(store.folder / first, (10, 10))
    second = add(store, parameters={"gamma": 0.1})
    os.utime(store.folder / second, (20, 20))
    store.find(parts())
    assert [run.key for run in store.runs()] == [first, second]


def test_the_expected_time_is_that_of_the_same_parameters(store):
    add(store, seconds=5.0)
    add(store, parameters={"gamma": 0.1}, seconds=9.0)
    nearest = store.nearest(parts(notebook="changed"))
    assert nearest is not None
    assert nearest.info["seconds"] == 5.0


def test_a_failed_run_is_kept_apart(store):
    aside = store.new_folder()
    (aside / "executed.ipynb").write_text("half")
    kept = store.keep_failed(aside)
    assert (kept / "executed.ipynb").read_text() == "half"
    assert store.runs() == []


def test_a_file_is_whole_or_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "x.json"
    files.write_json(path, {"a": 1})
    monkeypatch.setattr(os, "replace", lambda *names: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        files.write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [child.name for child in path.parent.iterdir()] == ["x.json"]


def test_a_replacement_that_was_killed_half_way_is_undone(tmp_path, monkeypatch):
    site, new = tmp_path / "html", tmp_path / "new"
    for folder in (site, new):
        folder.mkdir()
        (folder / "index.html").write_text(folder.name)
    rename = os.rename

    def killed(source: Path, target: Path) -> None:
        if source == new:
            raise KeyboardInterrupt
        rename(source, target)

    monkeypatch.setattr(os, "rename", killed)
    with pytest.raises(KeyboardInterrupt):
        files.replace_folder(new, site)
    monkeypatch.setattr(os, "rename", rename)
    files.recover_folder(site)
    assert (site / "index.html").read_text() == "html"
    files.replace_folder(new, site)
    assert (site / "index.html").read_text() == "new"
    assert list(tmp_path.iterdir()) == [site]


def test_a_lock_is_waited_for(tmp_path):
    events = []
    inside, waiting = threading.Event(), threading.Event()

    def other() -> None:
        inside.wait(10)
        with files.locked(tmp_path / "lock", waiting.set):
            events.append("other")

    thread = threading.Thread(target=other)
    thread.start()
    with files.locked(tmp_path / "lock", lambda: events.append("waited")):
        inside.set()
        assert waiting.wait(10)
        events.append("first")
    thread.join(10)
    assert events == ["first", "other"]


def test_threads_that_write_leave_the_mask_of_the_process(tmp_path, monkeypatch):
    set_mask = os.umask

    def slowly(mask: int) -> int:
        last = set_mask(mask)
        time.sleep(0.01)
        return last

    before = set_mask(0o27)
    try:
        monkeypatch.setattr("ictd._files.os.umask", slowly)
        names = [tmp_path / f"{number}.json" for number in range(8)]
        threads = [threading.Thread(target=files.write_json, args=(p, 1)) for p in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        after = set_mask(before)
    assert {path.stat().st_mode & 0o777 for path in names} == {0o640}
    assert after == 0o27


@pytest.mark.parametrize("code", ["import mine", "import numpy, mine as m", "from mine import f"])
def test_a_module_beside_the_notebook_that_it_imports_is_a_part(tmp_path, code):
    notebook = {"cells": [{"cell_type": "code", "source": f"%pylab\n{code}", "metadata": {}}]}

    def parts_now() -> dict[str, Any]:
        return provenance.run_parts(notebook, {}, tmp_path)

    assert "modules" not in parts_now()
    (tmp_path / "mine.py").write_text("def f(): return 1\n")
    (tmp_path / "helper.py").write_text("")
    first = parts_now()
    assert set(first["modules"]) == {"mine.py", "helper.py"}
    (tmp_path / "mine.py").write_text("def f(): return 2\n")
    assert provenance.changes(first, parts_now()) == ["mine.py changed"]
    other = {"cells": [{"cell_type": "code", "source": "import numpy", "metadata": {}}]}
    assert "modules" not in provenance.run_parts(other, {}, tmp_path)


def test_a_package_beside_the_notebook_is_a_part(tmp_path):
    notebook = {"cells": [{"cell_type": "code", "source": "from mine.a import f", "metadata": {}}]}
    for name in ("mine", "unused"):
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / "__init__.py").write_text("")
        (tmp_path / name / "sub" / "a.py").write_text("")
    found = provenance.run_parts(notebook, {}, tmp_path)["modules"]
    assert set(found) == {"mine/__init__.py", "mine/sub/a.py"}
