"""The benchmark scripts run; what they measure is for a reader, and no test times it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent / "benchmarks" / "operator_cost.py"


def test_the_benchmark_of_the_operator_runs_at_a_small_size() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--small"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^ +10,000 +\d+\.\d+ s +\d+\.\d MB$", done.stdout, re.MULTILINE)
    assert re.search(r"^ +1,000 .* +\d+x$", done.stdout, re.MULTILINE)
    assert re.search(r"^time grows as n\^-?\d+\.\d\d$", done.stdout, re.MULTILINE)
    assert re.search(r"^times grow as S\^-?\d+\.\d\d, S\^", done.stdout, re.MULTILINE)
    assert len(re.findall(r"^ +10 .*x$", done.stdout, re.MULTILINE)) == 1
