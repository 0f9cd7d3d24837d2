"""The site to take along: as one zip, as a PDF, and the links to both on the landing page."""

from __future__ import annotations

import re
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from .._files import replacing
from .errors import BookError
from .files import locked, write_text
from .project import Project

#: The folder that the zip unpacks to, and the name under which the site offers the zip and the PDF.
NAME = "ictd-book"
# The landing page has this element, empty. It is filled where there is a zip or a PDF, in the page's file
# itself: a script could look for them only after the page is shown, and not at all from a file.
_PLACE = re.compile(r'(<div class="offline-copy">)(.*?)(</div>)', re.DOTALL)
# The earliest date that the format knows: the same site makes the same zip.
_DATE = (1980, 1, 1, 0, 0, 0)


def pack(project: Project) -> Path:
    """Zip the built site to `_build/site.zip`, offer the zip in the site, and return its path.

    The zipped landing page has no link, since the zip is not in itself. The zip is in its place
    before the link to it, and a new site replaces both: see `forget`.

    Raises:
        BookError: If there is no site, or its landing page has no place for the link.
    """
    with locked(project.build_folder / "lock"):
        site, landing = _site(project)
        target = _target(project)
        write_zip(site, landing, target)
        use = "to be read without a network: unpack it and open <code>index.html</code>"
        _offer(site, landing, target, "zip", use)
    return target


def offer_pdf(project: Project, pdf: Path, pages: int) -> None:
    """Offer a PDF of the book in the site. The caller holds the lock of the build.

    Args:
        project: The book.
        pdf: The PDF, made of the site as it is.
        pages: How many pages it has.

    Raises:
        BookError: If there is no site, or its landing page has no place for the link.
    """
    site, landing = _site(project)
    _offer(site, landing, pdf, "PDF", f"{pages} pages, to be read on paper")


def check(project: Project) -> None:
    """Refuse a site that has no place for a link to a zip or a PDF, before one is made.

    Raises:
        BookError: If there is no site, or its landing page has no such place.
    """
    _, landing = _site(project)
    _landing(landing, lambda links: links)


def forget(project: Project) -> None:
    """Remove the zip and the PDF of a site that another one has replaced."""
    _target(project).unlink(missing_ok=True)
    pdf_path(project).unlink(missing_ok=True)


def write_zip(site: Path, landing: Path, target: Path) -> None:
    """Zip a site, in one folder and a fixed order, as it is without the zip and the PDF.

    Args:
        site: Folder of the site.
        landing: Its landing page.
        target: The zip, replaced when the new one is complete.

    Raises:
        BookError: If the landing page has no place for a link.
    """
    plain = _landing(landing, lambda links: "")
    with replacing(target) as stream, zipfile.ZipFile(stream, "w") as archive:
        for path in _files(site):
            entry = zipfile.ZipInfo(f"{NAME}/{path.relative_to(site).as_posix()}", _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            data = plain.encode() if path == landing else path.read_bytes()
            archive.writestr(entry, data, compresslevel=9)


def _files(site: Path) -> Iterator[Path]:
    """What a reader needs of a site, in order: no hidden files, not the zip and not the PDF."""
    offered = {Path(f"{NAME}.zip"), Path(f"{NAME}.pdf")}
    for path in sorted(site.rglob("*")):
        inside = path.relative_to(site)
        hidden = any(part.startswith(".") for part in inside.parts)
        if path.is_file() and not hidden and inside not in offered:
            yield path


def _site(project: Project) -> tuple[Path, Path]:
    """The built site and its landing page."""
    site = project.build_folder / "html"
    landing = site / project.pages()[0].relative_to(project.root).with_suffix(".html")
    if not landing.is_file():
        raise BookError("there is no built book; run: ictd build")
    return site, landing


def _offer(site: Path, landing: Path, path: Path, kind: str, use: str) -> None:
    """Copy a file into the site, then link it on the landing page, in the place of its last link."""
    name = f"{NAME}{path.suffix}"
    up = "../" * (len(landing.relative_to(site).parts) - 1)
    link = (
        f'<p><a href="{up}{name}" download>The whole book as a {kind}</a>, '
        f"{path.stat().st_size / 1e6:.1f} MB, {use}.</p>"
    )
    own = re.compile(rf'<p><a href="[^"]*{re.escape(name)}" download>.*?</p>')
    text = _landing(landing, lambda links: own.sub("", links) + link)
    with replacing(site / name) as offered, open(path, "rb") as made:
        shutil.copyfileobj(made, offered)
    write_text(landing, text)


def _landing(landing: Path, links: Callable[[str], str]) -> str:
    """The text of the landing page with other links in the place for them."""
    text = landing.read_text(encoding="utf-8")
    text, places = _PLACE.subn(lambda place: place[1] + links(place[2]) + place[3], text)
    if places != 1:
        raise BookError(f'{landing.name} needs one <div class="offline-copy"></div> for the link')
    return text


def pdf_path(project: Project) -> Path:
    """Where the PDF of a book is."""
    return project.build_folder / "book.pdf"


def _target(project: Project) -> Path:
    return project.build_folder / "site.zip"
