"""The explorer: its numbers by another route, its page's sentences, and what Sphinx makes of it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bs4 import BeautifulSoup
from PIL import Image

import ictd
from ictd.book.explorer import data, figure, page, settings

ROOT = Path(ictd.__file__).resolve().parents[1]
PAGE = (ROOT / "chapters" / "explorer.md").read_text(encoding="utf-8")
SIZES = {name: len(steps) for name, steps in settings.GRID.items()}
DATA = data.compute()

# Half a unit of the fifth digit, which is the last that is kept.
ROUNDED = 5.001e-5


def near(value: Any) -> Any:
    return pytest.approx(value, rel=ROUNDED, abs=data.SMALLEST)


def random_settings(count: int) -> list[dict[str, float]]:
    rng = np.random.default_rng(11)
    drawn = [
        {name: rng.choice(steps) for name, steps in settings.GRID.items()} for _ in range(count)
    ]
    # The places where something is singular or missing.
    corners = ["gamma=0&beta=0", "gamma=0&n=5", "beta=0&n=5", "gamma=0.99&beta=64&n=5"]
    return [{k: float(v) for k, v in one.items()} for one in drawn] + [
        settings.parse(corner) for corner in corners
    ]


each_setting = pytest.mark.parametrize("setting", random_settings(20), ids=settings.address)


# ------------------------------------------------------------------------------------------ another route


def chain_of(gamma: float) -> tuple[Any, Any, Any, Any, Any]:
    """P, r, v_π, features and the states of the longest context."""
    chain, x, path = settings.draw(gamma)
    P, r = chain.transition, chain.reward
    return P, r, np.linalg.solve(np.eye(6) - gamma * P, r), x, path.states


def nu_of(w: Any, P: Any, gamma: float) -> float:
    Q = np.sqrt(w)[:, None] * P / np.sqrt(w)
    return float(gamma * np.linalg.eigvalsh((Q + Q.T) / 2)[-1])


def rate_of(M: Any, P: Any, gamma: float) -> float:
    """The largest |1 − λ|, without as many of the smallest λ as M has no directions for."""
    eigenvalues = np.linalg.eigvals(M @ (np.eye(6) - gamma * P))
    moving = np.argsort(np.abs(eigenvalues))[6 - np.linalg.matrix_rank(M, tol=1e-12) :]
    return float(np.abs(1 - eigenvalues[moving]).max())


def by_position(setting: dict[str, float]) -> dict[str, Any]:
    """Everything about the context, by sums over its transitions, as the paper writes it."""
    gamma, beta, n, depth = (setting[name] for name in settings.GRID)
    _, r, goal, x, path = chain_of(gamma)
    sources, following = path[: int(n)], path[1 : int(n) + 1]
    K = np.exp(beta * (x @ x[sources].T - 1))  # unit vectors: no exponent is positive
    K = K / K.sum(1, keepdims=True)
    M = K @ np.eye(6)[sources]
    v, values = np.zeros(6), [np.zeros(6)]
    for _ in range(int(depth)):
        v = v + K @ (r[sources] + gamma * v[following] - v[sources])
        values.append(v)
    N = np.bincount(sources, minlength=6)
    P = np.zeros((6, 6))
    np.add.at(P, (sources, following), 1)
    seen = np.flatnonzero(N)
    P[seen] /= N[seen, None]
    inside = np.ix_(seen, seen)
    found = {"M": M, "values": values, "error": [np.abs(v - goal).max() for v in values]}
    found |= {"diagonality": M.diagonal().min(), "rate": rate_of(M, P, gamma), "nu": None}
    found |= {"distance": None, "visits": N}
    if gamma == 0:
        found["nu"] = 0.0
    if path[int(n)] in seen:
        w = N * (np.exp(beta * (x @ x.T - 1)) @ N)
        found["nu"] = nu_of(w[seen], P[inside], gamma)
        rest = np.linalg.solve(np.eye(len(seen)) - gamma * P[inside], r[seen])
        found["distance"] = [np.abs(v[seen] - rest).max() for v in values]
    return found


def entries(of: str, setting: dict[str, float]) -> dict[str, Any]:
    i, j, k, _ = settings.index(setting)
    if of == "context":
        return {name: table[i][k][j] for name, table in DATA[of].items()}
    return {name: table[i][j] for name, table in DATA[of].items()}


@each_setting
def test_kernel_and_visits(setting: dict[str, float]) -> None:
    _, j, k, _ = settings.index(setting)
    expected = by_position(setting)
    assert np.abs(np.array(DATA["kernel"][k][j]) - expected["M"]).max() <= 6e-6
    assert DATA["visits"][k] == expected["visits"].tolist()


@each_setting
def test_conditions_of_the_context(setting: dict[str, float]) -> None:
    found, expected = entries("context", setting), by_position(setting)
    check_conditions(found, expected, setting["gamma"])
    assert found["full_rank"] == (setting["beta"] > 0)


@each_setting
def test_conditions_of_the_chain(setting: dict[str, float]) -> None:
    gamma, beta = setting["gamma"], setting["beta"]
    P, _, _, x, _ = chain_of(gamma)
    left = np.linalg.eig(P.T)
    mu = np.abs(left[1][:, np.argmin(np.abs(left[0] - 1))].real)
    mu = mu / mu.sum()
    G = np.exp(beta * (x @ x.T - 1))
    M = G * mu / (G @ mu)[:, None]
    expected = {"diagonality": M.diagonal().min(), "nu": nu_of(mu * (G @ mu), P, gamma)}
    expected["rate"] = rate_of(M, P, gamma)
    check_conditions(entries("population", setting), expected, gamma)


def check_conditions(found: dict[str, Any], expected: dict[str, Any], gamma: float) -> None:
    for name in ("diagonality", "rate"):
        assert found[name] == near(expected[name])
    if expected["nu"] is None:
        assert found["nu"] is None
    else:
        assert found["nu"] == near(expected["nu"])
    assert found["assumption"] == (expected["diagonality"] > (1 + gamma) / 2)
    assert found["theorem_a"] == (expected["nu"] is not None and expected["nu"] < 1)
    assert found["converges"] == (expected["rate"] < 1)


@each_setting
def test_errors(setting: dict[str, float]) -> None:
    i, j, k, depth = settings.index(setting)
    expected = by_position(setting)
    for name in ("error", "distance"):
        curve = DATA[name][i][k][j]
        if expected[name] is None:
            assert curve is None
        else:
            assert curve[: depth + 1] == near(expected[name])


def test_the_distance_is_over_visited_states() -> None:
    """On the page, the one context that misses a state ends there; this one does not."""
    chain, x, _ = settings.draw(0.5)
    context = ictd.Trajectory(np.array([0, 1, 0, 2, 0]), chain.reward[[0, 1, 0, 2]])
    operator = ictd.empirical_operator(context, ictd.inner_product_scores(x, 16.0))
    _, distance = data.curves(operator, chain)
    values, fixed = operator.values(0.5, 80), operator.fixed_point(0.5)
    assert distance[:5] == near(np.abs(values - fixed)[:5, :3].max(1))
    assert distance[80] == 0 < np.abs(values - fixed)[80].max()


def test_a_corner_misses_a_state_and_its_end() -> None:
    """Else the cases without ṽ and without a certificate would not have been tried."""
    assert DATA["visits"][0].count(0) == 1
    assert DATA["ends_in_source"] == [False] + [True] * (SIZES["n"] - 1)
    assert entries("context", settings.parse("n=5"))["nu"] is None


# --------------------------------------------------------------------------------------- as the page has it


def shape(value: Any) -> tuple[int, ...]:
    return (len(value), *shape(value[0])) if isinstance(value, list) else ()


def test_every_setting_is_there() -> None:
    G, B, N, L = (SIZES[name] for name in ("gamma", "beta", "n", "depth"))
    assert G >= 8
    assert B >= 8
    assert N >= 6
    assert settings.GRID["depth"] == list(range(L))
    assert L > 60
    assert np.shape(DATA["kernel"]) == (N, B, 6, 6)
    assert np.shape(DATA["error"]) == (G, N, B, L)
    for i, row in enumerate(DATA["distance"]):
        for k, curves in enumerate(row):
            known = DATA["ends_in_source"][k]
            assert len(curves) == B, (i, k)
            assert all(c is not None and len(c) == L if known else c is None for c in curves), (
                i,
                k,
            )
    for table in DATA["context"].values():
        assert shape(table) == (G, N, B)
    for table in DATA["population"].values():
        assert shape(table) == (G, B)


def test_the_data_are_json_that_may_stand_in_a_page() -> None:
    text = data.as_json()

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    assert json.loads(text, parse_constant=refuse) == DATA
    assert len(text) < 1_000_000
    assert "<" not in text


def test_numbers_have_five_digits_and_what_is_not_finite_is_none() -> None:
    values = np.array([[1 / 3, 1e30 / 3], [np.inf, np.nan], [-np.inf, 2.0]])
    assert data.numbers(values) == [[0.33333, 3.3333e29], [None, None], [None, 2]]
    assert json.dumps(data.numbers(np.array([1e300, 0.0]))) == "[1e+300, 0]"


def test_contexts_are_nested_and_no_gamma_changes_them() -> None:
    longest = settings.draw(0.5)[2]
    for gamma in settings.GRID["gamma"]:
        chain, x, path = settings.draw(gamma)
        assert (path.states == longest.states).all()
        assert np.abs(np.linalg.norm(x, axis=1) - 1).max() < 1e-12
        assert chain.gamma == gamma
    for n in settings.GRID["n"]:
        head = settings.first(longest, int(n))
        assert head.n == n
        assert (head.states == longest.states[: int(n) + 1]).all()
        assert (head.rewards == longest.rewards[: int(n)]).all()


def test_a_setting_is_read_and_written() -> None:
    assert settings.parse("n=5&gamma=0.3") == {"gamma": 0.3, "beta": 8, "n": 5, "depth": 20}
    for setting in random_settings(10):
        assert settings.parse(settings.address(setting)) == setting


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gama=0.9", "gamma, beta, n, depth"),
        ("n=5&n=10", "at most once, got 'n=10'"),
        ("gamma=0.91", r"gamma must be one of 0, 0.3, .* got '0.91'"),
        ("depth=81", "depth must be one of"),
        ("beta=", "got ''"),
        ("", "got ''"),
    ],
)
def test_a_setting_off_the_grid_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        settings.parse(text)


# --------------------------------------------------------------------------------------- what the page says


def both(setting: dict[str, float], **verdicts: bool) -> bool:
    """Whether context and chain have these verdicts."""
    return all(
        entries(of, setting)[name] == verdict
        for of in ("context", "population")
        for name, verdict in verdicts.items()
    )


def error(setting: dict[str, float], **other: float) -> float:
    i, j, k, depth = settings.index({**setting, **other})
    return float(DATA["error"][i][k][j][depth])


def take_turns(setting: dict[str, float]) -> None:
    sharp = setting["beta"] == 32
    assert both(setting, assumption=sharp, theorem_a=not sharp, converges=True)
    assert {entries(of, setting)["rate"] for of in ("context", "population")} == {0.9}


def both_fail(setting: dict[str, float]) -> None:
    assert both(setting, assumption=False, theorem_a=False, converges=True)
    assert entries("context", setting)["rate"] == 0.99


def five_diverge(setting: dict[str, float]) -> None:
    diverging = [
        beta
        for beta in settings.GRID["beta"]
        if not entries("context", {**setting, "beta": beta})["converges"]
    ]
    assert diverging == [1, 2]
    states = settings.draw(0.9)[2].states[:6]
    assert states[-1] == 4
    assert 4 not in states[:-1]


def converges_to_worse_than_zero(setting: dict[str, float]) -> None:
    assert entries("context", setting)["converges"]
    chain, x, path = settings.draw(setting["gamma"])
    scores = ictd.inner_product_scores(x, setting["beta"])
    operator = ictd.empirical_operator(settings.first(path, 5), scores)
    end = np.abs(operator.limit(setting["gamma"]) - chain.value).max()
    assert min(end, error(setting)) > np.abs(chain.value).max()
    assert error(setting) == pytest.approx(end, rel=1e-3)


def ten_converge(setting: dict[str, float]) -> None:
    assert all(
        entries("context", {**setting, "gamma": gamma, "beta": beta})["converges"]
        for gamma in settings.GRID["gamma"]
        for beta in settings.GRID["beta"]
    )


def smallest_at_19(setting: dict[str, float]) -> None:
    curve = [error(setting, depth=depth) for depth in settings.GRID["depth"]]
    assert curve.index(min(curve)) == 19
    assert curve[80] > 5 * curve[19]


def an_eighth_is_left(setting: dict[str, float]) -> None:
    left = error(setting)
    assert left < error(setting, n=100) / 8
    assert all(
        error(setting, beta=beta) == pytest.approx(left, rel=0.01) for beta in (4, 16, 32, 64)
    )


def flat(setting: dict[str, float]) -> None:
    for k, _ in enumerate(settings.GRID["n"]):
        kernel = np.array(DATA["kernel"][k][0])
        assert (kernel == kernel[0]).all()
    found = entries("context", setting)
    assert found["rate"] == pytest.approx(setting["gamma"], abs=1e-4)
    assert found["nu"] == pytest.approx(setting["gamma"], abs=1e-4)
    lowest = min(
        error(setting, n=n, depth=depth)
        for n in settings.GRID["n"]
        for depth in settings.GRID["depth"]
    )
    assert lowest > 0.8


SAID: dict[str, Callable[[dict[str, float]], None]] = {
    "gamma=0.9&beta=8&n=1000": take_turns,
    "gamma=0.9&beta=32&n=1000": take_turns,
    "gamma=0.99&beta=8&n=1000": both_fail,
    "gamma=0.9&beta=2&n=5&depth=80": five_diverge,
    "gamma=0.9&beta=8&n=5&depth=80": converges_to_worse_than_zero,
    "gamma=0.9&beta=2&n=10&depth=80": ten_converge,
    "gamma=0.9&beta=8&n=100&depth=80": smallest_at_19,
    "gamma=0.9&beta=8&n=10000&depth=80": an_eighth_is_left,
    "gamma=0.9&beta=0&n=10000&depth=80": flat,
}


@pytest.mark.parametrize("text", SAID)
def test_what_is_said_of_a_setting_holds(text: str) -> None:
    SAID[text](settings.parse(text))


def test_each_setting_that_the_page_names_is_checked() -> None:
    named = re.findall(r"\{setting\}`[^<`]+<([^>`]+)>`", PAGE)
    assert named == list(SAID)
    assert PAGE.count("{setting}") == len(named)


def test_the_seed_is_the_first_of_its_kind() -> None:
    assert f"{settings.SEED} is the first, from 0 on," in PAGE
    shown = [seed for seed in range(settings.SEED + 1) if shows_everything(seed)]
    assert shown == [settings.SEED]


def shows_everything(seed: int) -> bool:
    """Whether at γ = 0.9 the conditions take turns on the chain, and some context diverges."""
    rng = np.random.default_rng(seed)
    chain = ictd.boyan_chain(6, 0.9, rng)
    x = ictd.sphere_features(6, 3, rng)
    scores = np.stack([ictd.inner_product_scores(x, beta) for beta in settings.GRID["beta"]])
    population = ictd.population_operator(chain, scores)
    assumption, a = population.margin(0.9) > 0, population.nu(0.9) < 1
    if not ((assumption & ~a).any() and (a & ~assumption).any()):
        return False
    path = chain.sample(10_000, rng)
    heads = [settings.first(path, int(n)) for n in settings.GRID["n"]]
    return any((ictd.empirical_operator(head, scores).rate(0.9) >= 1).any() for head in heads)


@pytest.mark.parametrize("setting", [settings.DEFAULT, *random_settings(6)], ids=settings.address)
def test_the_code_on_the_page_gives_the_numbers(setting: dict[str, float]) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    given = ", ".join(f"{setting[name]:g}" for name in settings.GRID)
    line = "gamma, beta, n, depth = "
    code, replaced = re.subn(rf"^{line}.*$", line + given, code, flags=re.MULTILINE)
    assert replaced == 1
    printed, found = io.StringIO(), {}
    with contextlib.redirect_stdout(printed):
        exec(code, found)
    i, j, k, depth = settings.index(setting)
    assert data.numbers(found["error"]) == near(DATA["error"][i][k][j][depth])
    assert np.abs(found["kernel"] - DATA["kernel"][k][j]).max() < 6e-6
    for name, of in (("context", "context"), ("chain", "population")):
        operator, expected = found["operators"][name], entries(of, setting)
        assert data.numbers(operator.nu(setting["gamma"])) == expected["nu"]
        rate = operator.rate(setting["gamma"])
        assert data.numbers(rate if rate > 1e-10 else 0.0) == expected["rate"]
        assert data.numbers(operator.diagonality()) == expected["diagonality"]
    assert printed.getvalue().count("\n") >= 10


def test_the_code_on_the_page_has_the_default() -> None:
    assert "gamma, beta, n, depth = 0.9, 8, 100, 20" in PAGE
    assert settings.address(settings.DEFAULT) == "gamma=0.9&beta=8&n=100&depth=20"


# ----------------------------------------------------------------------------------------------- the figure


def test_the_figure_is_opaque_and_the_same_every_time() -> None:
    picture = Image.open(io.BytesIO(figure.png())).convert("RGBA")
    assert picture.getextrema()[3] == (255, 255)
    assert picture.getpixel((0, 0)) == (255, 255, 255, 255)
    assert picture.width == 2 * figure.SHOWN_WIDTH
    assert figure.png() == figure.png()


def test_the_alternative_text_says_what_is_seen() -> None:
    i, j, k, depth = settings.index(settings.DEFAULT)
    curve, distance = DATA["error"][i][k][j], DATA["distance"][i][k][j]
    diagonal = [DATA["kernel"][k][j][s][s] for s in range(6)]
    text = figure.alternative()
    numbers = [min(diagonal), max(diagonal), curve[0], curve[depth], curve[80], distance[0]]
    for number in numbers:
        assert f"{number:.2f}" in text
    assert distance == sorted(distance, reverse=True)
    assert text.count(".") - text.count("0.") - len(re.findall(r"[1-9]\.\d", text)) == 1, (
        "a sentence"
    )


def test_the_words_below_the_figure_have_its_numbers() -> None:
    words = page.in_words()
    for of in ("context", "population"):
        found = entries(of, settings.DEFAULT)
        numbers = ", ".join(f"{found[name]:.3g}" for name in ("diagonality", "nu"))
        assert f"{numbers} and {found['rate']:.3g}" in words
    assert f"the error is {error(settings.DEFAULT):.3g}." in words


# ------------------------------------------------------------------------------------------- made by Sphinx

BOOK = """\
# Title

