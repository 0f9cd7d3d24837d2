"""What the chapters took at their defaults, by the runs that the site was made of."""

from __future__ import annotations

import pytest
from chapter_runs import CHAPTERS, ROOT

from ictd.book.builder import built_runs
from ictd.book.machine import MEMORY_PER_CHAPTER
from ictd.book.project import Project


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_peak_memory_is_below_the_limit(chapter) -> None:
    """Its processes together, as recorded: the time depends on what else the machine does."""
    (info,) = [r.info for r in built_runs(Project(ROOT)) if r.info["chapter"] == chapter.stem]
    assert info["at_defaults"]
    assert MEMORY_PER_CHAPTER == 1.5e9
    # A kernel and the process that feeds it are more than 100 MB.
    assert 100e6 < info["peak_memory"] < MEMORY_PER_CHAPTER
    assert info["cpu_seconds"] > 1
