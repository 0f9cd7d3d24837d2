"""What must hold of every page of the built site in a browser: on screen, on paper, for axe-core.

A `Reader` opens pages in one mode and width, with every other host blocked, and reports what is wrong.
`tests/site` sends readers over the book, and over pages broken on purpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from site_checks import PROJECT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request, ViewportSize

# What the program is called, here or there.
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    # No name is looked up: nothing but this machine can be reached, whatever a page asks for.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]

# `.ci/run` puts it there, with npm. It is no part of the book and none of what `make book` installs.
AXE = PROJECT / "_build" / "node_modules" / "axe-core" / "axe.min.js"

# A4 less the margins that book.css asks for, 15 mm on each side, in pixels of 1/96 inch.
PAPER_WIDTH = 680


@dataclass(frozen=True)
class Accepted:
    """A violation that the book does not mend: the rule of axe-core, which elements, and why."""

    rule: str
    selector: str
    reason: str


ACCEPTED = (
    Accepted(
        "label-content-name-mismatch",
        "button.search-button-field",
        "the theme's button reads 'Search Ctrl+K' and is named 'Search'",
    ),
    Accepted(
        "label-content-name-mismatch",
        "button.theme-switch-button",
        "the theme's button is named 'Color mode'; its icon has the title of the present mode",
    ),
)


@dataclass
class Visit:
    """What was found on a page; `axe` and `paper` are None if they were not asked for."""

    problems: list[str] = field(default_factory=list)
    axe: list[str] | None = None
    accepted: set[int] = field(default_factory=set)  # the places in ACCEPTED that were met
    paper: list[str] | None = None


# Opens what is folded in the text: it has to be as good as the rest.
UNFOLD = """
async () => {
  document.querySelectorAll('article details').forEach((d) => { d.open = true; });
  document.querySelectorAll('article .toggle-hidden button.toggle-button').forEach((b) => b.click());
}
"""

# What the rendered page says about itself.
LOOK = r"""
async () => {
  const maths = [...document.querySelectorAll('span.math, div.math')];
  if (maths.length && window.MathJax && MathJax.startup) await MathJax.startup.promise;
  if (document.fonts) await document.fonts.ready;
  const images = [...document.images];
  await Promise.all(images.map((i) => { i.loading = 'eager'; return i.decode().catch(() => null); }));
  // Observers of sizes are called between two frames.
  for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);
  const text = (node) => (node.textContent || '').trim().slice(0, 80);
  const luminance = (node) => {
    const rgb = getComputedStyle(node).backgroundColor.match(/[\d.]+/g).map(Number);
    return rgb.length > 3 && rgb[3] === 0 ? null : (rgb[0] + rgb[1] + rgb[2]) / 765;
  };
  // What is too wide for a box that neither grows nor scrolls is lost.
  const lost = [...document.querySelectorAll('article *')].filter((n) => {
    if (n.clientWidth <= 1 || n.closest('mjx-container')) return false;
    if (!['hidden', 'clip'].includes(getComputedStyle(n).overflowX)) return false;
    // What MathJax adds for screen readers has a width too; the formula's own is that of mjx-math.
    const formula = n.matches('.math') && n.querySelector('mjx-container:not([display]) > mjx-math');
    const width = formula ? formula.getBoundingClientRect().width : n.scrollWidth;
    return !n.matches('div.math') && width > n.clientWidth + 1;
  });
  // Who moves by keyboard stops at what can be scrolled, and not at every formula.
  const stops = [...document.querySelectorAll('.math[tabindex="0"], .math [tabindex="0"]')]
    .filter((n) => n.querySelector('mjx-math').getBoundingClientRect().width <= n.clientWidth + 1);
  const wide = [...document.querySelectorAll('body *')]
    .filter((n) => n.getBoundingClientRect().right > innerWidth + 1 && n.getClientRects().length)
    .slice(0, 3).map((n) => n.tagName.toLowerCase() + '.' + [...n.classList].join('.'));
  return {
    maths: maths.length,
    mathsUnrendered: maths.filter((m) => !m.querySelector('mjx-container')).map(text),
    mathsErrors: [...document.querySelectorAll('mjx-merror, [data-mjx-error]')]
      .map((e) => e.getAttribute('data-mjx-error') || text(e)),
    // MathJax shows a command that it does not know as red text instead of an error.
    mathsUnknown: [...document.querySelectorAll('mjx-container mtext')]
      .map(text).filter((t) => /^\\[A-Za-z]+/.test(t)),
    imagesBroken: images.filter((i) => !i.complete || !i.naturalWidth).map((i) => i.getAttribute('src')),
    // Nothing cuts a picture there, and the theme lets it be as wide as the box and its margin.
    imagesOut: images.filter((i) => {
      const box = i.closest('.admonition');
      return box && i.getBoundingClientRect().right > box.getBoundingClientRect().right + 1;
    }).map((i) => i.getAttribute('src')),
    imagesDistorted: images
      .filter((i) => i.naturalWidth && i.width > 30 && i.height > 0)
      .filter((i) => Math.abs(i.width / i.height * i.naturalHeight / i.naturalWidth - 1) > 0.03)
      .map((i) => i.getAttribute('src')),
    theme: document.documentElement.dataset.theme || null,
    background: luminance(document.body) ?? luminance(document.documentElement),
    scrollWidth: Math.max(document.documentElement.scrollWidth, document.body.scrollWidth),
    innerWidth: innerWidth,
    wide: wide,
    lost: lost.map(text),
    stops: stops.map(text),
  };
}
"""

# Violations of impact serious or critical, one for each element. Each formula is first replaced by an empty
# picture of its size, so that its box still scrolls where it did. That halves the time and loses nothing,
# since MathJax draws glyphs by styles, in which axe finds no text.
RUN_AXE = r"""
async (accepted) => {
  const formulas = [...document.querySelectorAll('mjx-container')];
  const kept = formulas.map((formula) => [...formula.childNodes]);
  const sizes = formulas.map((formula) => formula.querySelector('mjx-math').getBoundingClientRect());
  formulas.forEach((formula, i) => {
    const inside = document.createElement('canvas');
    inside.style.width = `${sizes[i].width}px`;
    inside.style.height = `${sizes[i].height}px`;
    formula.replaceChildren(inside);
  });
  // A line may be a little higher now, and what watches sizes is told between two frames.
  for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);
  // Nothing is fetched a second time: from file:// a browser refuses that.
  const options = { resultTypes: ['violations'], elementRef: true, preload: false };
  const found = await axe.run(document, options);
  formulas.forEach((formula, i) => formula.replaceChildren(...kept[i]));
  return found.violations
    .filter((violation) => ['serious', 'critical'].includes(violation.impact))
    .flatMap((violation) => violation.nodes.map((node) => ({
      rule: violation.id,
      impact: violation.impact,
      html: node.html.replace(/\s+/g, ' ').slice(0, 120),
      why: node.failureSummary.split('\n').slice(1).map((line) => line.trim()).join('; '),
      accepted: accepted.findIndex((a) => a.rule === violation.id && node.element.matches(a.selector)),
    })));
}
"""

# What would be missing on paper. A box that scrolls, or that hides what is too wide for it, loses it there.
PAPER = r"""
async () => {
  for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);
  const name = (n) => n.tagName.toLowerCase() + [...n.classList].map((c) => '.' + c).join('')
    + ' ' + JSON.stringify((n.textContent || '').trim().slice(0, 40));
  const inside = 'mjx-math *, mjx-assistive-mml, mjx-assistive-mml *, .visually-hidden, .sr-only,'
    + 'script, style';
  const shown = [...document.querySelectorAll('body *')].filter((n) => !n.matches(inside)
    && n.getClientRects().length && getComputedStyle(n).visibility === 'visible');
  const cut = shown.filter((n) => {
    const box = n.getBoundingClientRect();
    if (box.width <= 1 || box.height <= 1) return false;
    if (box.right > innerWidth + 1 || box.left < -1) return true;
    // A line of text that leaves its box is nobody's box.
    if (n.clientWidth > 1 && box.left + n.scrollWidth > innerWidth + 1) return true;
    const style = getComputedStyle(n);
    const beyond = n.clientWidth > 1 && n.scrollWidth > n.clientWidth + 1;
    const below = n.clientHeight > 1 && n.scrollHeight > n.clientHeight + 1;
    return style.display !== 'inline' && ((beyond && style.overflowX !== 'visible')
      || (below && style.overflowY !== 'visible'));
  });
  // A formula in the middle of a box that is too narrow for it sticks out on the left, and not only there.
  const out = shown.filter((n) => n.matches('mjx-math')).filter((n) => {
    const box = n.getBoundingClientRect(), text = n.closest('div.math, p, td, li, dd');
    return text && (box.left < text.getBoundingClientRect().left - 2
      || box.right > text.getBoundingClientRect().right + 2);
  });
  const article = document.querySelector('article');
  const sides = '.bd-sidebar-primary, .bd-sidebar-secondary, .bd-header, .bd-header-article, .bd-footer,'
    + '.prev-next-footer, button';
  const rgb = (colour) => colour.match(/[\d.]+/g).map(Number);
  return {
    cut: [...new Set([...cut, ...out])].map(name),
    sides: shown.filter((n) => n.matches(sides)).map(name),
    text: article ? rgb(getComputedStyle(article).color).slice(0, 3).reduce((a, b) => a + b) / 765 : 0,
  };
}
"""


class Reader:
    """Someone who reads pages in a mode and at one width of the window or more, without a network.

    Args:
        mode: "light" or "dark".
        widths: Of the window, in pixels; pages are loaded at the first.
        server: The origin on this machine that pages are read from; without it, they are files.
        axe: The source of axe-core, to be run on each page.
        paper: Whether pages are printed too.
    """

    def __init__(
        self,
        browser: Browser,
        *,
        mode: str = "light",
        widths: Sequence[int] = (1200,),
        server: str | None = None,
        axe: str | None = None,
        paper: bool = False,
    ) -> None:
        self.mode, self.server, self.axe, self.paper = mode, server, axe, paper
        self.widths = tuple(widths)
        self.context = browser.new_context(viewport=_size(self.widths[0]), color_scheme=mode)
        self.context.add_init_script(
            f"localStorage.setItem('mode', '{mode}'); localStorage.setItem('theme', '{mode}');"
        )

    def visit(self, url: str) -> Visit:
        """Open a page and report what is wrong with it."""
        tab = self.context.new_page()
        found = Visit()
        self._listen(tab, found.problems)
        try:
            tab.goto(url, wait_until="load")
            tab.evaluate(UNFOLD)
            for width in self.widths:
                tab.set_viewport_size(_size(width))
                found.problems += self._judge(tab.evaluate(LOOK))
                if self.axe:
                    violations, accepted = _axe(tab, self.axe)
                    found.axe = [*(found.axe or []), *violations]
                    found.accepted |= accepted
            if self.paper:
                found.paper = _on_paper(tab)
            tab.wait_for_load_state("networkidle")
        finally:
            tab.close()
        found.problems = list(dict.fromkeys(found.problems))
        return found

    def _is_ours(self, address: str) -> bool:
        return address.startswith(self.server or "file:")

    def _listen(self, tab: Page, problems: list[str]) -> None:
        """Write down requests to other hosts or that fail, and what the page's scripts complain of."""

        def asked(request: Request) -> None:
            if not self._is_ours(request.url) and not request.url.startswith(("data:", "blob:")):
                kind = request.resource_type
                problems.append(f"asks another host for a {kind}: {request.url}")

        def failed(request: Request) -> None:
            if self._is_ours(request.url):
                problems.append(f"request failed: {request.url} ({request.failure})")

        tab.on("request", asked)
        tab.on("requestfailed", failed)
        tab.on(
            "response",
            lambda r: problems.append(f"answer {r.status}: {r.url}") if r.status >= 400 else None,
        )
        tab.on("pageerror", lambda error: problems.append(f"script error: {error}"))
        tab.on(
            "console",
            lambda m: (
                problems.append(f"console {m.type}: {m.text}")
                if m.type in ("error", "warning")
                else None
            ),
        )

    def _judge(self, look: dict[str, Any]) -> list[str]:
        problems = [f"maths not rendered: {text}" for text in look["mathsUnrendered"]]
        problems += [f"maths error: {text}" for text in look["mathsErrors"]]
        problems += [f"unknown TeX command: {text}" for text in look["mathsUnknown"]]
        problems += [f"image did not load: {src}" for src in look["imagesBroken"]]
        problems += [f"image out of shape: {src}" for src in look["imagesDistorted"]]
        problems += [f"image reaches out of its box: {src}" for src in look["imagesOut"]]
        if look["theme"] != self.mode:
            problems.append(f"asked for {self.mode} mode, got {look['theme']}")
        light = look["background"]
        if light is not None and (light > 0.5) != (self.mode == "light"):
            problems.append(f"{self.mode} mode has a background of lightness {light:.2f}")
        problems += [f"stop for the keyboard without need: {text!r}" for text in look["stops"]]
        problems += [f"cut off on the right: {text!r}" for text in look["lost"]]
        if look["scrollWidth"] > look["innerWidth"]:
            problems.append(
                f"scrolls sideways: {look['scrollWidth']} px in a window of {look['innerWidth']} px"
                f" (reaching out: {', '.join(look['wide'])})"
            )
        return problems