```{explorer}
```

See {setting}`a flat kernel <beta=0&depth=3>`.
"""


def build(folder: Path, text: str, builder: str) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Render a page with the explorer, and one without, every warning an error."""
    pages = folder / "pages"
    pages.mkdir(exist_ok=True)
    (pages / "conf.py").write_text(
        "extensions = ['myst_parser', 'ictd.book.explorer']\nroot_doc = 'index'\n"
        f"html_static_path = [{str(ROOT / 'chapters' / 'static')!r}]\n"
    )
    (pages / "index.md").write_text(text + "\n```{toctree}\nother\n```\n", encoding="utf-8")
    (pages / "other.md").write_text("# Other\n\nWords.\n", encoding="utf-8")
    made = folder / builder
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "-n",
        "-b",
        builder,
        str(pages),
        str(made),
    ]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done, made


def soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    done, made = build(tmp_path_factory.mktemp("explorer"), BOOK, "html")
    assert done.returncode == 0, done.stderr
    return made


def test_a_page_has_hidden_controls_data_and_figure(html: Path) -> None:
    explorer = soup(html / "index.html").select_one(".explorer")
    live = explorer.select_one(".explorer-live")
    assert live.has_attr("hidden")
    assert json.loads(live.select_one("script.explorer-data").string) == DATA
    assert len(live.select("input[type=range]")) == 4
    for control in live.select("input"):
        name = control["name"]
        assert live.select_one(f"label[for={control['id']}]").get_text(strip=True)
        place = int(control["value"])
        assert settings.GRID[name][place] == settings.DEFAULT[name]
        assert int(control["max"]) == len(settings.GRID[name]) - 1
    (picture,) = explorer.select("img")
    assert picture.find_parent(class_="explorer-live") is None
    assert picture["alt"] == figure.alternative()
    assert (html / picture["src"]).read_bytes() == figure.png()
    assert page.in_words() in " ".join(explorer.get_text().split())


