"""The explorer as a reader uses it: its numbers against the library, by keyboard, on a phone, on paper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser_checks import axe_source
from site_checks import name_of, pages

import ictd

pytestmark = pytest.mark.browser

GAMMAS = (0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
BETAS = (0, 1, 2, 4, 8, 16, 32, 64)
LENGTHS = (5, 10, 20, 50, 100, 300, 1000, 10000)
DEFAULT = (0.9, 8, 100, 20)
NAMES = ("gamma", "beta", "n", "depth")


def draw(count: int) -> list[tuple[float, ...]]:
    rng = np.random.default_rng(5)
    grids = (GAMMAS, BETAS, LENGTHS, range(81))
    drawn = [tuple(float(rng.choice(grid)) for grid in grids) for _ in range(count)]
    # The shortest context has no ṽ, no certificate, and diverges in one of these.
    return [*drawn, (0.95, 2, 5, 80), (0, 16, 5, 0), (0.3, 64, 10, 80)]


def address(setting: tuple[float, ...]) -> str:
    return "#" + "&".join(f"{name}={x:g}" for name, x in zip(NAMES, setting, strict=True))


each_setting = pytest.mark.parametrize("setting", draw(10), ids=address)


@pytest.fixture(scope="module")
def explorer(site: Path) -> Path:
    return site / "chapters" / "explorer.html"


class Tab:
    """The page in a window that sees no network, and what its scripts complain of."""

    def __init__(self, browser: Any, explorer: Path, **options: Any) -> None:
        self.complaints: list[str] = []
        self.address = explorer.as_uri()
        self._context = browser.new_context(
            **{"viewport": {"width": 1200, "height": 900}, **options}
        )
        self.tab = self._context.new_page()
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.on("requestfailed", lambda request: self.complaints.append(request.url))
        self.tab.on("request", self._asked)
        self.tab.on(
            "console",
            lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None,
        )

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.complaints.append(request.url)

    def open(self, end: str = "") -> Any:
        self.tab.goto("about:blank")
        self.tab.goto(self.address + end)
        return self.tab

    def close(self) -> None:
        self._context.close()


@pytest.fixture(scope="module")
def window(browser: Any, explorer: Path) -> Iterator[Tab]:
    tab = Tab(browser, explorer)
    yield tab
    tab.close()


@pytest.fixture
def tab(window: Tab) -> Iterator[Any]:
    """The page at its default; what its scripts complain of fails the test."""
    window.complaints.clear()
    yield window.open()
    assert window.complaints == []


def values(tab: Any) -> tuple[float, ...]:
    """What stands beside the controls."""
    return tuple(float(tab.locator(f"#explorer-{name}-value").inner_text()) for name in NAMES)


def until(tab: Any, setting: tuple[float, ...]) -> None:
    """Wait until the controls say so."""
    for name, x in zip(NAMES, setting, strict=True):
        tab.wait_for_function(
            "([id, x]) => document.getElementById(id).textContent === x",
            arg=[f"explorer-{name}-value", f"{x:g}"],
            timeout=5000,
        )


def in_sight(tab: Any) -> None:
    """Wait until the controls are at the top of the window; the theme scrolls smoothly."""
    tab.wait_for_function(
        "(() => { const box = document.querySelector('.explorer-controls').getBoundingClientRect();"
        " return box.top >= 0 && box.top < 300; })()",
        timeout=5000,
    )


def go(tab: Any, end: str) -> None:
    tab.evaluate("end => { location.hash = end; }", end)


# ------------------------------------------------------------------------------------ against the library


class Expected:
    """What the library says of a setting, by its public functions alone."""

    def __init__(self, gamma: float, beta: float, n: float, depth: float) -> None:
        rng = np.random.default_rng(281)
        chain = ictd.boyan_chain(6, gamma, rng)
        x = ictd.sphere_features(6, 3, rng)
        path = chain.sample(10_000, rng)
        head = ictd.Trajectory(path.states[: int(n) + 1], path.rewards[: int(n)])
        scores = ictd.inner_product_scores(x, beta)
        self.gamma = gamma
        self.context = ictd.empirical_operator(head, scores)
        self.population = ictd.population_operator(chain, scores)
        values = self.context.values(gamma, int(depth))[-1]
        self.error = np.abs(values - chain.value).max()
        seen = self.context.visited
        fixed = ictd.certainty_equivalence(head, 6, gamma)
        self.distance = np.abs(values - fixed)[seen].max() if seen[head.states[-1]] else None
        self.visits = ictd.Counts.of(head, 6).visits


def number(text: str) -> float:
    return np.inf if text == "∞" else float(text)


def same(shown: str, expected: float) -> bool:
    """Whether a number on the page is the library's, to three digits at least."""
    if shown == "below 1e-10":
        return expected < 1e-10
    return number(shown) == pytest.approx(expected, rel=5.1e-4, abs=1e-12)


