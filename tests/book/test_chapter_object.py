"""What `Chapter` does in a notebook, in an IPython shell of this process."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import yaml

from ictd.book import Chapter, ClaimFailed, ParameterError
from ictd.book.claims import MIME

DECLARATION = """\
gamma: float = 0.9  # discount factor, in [0, 1)
n: int = 10  # states, in [3, 200]
sizes: list[int] = [2, 3]  # sizes, each in [0, 9]
flag: bool = True  # whether to do so
seed: int = 0  # seed of all random numbers, in [0, 4294967295]
"""
CHECK = "from ictd.book import Chapter\nchapter = Chapter()"


def injected(**parameters: object) -> str:
    """The cell that papermill makes of parameters."""
    from papermill.translators import papermill_translators

    return papermill_translators.find_translator("python3", "python").codify(parameters)


def records(outputs: list[dict[str, str]]) -> list[dict[str, object]]:
    return [json.loads(data[MIME]) for data in outputs if MIME in data]


def markdown(outputs: list[dict[str, str]]) -> str:
    return "\n".join(data["text/markdown"] for data in outputs if "text/markdown" in data)


def test_values_are_written_back_typed(kernel):
    kernel.run(DECLARATION, injected(gamma="1e-3", n=100.0, sizes="[0, 1]", flag="false"), CHECK)
    assert (kernel["gamma"], kernel["n"], kernel["sizes"]) == (1e-3, 100, [0, 1])
    assert type(kernel["n"]) is int
    assert kernel["flag"] is False
    assert kernel["chapter"].parameters == {
        "gamma": 1e-3,
        "n": 100,
        "sizes": [0, 1],
        "flag": False,
        "seed": 0,
    }
    assert not kernel["chapter"].at_defaults


@pytest.mark.parametrize("sizes", [[0, 1], (0, 1), range(2), "[0, 1]", "(0, 1)", "range(0, 2)"])
def test_a_list_comes_as_one_however_papermill_was_called(kernel, sizes):
    kernel.run(DECLARATION, injected(sizes=sizes), CHECK)
    assert kernel["sizes"] == [0, 1]


@pytest.mark.parametrize("gamma", [0.5, "0.5", np.float64(0.5), np.float32(0.5)])
def test_a_scalar_comes_as_one_however_papermill_was_called(kernel, gamma):
    kernel.run(DECLARATION, injected(gamma=gamma, n=np.int64(5)), CHECK)
    assert (kernel["gamma"], kernel["n"]) == (0.5, 5)


def test_yaml_and_the_command_line_give_the_same_float(kernel):
    assert yaml.safe_load("gamma: 1e-3")["gamma"] == "1e-3"
    for value in ("1e-3", 1e-3):
        kernel.run(DECLARATION, injected(gamma=value), CHECK)
        assert kernel["gamma"] == 1e-3
        assert type(kernel["gamma"]) is float


def test_an_injected_name_that_is_not_declared_is_refused(kernel):
    with pytest.raises(ParameterError, match=r"gama: no such parameter; did you mean gamma\?"):
        kernel.run(DECLARATION, injected(gama=0.5), CHECK)


def test_the_paths_that_papermill_can_inject_are_no_parameters(kernel):
    kernel.run(DECLARATION, injected(PAPERMILL_INPUT_PATH="a.ipynb"), CHECK)
    assert kernel["chapter"].at_defaults


def test_all_problems_are_reported_at_once(kernel):
    with pytest.raises(ParameterError) as caught:
        kernel.run(DECLARATION, injected(gama=0.5, gamma=float("nan"), n=-1, sizes=[]), CHECK)
    assert len(caught.value.problems) == 4


def test_the_check_can_be_run_again_with_other_values(kernel):
    kernel.run(DECLARATION, injected(gamma=0.5), CHECK)
    kernel.run("gamma = '0.25'", "helper = 3", CHECK)
    assert kernel["gamma"] == 0.25
    kernel.run(CHECK)
    assert kernel["gamma"] == 0.25
    kernel.run(DECLARATION.replace("0.9", "0.8"), CHECK)
    assert kernel["gamma"] == 0.8
    assert kernel["chapter"].at_defaults
    with pytest.raises(ParameterError, match=r"gamma: got 1\.5"):
        kernel.run("gamma = 1.5", CHECK)


def test_names_of_the_readers_own_cells_are_no_parameters(kernel):
    kernel.run(
        "other = 1", DECLARATION, "# Parameters of mine\nmine = 1", "# Parameters\n%who", CHECK
    )
    assert list(kernel["chapter"].parameters) == ["gamma", "n", "sizes", "flag", "seed"]


def test_a_missing_or_malformed_declaration_is_refused(kernel):
    with pytest.raises(ParameterError, match="no parameters are declared"):
        kernel.run(CHECK)
    with pytest.raises(ParameterError, match="must end with a range"):
        kernel.run("gamma: float = 0.9  # discount", CHECK)
    with pytest.raises(ParameterError, match="not defined"):
        kernel.run(DECLARATION, "del gamma, n", CHECK)


def test_outside_a_notebook_the_error_says_what_to_do():
    with pytest.raises(RuntimeError, match=r"ictd\.book\.run"):
        Chapter()


def test_sections_have_independent_streams_that_the_seed_decides(kernel):
    def draw(seed: int, section: str) -> float:
        kernel.run(DECLARATION, f"seed = {seed}", CHECK)
        return float(kernel["chapter"].rng(section).random())

    assert draw(0, "one") == draw(0, "one")
    assert len({draw(0, "one"), draw(0, "two"), draw(1, "one"), draw(1, "two")}) == 4
    kernel.run("gamma: float = 0.9  # discount, in [0, 1)", CHECK)
    with pytest.raises(ParameterError, match="seed"):
        kernel["chapter"].rng("one")


def test_a_claim_is_shown_and_recorded(kernel):
    kernel.run(DECLARATION, CHECK)
    outputs = kernel.run(
        "import numpy as np\n"
        "chapter.claim('fixed', 'the residual of $M$', np.float64(1e-12), at_most=1e-10,"
        " source='arXiv:2605.07333v2, Theorem 1')"
    )
    shown = markdown(outputs)
    for part in ("✓", "fixed", "residual of $M$", "Theorem 1", "1e-12", "≤ 1e-10"):
        assert part in shown
    (record,) = records(outputs)
    assert record == {
        "kind": "claim",
        "id": "fixed",
        "statement": "the residual of $M$",
        "value": 1e-12,
        "at_most": 1e-10,
        "at_least": None,
        "source": "arXiv:2605.07333v2, Theorem 1",
        "holds": None,
        "passed": True,
    }


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        ("1.0, at_most=1.0", True),
        ("1.0, at_least=1.0", True),
        ("1.0, at_least=0.5, at_most=2", True),
        ("1.1, at_most=1.0", False),
        ("0.9, at_least=1.0", False),
        ("float('nan'), at_most=1.0", False),
        ("float('nan'), at_least=1.0", False),
        ("float('nan'), holds=True", False),
        ("float('inf'), at_least=1.0", True),
        ("float('inf'), at_most=1.0", False),
        ("3, holds=True", True),
        ("3, holds=False", False),
        ("3, at_most=5, holds=False", False),
    ],
)
def test_bounds_are_inclusive_and_nan_fails(kernel, arguments, passed):
    kernel.run(DECLARATION, "gamma = 0.5", CHECK)
    (record,) = records(kernel.run(f"chapter.claim('it', 'it holds', {arguments})"))
    assert record["passed"] is passed


def test_a_failed_claim_raises_at_the_defaults_after_it_is_recorded(kernel):
    kernel.run(DECLARATION, CHECK)
    cell = "chapter.claim('it', 'it holds', 2, at_most=1)"
    before = len(kernel.shell.display_pub.outputs)
    with pytest.raises(ClaimFailed, match="it: measured 2, expected ≤ 1"):
        kernel.run(cell)
    outputs = [output["data"] for output in kernel.shell.display_pub.outputs[before:]]
    assert records(outputs)[0]["passed"] is False
    assert "✗" in markdown(outputs)
    kernel.run("gamma = 0.5", CHECK)
    assert "✗" in markdown(kernel.run(cell))


def test_claims_need_a_bound_and_an_id_of_their_own(kernel):
    kernel.run(DECLARATION, CHECK)
    with pytest.raises(ValueError, match="at_most, at_least or holds"):
        kernel.run("chapter.claim('it', 'it holds', 1)")
    with pytest.raises(ValueError, match="finite"):
        kernel.run("chapter.claim('it', 'it holds', 1, at_most=float('nan'))")
    with pytest.raises(ValueError, match="twice in one cell"):
        kernel.run("for _ in range(2):\n    chapter.claim('it', 'it holds', 1, at_most=2)")


def test_a_cell_that_is_run_again_replaces_its_claim(kernel):
    kernel.run(DECLARATION, CHECK)
    kernel.run("chapter.claim('it', 'it holds', 1, at_most=2)")
    kernel.run("chapter.claim('it', 'it still holds', 1, at_most=2)")
    table = markdown(kernel.run("chapter.claims()"))
    assert "it still holds" in table
    assert "it holds" not in table


def test_the_closing_table_keeps_the_papers_claims_and_ours_apart(kernel):
    kernel.run(DECLARATION, "gamma = 0.5", CHECK)
    assert "no claims" in markdown(kernel.run("chapter.claims()"))
    kernel.run(
        "chapter.claim('mine', 'x is large', 1, at_least=2)\n"
        "chapter.claim('other', 'x is small', 1, at_most=2, source='arXiv:1, Theorem 1')\n"
        "chapter.claim('paper', '$|x|$ is small', 1, at_most=2,\n"
        "    source='arXiv:2605.07333v2, Lemma 1')"
    )
    table = markdown(kernel.run("chapter.claims()"))
    theirs, rest = table.split("**Claims of other papers**")
    others, ours = rest.split("**Our own claims**")
    for part, id in ((theirs, "paper"), (others, "other"), (ours, "mine")):
        assert part.count("`") == 2, part
        assert f"`{id}`" in part
    assert r"$\|x\|$" in theirs
    assert "✗ failed" in ours


def test_a_matrix_is_shown_as_an_equation(kernel):
    kernel.run(DECLARATION, CHECK)
    kernel.run("import numpy as np\nM = np.array([[1.0, -0.375, 1 / 3], [-np.inf, 3.0, 1e-14]])")
    shown = markdown(kernel.run("chapter.matrix('M', M)"))
    assert shown.startswith("$$\nM = ")
    assert shown.endswith("\n$$")
    assert r"1 & -\tfrac{3}{8} & \tfrac{1}{3} \\" in shown
    assert r"-\infty & 3 & 0" in shown
    # 0.22 is a rounded number here, and not 11/50.
    mixed = markdown(kernel.run("chapter.matrix('M', np.array([[0.22, np.pi], [1.0, 0.5]]))"))
    assert "0.22 & 3.14 \\\\\n1 & 0.5" in mixed
    assert r"\left[\begin{array}{rrr}" in shown
    named = markdown(kernel.run("chapter.matrix('M', M, rows=['first', 'second'])"))
    assert r"\begin{array}{l|rrr}" in named
    assert r"\text{second} & -\infty" in named
    with pytest.raises(ValueError, match="each of 2 rows, got 1"):
        kernel.run("chapter.matrix('M', M, rows=['first'])")


def test_a_number_is_recorded_and_not_shown(kernel):
    kernel.run(DECLARATION, CHECK)
    outputs = kernel.run("import numpy as np\nchapter.number('x', np.int64(3), 'a count')")
    assert markdown(outputs) == ""
    expected = {"kind": "number", "name": "x", "value": 3, "meaning": "a count"}
    assert records(outputs) == [expected]
    (record,) = records(kernel.run("chapter.number('y', float('nan'), 'undefined')"))
    assert record["value"] == "nan"
    for value in ("'3'", "True", "[1.0]", "np.array([1.0, 2.0])"):
        with pytest.raises(ValueError, match="one real number"):
            kernel.run(f"chapter.number('z', {value}, 'no number')")


def test_importing_the_machinery_is_light():
    heavy = ("papermill", "torch", "nbformat", "nbclient", "IPython", "matplotlib", "jupyter_book")
    code = f"import sys, ictd.book; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_failed_claim_does_not_stop_a_reader_in_jupyter(kernel, monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", "chapter.ipynb")
    kernel.run(DECLARATION, CHECK)
    assert "✗ failed" in markdown(kernel.run("chapter.claim('it', 'is small', 2, at_most=1)"))