def test_the_link_to_a_setting_is_plain_words_until_a_script_comes(html: Path) -> None:
    (words,) = soup(html / "index.html").select(".explorer-setting")
    assert words.get_text() == "a flat kernel"
    assert words["data-setting"] == "gamma=0.9&beta=0&n=100&depth=3"
    assert words.name == "span"


def test_script_and_styles_are_loaded_on_that_page_alone(html: Path) -> None:
    for name, count in (("index.html", 1), ("other.html", 0)):
        made = soup(html / name)
        scripts = [tag for tag in made.select("script[src]") if "explorer.js" in tag["src"]]
        styles = [tag for tag in made.select("link[href]") if "explorer.css" in tag["href"]]
        assert (len(scripts), len(styles)) == (count, count), name


@pytest.mark.parametrize("builder", ["singlehtml", "text", "latex"])
def test_on_paper_the_figure_stands_alone(tmp_path: Path, builder: str) -> None:
    done, made = build(tmp_path, BOOK, builder)
    assert done.returncode == 0, done.stderr
    (result,) = [*made.glob("index.html"), *made.glob("index.txt"), *made.glob("*.tex")]
    text = result.read_text(encoding="utf-8")
    assert "explorer-live" not in text
    assert "application/json" not in text
    assert "a flat kernel" in text
    if builder == "singlehtml":
        assert "explorer.js" not in text
        (picture,) = soup(result).select(".explorer img")
        assert (made / picture["src"]).is_file()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("<gamma=0.91>", "gamma must be one of"),
        ("<delta=1>", "a setting names each of gamma, beta, n, depth"),
        ("", "a setting reads 'words <gamma=0.9&beta=8>'"),
    ],
)
def test_a_wrong_setting_on_a_page_is_an_error(tmp_path: Path, setting: str, message: str) -> None:
    done, _ = build(tmp_path, f"# Title\n\n{{setting}}`words {setting}`\n", "html")
    assert done.returncode != 0
    assert message in done.stderr


def test_the_page_is_made_again_when_the_library_changes(html: Path) -> None:
    import pickle

    with (html / ".doctrees" / "environment.pickle").open("rb") as stream:
        environment = pickle.load(stream)
    needed = {
        Path(html, "..", "pages", name).resolve() for name in environment.dependencies["index"]
    }
    for module in (ictd._kernel_operator, ictd.mrp, ictd.figures._style, data, settings, page):
        assert Path(module.__file__).resolve() in needed, module.__name__
    assert "other" not in environment.dependencies
