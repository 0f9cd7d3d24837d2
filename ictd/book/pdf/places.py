"""What a printed PDF says of itself: where its anchors are, its metadata, how many pages it has."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..errors import BookError

# The place of a hash of everything that decides the PDF, among its metadata.
_FINGERPRINT = "/Fingerprint"
# And what is cut at the margin, if anything, which cannot be seen in the PDF: it is not in there.
_TOO_WIDE = "/TooWide"


@dataclass(frozen=True)
class Made:
    """A PDF that is there: its fingerprint and how many pages it has."""

    fingerprint: str
    pages: int


def numbers(pdf: bytes, anchors: Iterable[str]) -> dict[str, int]:
    """The pages, counted from 1, on which anchors of the document landed.

    Raises:
        BookError: If an anchor is nowhere.
    """
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(pdf))
    found = reader.named_destinations
    places = {}
    for anchor in anchors:
        destination = found.get(anchor) or found.get(f"/{anchor}")
        place = None if destination is None else reader.get_destination_page_number(destination)
        if place is None or place < 0:
            raise BookError(f"the PDF has no place named {anchor!r}")
        places[anchor] = place + 1
    return places


def with_metadata(
    pdf: bytes, *, title: str, author: str, fingerprint: str, too_wide: Iterable[str] = ()
) -> bytes:
    """The PDF with its title, its authors, the fingerprint of what it was made of and what is cut.

    The language and the outline are in it already, from the document.
    """
    from pypdf import PdfWriter

    # What Chromium wrote stays as it is, a new end is appended to it.
    writer = PdfWriter(io.BytesIO(pdf), incremental=True)
    metadata = {"/Title": title, "/Author": author, _FINGERPRINT: fingerprint}
    writer.add_metadata({**metadata, _TOO_WIDE: "; ".join(too_wide)})
    made = io.BytesIO()
    writer.write(made)
    return made.getvalue()


def made(path: Path) -> Made | None:
    """What is known of the PDF at a path, None if there is none that can be read."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(path)
        metadata = reader.metadata
        fingerprint = metadata.get(_FINGERPRINT) if metadata else None
        return Made(str(fingerprint), len(reader.pages))
    except (OSError, PyPdfError):
        return None
