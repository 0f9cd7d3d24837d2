"""Chromium, which sets the formulas and prints: found here, opened without a network."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import BookError

if TYPE_CHECKING:
    from playwright.sync_api import Page

#: The width of the text in pixels of 1/96 inch: A4 less the margins that print.css asks for.
WIDTH = 658
_HEIGHT = 1000
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# The first version that can print numbers of pages from a stylesheet.
_OLDEST = 131
# The whole book in milliseconds; on a busy machine it takes a minute.
_PATIENCE = 900_000
_FLAGS = [
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    # No name is looked up: nothing but this machine can be reached, whatever a page asks for.
    "--host-resolver-rules=MAP * ~NOTFOUND",
]
_INSTALL = "pip install -e '.[pdf]'"
_NUMBER = """(numbers) => {
  for (const link of document.querySelectorAll(".contents a"))
    link.querySelector(".number").textContent = numbers[link.getAttribute("href").slice(1)];
}"""


def check() -> None:
    """Refuse missing packages, or a missing Chromium, at once: before the book is built.

    Raises:
        BookError: It says what to install, and how.
    """
    with opened():
        pass


def program(environment: Mapping[str, str] = os.environ) -> str | None:
    """The path of Chromium: the variable CHROMIUM, else one on PATH, None if there is none.

    Raises:
        BookError: If CHROMIUM is set and is no program.
    """
    if named := environment.get("CHROMIUM"):
        if found := shutil.which(named):
            return found
        raise BookError(f"CHROMIUM={named}: there is no such program")
    path = environment.get("PATH", "")
    return next((found for name in _NAMES if (found := shutil.which(name, path=path))), None)


@contextlib.contextmanager
def opened() -> Iterator[Page]:
    """A page of Chromium that is laid out as it will be printed.

    Raises:
        BookError: If there is no Chromium, or one that is too old, or if playwright or pypdf is not
            installed; it says what to install. Also if Chromium fails while the page is used.
    """
    for name in ("playwright", "pypdf"):
        if importlib.util.find_spec(name) is None:
            raise BookError(f"a PDF needs the package {name}: {_INSTALL}, or make pdf")
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        kind = playwright.chromium
        try:
            browser = kind.launch(executable_path=program(), args=_FLAGS)
        except Error as error:
            reason = str(error).strip().splitlines()[0]
            raise BookError(
                f"Chromium does not start ({reason}). On Debian or Ubuntu: apt install chromium; "
                "elsewhere: python -m playwright install chromium. CHROMIUM=PATH names another one"
            ) from None
        try:
            if int(browser.version.split(".")[0]) < _OLDEST:
                raise BookError(
                    f"Chromium {browser.version} cannot number pages; {_OLDEST} or newer is needed"
                )
            context = browser.new_context(
                viewport={"width": WIDTH, "height": _HEIGHT}, color_scheme="light", offline=True
            )
            context.set_default_timeout(_PATIENCE)
            yield context.new_page()
        except Error as error:
            reason = str(error).strip().splitlines()[0]
            raise BookError(f"Chromium could not print the book: {reason}") from None
        finally:
            browser.close()


def load(page: Page, document: Path) -> dict[str, Any]:
    """Open the document, set its formulas and make what is too wide smaller.

    Returns:
        What fit.js returns: the number of `formulas`, and what is too `wide` for the page all the same.

    Raises:
        BookError: If a script failed.
    """
    from playwright.sync_api import Error

    page.emulate_media(media="print", color_scheme="light")
    page.goto(document.as_uri())
    script = Path(__file__).with_name("fit.js").read_text(encoding="utf-8")
    try:
        found: dict[str, Any] = page.evaluate(script)
    except Error as error:
        raise BookError(f"the pages cannot be prepared for print: {error}") from None
    return found


def number(page: Page, numbers: Mapping[str, int]) -> None:
    """Write the numbers of pages, by anchor, into the contents."""
    page.evaluate(_NUMBER, dict(numbers))


def printed(page: Page, *, draft: bool = False) -> bytes:
    """The PDF of the document; a draft, made in less time, has the same pages without outline and tags."""
    return page.pdf(
        prefer_css_page_size=True, print_background=True, outline=not draft, tagged=not draft
    )