def check(tab: Any, setting: tuple[float, ...]) -> None:
    expected = Expected(*setting)
    shown = tab.locator(".explorer-kernel tbody td").all_inner_texts()
    kernel = np.array([float(text) for text in shown]).reshape(6, 6)
    assert np.abs(kernel - expected.context.M).max() <= 5.1e-4
    visits = tab.locator(".explorer-kernel tfoot td").all_inner_texts()
    assert [float(text) for text in visits] == expected.visits.tolist()
    for of in ("context", "population"):
        operator = getattr(expected, of)
        gamma = expected.gamma
        for name, value, holds in (
            ("diagonality", operator.diagonality(), operator.margin(gamma) > 0),
            ("nu", operator.nu(gamma), operator.nu(gamma) < 1),
            ("rate", operator.rate(gamma), operator.rate(gamma) < 1),
        ):
            cell = tab.locator(f"[data-condition={of}-{name}]")
            assert same(cell.locator(".explorer-value").inner_text(), value), (of, name)
            words = ("✓ converges", "✗ diverges") if name == "rate" else ("✓ holds", "✗ fails")
            assert cell.locator(".explorer-verdict").inner_text() == words[not holds], (of, name)
    bounds = tab.locator(".explorer-bound").all_inner_texts()
    assert float(bounds[0].removeprefix("> ")) == pytest.approx((1 + expected.gamma) / 2, abs=1e-9)
    assert bounds[1:] == ["< 1", "< 1"]
    assert same(tab.locator("#explorer-error").inner_text(), expected.error)
    distance = tab.locator("#explorer-distance").inner_text()
    if expected.distance is None:
        assert distance == "undefined"
    else:
        assert same(distance, expected.distance)
    sentence = tab.locator(".explorer-summary").inner_text()
    converges = expected.context.rate(expected.gamma) < 1
    assert ("layers converge" in sentence) == converges
    assert ("layers diverge" in sentence) == (not converges)
    assert ("Assumption 5.1" in sentence) == bool(expected.context.margin(expected.gamma) > 0)
    assert ("ν̂ below 1" in sentence) == bool(expected.context.nu(expected.gamma) < 1)
    assert ("misses a state" in sentence) == bool((expected.visits == 0).any())
    assert ("never left" in sentence) == (expected.distance is None)
    assert ("singular" in sentence) == (setting[1] == 0)
    assert f"The error is {tab.locator('#explorer-error').inner_text()}." in sentence


@each_setting
def test_the_numbers_shown_are_the_library_s(tab: Any, setting: tuple[float, ...]) -> None:
    go(tab, address(setting))
    until(tab, setting)
    check(tab, setting)


def test_the_default_is_shown_first(tab: Any) -> None:
    assert values(tab) == DEFAULT
    check(tab, DEFAULT)


def test_the_curve_is_the_error(tab: Any) -> None:
    """The heights of the line are logarithms of the library's errors, and the dot is at the depth."""
    path = tab.locator("svg path.error").get_attribute("d")
    drawn = np.array([[float(x) for x in point.split()] for point in re.split("[ML]", path)[1:]])
    errors = [Expected(*DEFAULT[:3], depth).error for depth in range(81)]
    assert len(drawn) == 81
    slope, offset = np.polyfit(np.log10(errors), drawn[:, 1], 1)
    assert slope < 0
    assert np.abs(drawn[:, 1] - (slope * np.log10(errors) + offset)).max() < 0.2
    dot = tab.locator("svg circle.error")
    place = [float(dot.get_attribute(name)) for name in ("cx", "cy")]
    assert place == pytest.approx(drawn[20], abs=0.1)
    ticks = tab.locator("svg text[text-anchor=end]")
    plain = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    powers = [text.translate(plain).removeprefix("10") for text in ticks.all_text_contents()]
    heights = [float(tick.get_attribute("y")) - 4 for tick in ticks.all()]
    assert np.abs(slope * np.array(powers, float) + offset - heights).max() < 0.2


def test_a_colour_stands_for_a_weight(tab: Any) -> None:
    cells = tab.locator(".explorer-kernel tbody td")
    colours = cells.evaluate_all("all => all.map((cell) => cell.style.backgroundColor)")
    light = [sum(map(int, re.findall(r"\d+", colour))) for colour in colours]
    weights = [float(text) for text in cells.all_inner_texts()]
    assert len(set(colours)) > 8
    # The map grows lighter with the weight.
    assert np.argsort(light, kind="stable")[-1] == np.argmax(weights)
    assert np.corrcoef(light, weights)[0, 1] > 0.9
    hover = cells.nth(1).get_attribute("title")
    assert hover.startswith("query 0, source 1: ")
    assert float(hover.rpartition(" ")[2]) == pytest.approx(
        Expected(*DEFAULT).context.M[0, 1], rel=1e-4
    )


