"""What must hold of every page of the built site: on the files, and in a browser.

Each check returns a list of problems, empty for a good page. `tests/site` runs them over the book, and over
pages broken on purpose.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Request, Route

PROJECT = Path(__file__).resolve().parent.parent
# Another folder can be looked at, for example what a plain `jupyter-book build` made.
SITE = Path(os.environ.get("ICTD_SITE", PROJECT / "_build" / "html"))
NO_SITE = f"there is no built site in {SITE}: run `make book` first"

# Marks that a renderer should have consumed. Text in code, maths and scripts is not looked at.
RAW_MARKUP = {
    "a directive": re.compile(r":::|```|\{[a-z]+[a-z:_-]*\}\s*`|^\s*:[a-z-]+: ", re.MULTILINE),
    "a substitution": re.compile(r"\{\{.*?\}\}"),
    "TeX": re.compile(r"\\[a-zA-Z]{2,}|\\[()\[\]]|\$[^$\n]*[\\^_{][^$\n]*\$|\$\$|\$[A-Za-z]\$"),
    "a label": re.compile(r"^\([a-z0-9-]+\)=", re.MULTILINE),
    "an object's repr": re.compile(r"<[\w.]+ (?:object )?at 0x[0-9a-f]+>"),
}
NOT_TEXT = "script, style, pre, code, .math, mjx-container, noscript, template"


def pages(site: Path = SITE) -> list[Path]:
    """The site's pages, without the theme's own parts."""
    found = sorted(site.rglob("*.html"))
    return [
        p
        for p in found
        if not {"_static", "_sources", "_downloads"} & set(p.relative_to(site).parts)
    ]


def name_of(page: Path, site: Path = SITE) -> str:
    return page.relative_to(site).as_posix()


# ---------------------------------------------------------------------------------------------- files


def _parse(page: Path) -> BeautifulSoup:
    return BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")


def _soup(page: Path) -> BeautifulSoup:
    """The parsed page, shared: to be read, not changed."""
    return _parsed(page, page.stat().st_mtime_ns)


@lru_cache(maxsize=16)
def _parsed(page: Path, changed: int) -> BeautifulSoup:
    return _parse(page)


def _anchors(page: Path) -> frozenset[str]:
    return _anchors_of(page, page.stat().st_mtime_ns)


@lru_cache(maxsize=128)
def _anchors_of(page: Path, changed: int) -> frozenset[str]:
    soup = _soup(page)
    named = {str(a["name"]) for a in soup.find_all("a", attrs={"name": True})}
    return frozenset(named | {str(tag["id"]) for tag in soup.find_all(id=True)})


def link_problems(page: Path, site: Path = SITE) -> list[str]:
    """Links and anchors that lead nowhere inside the site."""
    soup = _soup(page)
    targets = [str(a["href"]) for a in soup.find_all("a", href=True)]
    for meta in soup.find_all("meta", attrs={"http-equiv": re.compile("^refresh$", re.IGNORECASE)}):
        targets.append(str(meta["content"]).partition("url=")[2])
    problems = []
    for target in dict.fromkeys(targets):
        parts = urlsplit(target)
        if parts.scheme or parts.netloc or target in ("#", "#top"):
            continue
        goal = (page.parent / unquote(parts.path)).resolve() if parts.path else page.resolve()
        if site.resolve() not in [goal, *goal.parents]:
            problems.append(f"link leaves the site: {target}")
        elif not goal.is_file():
            problems.append(f"link to a missing file: {target}")
        elif (
            parts.fragment
            and goal.suffix == ".html"
            and unquote(parts.fragment) not in _anchors(goal)
        ):
            problems.append(f"link to a missing anchor: {target}")
    return problems


def asset_problems(page: Path) -> list[str]:
    """Scripts, styles, fonts and images that are on another host or missing."""
    soup = _soup(page)
    assets = [str(tag["src"]) for tag in soup.find_all(src=True)]
    loading = {
        "stylesheet",
        "icon",
        "preload",
        "modulepreload",
        "preconnect",
        "dns-prefetch",
        "manifest",
    }
    for link in soup.find_all("link", href=True):
        if loading & set(link.get("rel") or []):
            assets.append(str(link["href"]))
    problems = []
    for asset in dict.fromkeys(assets):
        parts = urlsplit(asset)
        if parts.scheme == "data":
            continue
        if parts.scheme or parts.netloc:
            problems.append(f"loads from another host: {asset}")
        elif not (page.parent / unquote(parts.path)).is_file():
            problems.append(f"loads a missing file: {asset}")
    return problems


def image_problems(page: Path) -> list[str]:
    """Images without alternative text, and images drawn twice."""
    images = [
        img for img in _soup(page).select("article img") if "logo" not in (img.get("class") or [])
    ]
    problems = [
        f"image without alt text: {img['src']}"
        for img in images
        if not str(img.get("alt") or "").strip()
    ]
    names = [str(img["src"]) for img in images]
    # A cell that shows a figure without saying what is seen gets its file's name as alt text.
    problems += [
        f"alt text is a file's name: {img['src']}"
        for img in images
        if re.search(r"\.(png|svg|jpe?g)$|^_images/", str(img.get("alt") or ""))
    ]
    problems += [f"image drawn {n} times: {src}" for src, n in Counter(names).items() if n > 1]
    return problems


def text_problems(page: Path) -> list[str]:
    """Raw directives, raw TeX and the like in the title, the sidebar or the text."""
    soup = _parse(page)
    title = soup.title.get_text() if soup.title else ""
    parts = {"title": title}
    for tag in soup.select(NOT_TEXT):
        tag.decompose()
    for name, selector in {
        "sidebar": ".bd-sidebar-primary",
        "contents": ".bd-sidebar-secondary",
    }.items():
        parts[name] = "\n".join(tag.get_text("", strip=False) for tag in soup.select(selector))
    article = soup.select_one("article")
    parts["text"] = article.get_text("", strip=False) if article else ""
    problems = []
    for where, text in parts.items():
        for what, pattern in RAW_MARKUP.items():
            if match := pattern.search(text):
                around = text[max(0, match.start() - 30) : match.end() + 30].strip()
                problems.append(f"{what} shows raw in the {where}: {around!r}")
    if "\\" in title or "$" in title:
        problems.append(f"TeX shows raw in the title: {title.strip()!r}")
    return list(dict.fromkeys(problems))


def output_problems(page: Path, site: Path = SITE) -> list[str]:
    """Outputs of the executed notebook that the page lacks, errors, and progress bars of many lines."""
    source = site / "_sources" / page.relative_to(site).with_suffix(".ipynb")
    soup = _soup(page)
    problems = [
        f"a cell shows a traceback: {_short(tag)}" for tag in soup.select(".output.traceback")
    ]
    problems += [f"a cell writes to stderr: {_short(tag)}" for tag in soup.select(".output.stderr")]
    for cell in soup.select(".cell_output"):
        frames = re.findall(r"\d+%\|.*", cell.get_text())
        if len(frames) > 1:
            problems.append(f"a progress bar shows {len(frames)} times in one cell: {frames[0]}")
    if not source.is_file():
        return problems
    expected, shown = 0, len(soup.select(".cell_output"))
    for cell in json.loads(source.read_text(encoding="utf-8"))["cells"]:
        hidden = {"remove-output", "remove-cell"} & set(cell["metadata"].get("tags", []))
        if cell["cell_type"] == "code" and not hidden and any(map(_is_shown, cell["outputs"])):
            expected += 1
    if shown < expected:
        problems.append(
            f"{expected} cells of the executed notebook have outputs, the page shows {shown}"
        )
    return problems


def _short(tag: Tag) -> str:
    return repr(tag.get_text().strip()[:120])


def _is_shown(output: dict[str, Any]) -> bool:
    shown = ("text/plain", "text/html", "text/markdown", "image/png", "image/svg+xml", "text/latex")
    return output["output_type"] in ("stream", "error") or any(
        m in output.get("data", {}) for m in shown
    )


def file_problems(page: Path, site: Path = SITE) -> list[str]:
    """All that can be told without a browser."""
    return [
        *link_problems(page, site),
        *asset_problems(page),
        *image_problems(page),
        *text_problems(page),
        *output_problems(page, site),
    ]


# -------------------------------------------------------------------------------------------- browser

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]

# What the rendered page says about itself; run inside it.
LOOK = r"""
async () => {
  const maths = [...document.querySelectorAll('span.math, div.math')];
  if (maths.length && window.MathJax && MathJax.startup) await MathJax.startup.promise;
  if (document.fonts) await document.fonts.ready;
  const images = [...document.images];
  await Promise.all(images.map((i) => { i.loading = 'eager'; return i.decode().catch(() => null); }));
  const text = (node) => (node.textContent || '').trim().slice(0, 80);
  const luminance = (node) => {
    const rgb = getComputedStyle(node).backgroundColor.match(/[\d.]+/g).map(Number);
    return rgb.length > 3 && rgb[3] === 0 ? null : (rgb[0] + rgb[1] + rgb[2]) / 765;
  };
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
    imagesDistorted: images
      .filter((i) => i.naturalWidth && i.width > 30 && i.height > 0)
      .filter((i) => Math.abs(i.width / i.height * i.naturalHeight / i.naturalWidth - 1) > 0.03)
      .map((i) => i.getAttribute('src')),
    theme: document.documentElement.dataset.theme || null,
    background: luminance(document.body) ?? luminance(document.documentElement),
    scrollWidth: Math.max(document.documentElement.scrollWidth, document.body.scrollWidth),
    innerWidth: innerWidth,
    wide: wide,
  };
}
"""


def browse(
    browser: Browser,
    url: str,
    *,
    mode: str = "light",
    width: int = 1200,
    server: str | None = None,
) -> list[str]:
    """Open `url` with the network blocked and report what is wrong on it.

    Nothing but files, or `server` (an origin on this machine) if given, is let through.
    """
    problems: list[str] = []
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=mode)
    context.add_init_script(
        f"localStorage.setItem('mode', '{mode}'); localStorage.setItem('theme', '{mode}');"
    )

    def is_ours(address: str) -> bool:
        return address.startswith(server) if server else address.startswith("file:")

    def guard(route: Route) -> None:
        address = route.request.url
        if is_ours(address) or address.startswith(("data:", "blob:")):
            route.continue_()
        else:
            problems.append(f"asks another host: {address}")
            route.abort()

    def failed(request: Request) -> None:
        if is_ours(request.url):
            problems.append(f"request failed: {request.url} ({request.failure})")

    context.route("**/*", guard)
    page = context.new_page()
    page.on("requestfailed", failed)
    page.on(
        "response",
        lambda r: problems.append(f"answer {r.status}: {r.url}") if r.status >= 400 else None,
    )
    page.on("pageerror", lambda error: problems.append(f"script error: {error}"))
    page.on(
        "console",
        lambda m: (
            problems.append(f"console {m.type}: {m.text}")
            if m.type in ("error", "warning")
            else None
        ),
    )
    try:
        page.goto(url, wait_until="load")
        page.wait_for_load_state("networkidle")
        look = page.evaluate(LOOK)
        page.wait_for_load_state("networkidle")
    finally:
        context.close()

    problems += [f"maths not rendered: {text}" for text in look["mathsUnrendered"]]
    problems += [f"maths error: {text}" for text in look["mathsErrors"]]
    problems += [f"unknown TeX command: {text}" for text in look["mathsUnknown"]]
    problems += [f"image did not load: {src}" for src in look["imagesBroken"]]
    problems += [f"image out of shape: {src}" for src in look["imagesDistorted"]]
    if look["theme"] is not None:
        if look["theme"] != mode:
            problems.append(f"asked for {mode} mode, got {look['theme']}")
        if look["background"] is not None and (look["background"] > 0.5) != (mode == "light"):
            problems.append(f"{mode} mode has a background of lightness {look['background']:.2f}")
    if look["scrollWidth"] > look["innerWidth"]:
        problems.append(
            f"scrolls sideways: {look['scrollWidth']} px in a window of {look['innerWidth']} px"
            f" (reaching out: {', '.join(look['wide'])})"
        )
    return list(dict.fromkeys(problems))
