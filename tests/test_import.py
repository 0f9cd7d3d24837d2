"""Importing the library needs NumPy alone and is quick."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ictd

ROOT = str(Path(ictd.__file__).resolve().parents[1])


def run(code: str) -> str:
    """Run code in a fresh interpreter that finds this very copy of the library."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": ROOT},
        cwd=Path(ROOT).anchor,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_loads_numpy_alone() -> None:
    code = (
        "import sys, ictd; print(ictd.__file__, *{m.split('.')[0] for m in sys.modules}, sep='\\n')"
    )
    file, *loaded = run(code).splitlines()
    assert file == str(Path(ictd.__file__))
    assert "numpy" in loaded
    heavy = {"IPython", "matplotlib", "nbclient", "papermill", "pydantic", "scipy", "torch", "yaml"}
    assert heavy.isdisjoint(loaded)


def test_numpy_names_do_not_load_torch() -> None:
    code = """
import sys, ictd, numpy as np
rng = np.random.default_rng(0)
chain = ictd.boyan_chain(5, 0.9, rng)
scores = ictd.inner_product_scores(ictd.sphere_features(5, 3, rng))
ictd.weighted_softmax_td(chain.sample(20, rng), scores, chain.gamma, 3)
assert not hasattr(ictd, "nonsense")
dir(ictd)
print("torch" in sys.modules)
ictd.prompt
print("torch" in sys.modules, "prompt" in vars(ictd))
"""
    assert run(code).split() == ["False", "True", "True"]


def test_a_chapter_loads_its_own_part_of_the_machinery() -> None:
    code = """
import sys
from ictd.book import Chapter
print(*(name for name in ("builder", "comparing", "sweeping") if f"ictd.book.{name}" in sys.modules))
import ictd.book
for name in ictd.book.__all__:
    assert getattr(ictd.book, name).__name__ == name and name in dir(ictd.book)
assert not hasattr(ictd.book, "nonsense")
"""
    assert run(code) == ""


def test_importing_costs_little_more_than_numpy() -> None:
    def seconds(code: str) -> float:
        return float(run(f"{code}\nimport time\nprint(time.process_time())"))

    # Of the processor, and in turn: a load on the machine meets both.
    pairs = [(seconds("import numpy"), seconds("import numpy, ictd")) for _ in range(5)]
    numpy, library = (min(times) for times in zip(*pairs, strict=True))
    assert library < 2 * numpy


@pytest.mark.parametrize("name", ictd.__all__)
def test_every_public_name_resolves_and_is_documented(name: str) -> None:
    assert getattr(ictd, name).__doc__
    assert name in dir(ictd)


def test_the_public_names_are_listed_once_and_in_order() -> None:
    assert list(ictd.__all__) == sorted(set(ictd.__all__))
    assert set(ictd.__all__) <= set(dir(ictd))
    namespace: dict = {}
    exec("from ictd import *", namespace)
    assert set(ictd.__all__) <= set(namespace)


@pytest.mark.parametrize(
    "name",
    [
        "MarkovRewardProcess",
        "Trajectory",
        "boyan_chain",
        "loop_chain",
        "random_chain",
        "weighted_softmax_td",
        "tabular_td",
        "linear_td",
        "empirical_operator",
        "population_operator",
        "prompt",
        "DualHeadTransformer",
        "SoftmaxTransformer",
    ],
)
def test_the_names_others_rely_on_are_public(name: str) -> None:
    assert name in ictd.__all__


@pytest.mark.parametrize("module", ["attention", "statewise", "transformer"])
def test_submodules_are_attributes(module: str) -> None:
    assert getattr(ictd, module).__name__ == f"ictd.{module}"
    assert run(f"import ictd; print(ictd.{module}.__name__)") == f"ictd.{module}"


@pytest.mark.parametrize("name", ["nonsense", "torch", "_private"])
def test_an_unknown_name_is_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"^module 'ictd' has no attribute '{name}'"):
        getattr(ictd, name)
    assert not hasattr(ictd, name)


def test_the_global_random_state_is_never_used() -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    rng = np.random.default_rng(0)
    for family in (ictd.boyan_chain, ictd.loop_chain, ictd.random_chain):
        family(5, 0.9, rng, (20,)).sample(10, rng)
    ictd.sphere_features(5, 3, rng)
    ictd.uniform_features(5, 3, rng)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