# ------------------------------------------------------------------------------------------- by keyboard


def test_arrow_keys_turn_a_control_and_all_that_depends_on_it(tab: Any) -> None:
    tab.focus("#explorer-gamma")
    tab.keyboard.press("ArrowRight")
    assert values(tab) == (0.95, *DEFAULT[1:])
    assert tab.locator("#explorer-gamma").get_attribute("aria-valuetext") == "0.95"
    assert tab.evaluate("location.hash") == address((0.95, *DEFAULT[1:]))
    check(tab, (0.95, *DEFAULT[1:]))
    tab.focus("#explorer-depth")
    tab.keyboard.press("End")
    tab.keyboard.press("ArrowLeft")
    check(tab, (0.95, *DEFAULT[1:3], 79))
    for name, key, expected in (("beta", "Home", 0), ("n", "End", 10000)):
        tab.focus(f"#explorer-{name}")
        tab.keyboard.press(key)
        assert dict(zip(NAMES, values(tab), strict=True))[name] == expected


def test_tab_goes_through_the_controls_in_order_and_shows_where_it_is(tab: Any) -> None:
    tab.focus("#explorer-gamma")
    for place in ("explorer-gamma", "explorer-beta", "explorer-n", "explorer-depth", ""):
        now = tab.evaluate(
            "(() => { const a = document.activeElement, s = getComputedStyle(a);"
            " return [a.id, a.type, s.outlineStyle, parseFloat(s.outlineWidth)]; })()"
        )
        assert now[0] == place
        assert now[1] == ("range" if place else "reset")
        assert now[2] == "solid"
        assert now[3] >= 2
        tab.keyboard.press("Tab")


def test_reset_brings_the_default_back(tab: Any) -> None:
    go(tab, "#gamma=0.3&beta=1&n=5&depth=3")
    until(tab, (0.3, 1, 5, 3))
    tab.get_by_role("button", name="Reset").focus()
    tab.keyboard.press("Enter")
    until(tab, DEFAULT)
    check(tab, DEFAULT)
    assert tab.evaluate("location.hash") == address(DEFAULT)


def test_what_a_screen_reader_is_told(tab: Any) -> None:
    for name in ("γ, discount factor", "β, kernel sharpness", "n, context length", "L, depth"):
        assert tab.get_by_role("slider", name=name).count() == 1, name
    assert tab.get_by_role("table", name=re.compile("^Kernel")).count() == 1
    assert tab.get_by_role("table", name=re.compile("^Conditions")).count() == 1
    kernel = tab.locator(".explorer-kernel")
    assert kernel.get_by_role("columnheader").all_inner_texts() == ["query", *"012345"]
    assert kernel.get_by_role("rowheader").all_inner_texts() == [*"012345", "visits"]
    # One thing is read out when something changes.
    assert tab.get_by_role("status").count() == 1
    assert tab.get_by_role("status").inner_text().startswith("γ = 0.9, β = 8, n = 100, L = 20.")
    assert "0.1948 at the chosen depth 20" in tab.locator(
        ".explorer-curve svg[role=img]"
    ).get_attribute("aria-label")


# ---------------------------------------------------------------------------------------------- addresses


def test_an_address_opens_a_setting_in_sight(window: Tab) -> None:
    window.complaints.clear()
    setting = (0.5, 2, 20, 60)
    tab = window.open(address(setting))
    until(tab, setting)
    check(tab, setting)
    in_sight(tab)
    tab.reload()
    until(tab, setting)
    assert window.complaints == []


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("#gamma=0.91&beta=8&n=100&depth=20", DEFAULT),
        ("#gamma=&beta=nan&n=%E0%A4&depth=-1", DEFAULT),
        ("#gamma=0.5", (0.5, *DEFAULT[1:])),
        ("#depth=80&gamma=1e9&unknown=3", (*DEFAULT[:3], 80)),
        ("#beta=1e400&n=0x5&depth=3.5", (DEFAULT[0], 8, 5, 20)),
        ("#how-to-read-it", DEFAULT),
        ("#__proto__", DEFAULT),
    ],
)
def test_a_bad_address_falls_back(window: Tab, end: str, expected: tuple[float, ...]) -> None:
    window.complaints.clear()
    tab = window.open(end)
    until(tab, expected)
    check(tab, expected)
    assert window.complaints == []


