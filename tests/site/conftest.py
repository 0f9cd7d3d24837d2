"""The built site, a browser, and a web server for it."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_checks import Reader, Visit, axe_source
from site_checks import NO_SITE, SITE, is_redirect, name_of, pages


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`page` is every page; `shown` leaves out those that only lead to another."""
    for name in {"page", "shown"} & set(metafunc.fixturenames):
        found = [p for p in pages() if name == "page" or not is_redirect(p)]
        found = found or [SITE / "index.html"]
        metafunc.parametrize(name, found, ids=[name_of(p) for p in found])


@pytest.fixture(scope="session")
def site() -> Path:
    if not (SITE / "index.html").is_file():
        pytest.fail(NO_SITE, pytrace=False)
    return SITE


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def server(site: Path) -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def reader(browser: Any) -> Callable[..., Reader]:
    """A `Reader` of the given kind; the same kind is the same reader, and one window."""
    return functools.cache(functools.partial(Reader, browser))


# The visits of each page. A dark page is the harder one to print; the paper's width is the same for all.
VISITS = {
    "light, from a file": {"widths": (360, 1200)},
    "dark, from a server": {"mode": "dark", "paper": True},
}


@pytest.fixture(scope="module")
def visit(reader: Callable[..., Reader], server: str) -> Callable[[str, Path], Visit]:
    """The visit of a page, of a kind named in `VISITS`; each is made once.

    A chapter takes seconds to load, so that all that can be told from one load is found out at once.
    """
    axe = axe_source()

    @functools.cache
    def once(kind: str, page: Path) -> Visit:
        if "file" in kind:
            return reader(axe=axe, **VISITS[kind]).visit(page.as_uri())
        return reader(server=server, axe=axe, **VISITS[kind]).visit(f"{server}/{name_of(page)}")

    return once
