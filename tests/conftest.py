"""Settings of the whole test run.

Tests marked `browser` look at the built site in Chromium, those marked `axe` also with axe-core, those
marked `pdf` at the PDF of the book. Where playwright, Chromium, axe-core or the PDF is missing they are
left out, and the report's header says so; with CI=true they are run, and fail. With ICTD_NO_SKIP=1 the
whole run fails if any test was skipped, deselected or expected to fail.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Iterator

import pytest
from browser_checks import AXE, CHROMIUM, CHROMIUM_FLAGS
from hypothesis import settings
from site_checks import PROJECT

# The tensors here are tiny: threads would only wait for each other. Read when torch is first imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

STRICT = os.environ.get("ICTD_NO_SKIP") == "1"
BROWSER_NEEDED = STRICT or os.environ.get("CI") == "true"
_CHAPTER = re.compile(r"tests/chapters/[^\[]*\[(?:[a-z]+-)?(\d\d)[-_]")
# The groups of tests that take longest, see `_group_of`; all others come after them.
LONGEST = (
    "chapter 09",
    "chapter 06",
    "tests/book/test_run.py",
    "tests/book/test_sweep.py",
    "chapter 05",
    "tests/site/test_browser.py",
    "chapter 07",
    "chapter 01",
    "chapter 04",
    "chapter 03",
    "chapter 02",
    "tests/book/test_build.py",
)
# The packages that read a PDF.
READERS = ("pypdf", "pypdfium2")
NOT_RUN = ("skipped", "deselected", "xfailed", "xpassed")

# The same examples in every run; no deadline, since a busy machine is not a fault.
settings.register_profile("ictd", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ictd")


def _missing() -> dict[str, str]:
    """What is missing here for the tests of a mark, by the mark."""
    browser, axe = None, None
    if importlib.util.find_spec("playwright") is None:
        browser = "the Python package playwright"
    elif not any(shutil.which(name) for name in CHROMIUM):
        browser = "Chromium"
    if not AXE.is_file():
        axe = "axe-core (.ci/run says how it is installed)"
    pdf = next((name for name in READERS if importlib.util.find_spec(name) is None), None)
    if pdf is None and not (PROJECT / "_build" / "book.pdf").is_file():
        pdf = "_build/book.pdf (make pdf)"
    missing = {"browser": browser, "axe": browser or axe, "pdf": pdf}
    return {mark: what for mark, what in missing.items() if what}


def pytest_report_header() -> list[str]:
    happens = "will fail" if BROWSER_NEEDED else "are left out"
    return [f"{mark} tests {happens}: {what} is missing" for mark, what in _missing().items()]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not BROWSER_NEEDED:
        _leave_out(config, items)
    # With --no-loadscope-reorder, groups are begun in this order.
    if hasattr(config, "workerinput"):
        places = {group: place for place, group in enumerate(LONGEST)}
        items.sort(key=lambda item: places.get(_group_of(item.nodeid), len(places)))


def _leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    missing = _missing()
    left_out = [item for item in items if any(map(item.get_closest_marker, missing))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _group_of(nodeid: str) -> str:
    """What goes to one worker as a whole: a file of tests; of those of the chapters, a chapter."""
    chapter = _CHAPTER.match(nodeid)
    return f"chapter {chapter[1]}" if chapter else nodeid.partition("::")[0]


# Of xdist, which may not be there.
@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object | None:
    """`--dist loadfile`, but with the groups of `_group_of` in the place of files."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _group_of(nodeid)

    return Groups(config, log)


# One browser a module, not a session: while playwright runs, no other test can use asyncio in this thread.
@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        pytest.fail("no Chromium on PATH; on Debian: apt install chromium", pytrace=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


def _not_run(config: pytest.Config) -> dict[str, int]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    stats = reporter.stats if reporter is not None else {}
    return {kind: len(stats[kind]) for kind in NOT_RUN if stats.get(kind)}


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    if STRICT and session.exitstatus == 0 and _not_run(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    yield


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    if STRICT and (not_run := _not_run(config)):
        counts = ", ".join(f"{n} {kind}" for kind, n in not_run.items())
        terminalreporter.section("not run", red=True)
        terminalreporter.line(f"ICTD_NO_SKIP=1 allows no test that is left out: {counts}")