def _size(width: int) -> ViewportSize:
    return {"width": width, "height": 900}


def _on_paper(tab: Page) -> list[str]:
    """What is cut, pale or out of place when the page is printed."""
    tab.evaluate("() => { dispatchEvent(new Event('beforeprint')); }")
    tab.emulate_media(media="print")
    tab.set_viewport_size(_size(PAPER_WIDTH))
    look = tab.evaluate(PAPER)
    problems = [f"cut on paper: {name}" for name in look["cut"]]
    problems += [f"printed though it is no text: {name}" for name in look["sides"]]
    if look["text"] > 0.5:
        problems.append(f"pale on paper: text of lightness {look['text']:.2f}")
    return problems


def _axe(tab: Page, source: str) -> tuple[list[str], set[int]]:
    """The violations that are not accepted, and the places of those entries that were met."""
    tab.evaluate(source)
    found = tab.evaluate(RUN_AXE, [asdict(entry) for entry in ACCEPTED])
    problems = [
        f"{v['impact']} violation of {v['rule']}: {v['html']} ({v['why']})"
        for v in found
        if v["accepted"] < 0
    ]
    return problems, {v["accepted"] for v in found if v["accepted"] >= 0}


def axe_source(path: Path = AXE) -> str | None:
    """The source of axe-core, if it is there."""
    return path.read_text(encoding="utf-8") if path.is_file() else None
