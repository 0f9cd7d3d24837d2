"""Settings of the whole test run.

Tests marked `browser` look at the built site in Chromium. Where playwright or Chromium is missing they are
left out, and the report's header says so; with CI=true they are run, and fail. With ICTD_NO_SKIP=1 the
whole run fails if any test was skipped, deselected or expected to fail.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator

import pytest
from hypothesis import settings

# The tensors here are tiny: threads would only wait for each other. Read when torch is first imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

STRICT = os.environ.get("ICTD_NO_SKIP") == "1"
BROWSER_NEEDED = STRICT or os.environ.get("CI") == "true"
NOT_RUN = ("skipped", "deselected", "xfailed", "xpassed")

# The same examples in every run; no deadline, since a busy machine is not a fault.
settings.register_profile("ictd", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ictd")


def _missing_for_browser_tests() -> str | None:
    if importlib.util.find_spec("playwright") is None:
        return "the Python package playwright"
    if not any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")):
        return "Chromium"
    return None


def pytest_report_header() -> str | None:
    missing = _missing_for_browser_tests()
    if missing is None:
        return None
    if BROWSER_NEEDED:
        return f"browser tests will fail: {missing} is missing"
    return f"browser tests are left out: {missing} is missing"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if BROWSER_NEEDED or _missing_for_browser_tests() is None:
        return
    left_out = [item for item in items if item.get_closest_marker("browser")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("browser")]


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