def test_each_setting_that_the_text_names_is_a_link_to_it(tab: Any) -> None:
    tab.wait_for_selector(".explorer-setting > a")
    links = tab.locator(".explorer-setting > a")
    assert links.count() == tab.locator(".explorer-setting").count() >= 4
    for link in links.all():
        end = link.get_attribute("href")
        link.focus()
        tab.keyboard.press("Enter")
        setting = tuple(float(pair.partition("=")[2]) for pair in end[1:].split("&"))
        until(tab, setting)
        in_sight(tab)
        assert tab.evaluate("document.activeElement.className") == "explorer-live"


def test_back_shows_what_was_shown(tab: Any) -> None:
    tab.wait_for_selector(".explorer-setting > a")
    link = tab.locator(".explorer-setting > a").first
    link.click()
    tab.wait_for_function("location.hash !== ''")
    there = values(tab)
    assert there != DEFAULT
    tab.go_back()
    until(tab, DEFAULT)
    assert tab.evaluate("location.hash") == ""
    tab.go_forward()
    until(tab, there)


def test_a_link_to_the_setting_that_is_shown_leads_to_it(tab: Any) -> None:
    tab.wait_for_selector(".explorer-setting > a")
    link = tab.locator(".explorer-setting > a").last
    for _ in range(2):
        link.scroll_into_view_if_needed()
        link.click()
        tab.wait_for_function("document.activeElement.className === 'explorer-live'")
        in_sight(tab)


def test_an_address_that_is_wrong_becomes_that_of_what_is_shown(window: Tab) -> None:
    tab = window.open("#gamma=0.5&beta=9&n=x&depth=1e9")
    until(tab, (0.5, *DEFAULT[1:]))
    tab.wait_for_function("end => location.hash === end", arg=address((0.5, *DEFAULT[1:])))


# ----------------------------------------------------------------------------------------- other readers


def test_without_javascript_the_figure_stands_there(browser: Any, explorer: Path) -> None:
    window = Tab(browser, explorer, java_script_enabled=False)
    tab = window.open()
    assert tab.locator(".explorer-static img").is_visible()
    assert tab.locator(".explorer-static p").is_visible()
    controls = tab.locator(".explorer :is(input, button, table, svg, a)")
    assert controls.count() > 4
    assert not any(control.is_visible() for control in controls.all())
    assert tab.locator("article .explorer-setting a").count() == 0
    window.close()


def test_with_javascript_the_figure_gives_way_but_on_paper(tab: Any) -> None:
    shown = {"screen": (True, False), "print": (False, True)}
    for media, expected in shown.items():
        tab.emulate_media(media=media)
        seen = [tab.locator(f".explorer-{part}").is_visible() for part in ("live", "static")]
        assert tuple(seen) == expected, media
    tab.emulate_media(media="screen")


@pytest.mark.parametrize("width", [320, 360])
@pytest.mark.parametrize("end", [address(s) for s in ((0.99, 64, 10000, 80), (0.95, 2, 5, 80))])
def test_on_a_phone_nothing_is_wider_than_the_page(
    browser: Any, explorer: Path, end: str, width: int
) -> None:
    window = Tab(browser, explorer, viewport={"width": width, "height": 800})
    tab = window.open(end)
    tab.wait_for_selector(".explorer-setting > a")
    wide = tab.evaluate(
        "[...document.querySelectorAll('.explorer-live, .explorer-live *')].filter((n) => {"
        " const box = n.getBoundingClientRect(); return box.right > innerWidth || box.left < 0; }).length"
    )
    assert wide == 0
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    inside = tab.evaluate(
        "[...document.querySelectorAll('.explorer-kernel :is(td, th)')]"
        ".filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)"
    )
    assert inside == []
    letters = tab.locator("svg text").first.bounding_box()["height"]
    assert letters >= 12
    assert tab.locator("#explorer-gamma").bounding_box()["height"] >= 24
    window.close()


@pytest.mark.axe
@pytest.mark.parametrize("mode", ["light", "dark"])
def test_with_axe_at_another_setting(reader: Any, explorer: Path, mode: str) -> None:
    visit = reader(mode=mode, widths=(360, 1200), axe=axe_source()).visit(
        explorer.as_uri() + address((0.99, 2, 5, 80))
    )
    assert visit.problems == []
    assert visit.axe == []


def test_other_pages_do_not_load_it(site: Path) -> None:
    loading = [
        name_of(page, site)
        for page in pages(site)
        if re.search(r"<script[^>]*explorer\.js", page.read_text(encoding="utf-8"))
    ]
    assert loading == ["chapters/explorer.html"]
