"""The title page, the contents and the frame of the document."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import yaml

from .. import provenance
from ..cache import StoredRun
from ..project import Project
from .assemble import Heading, PaperPage

#: The deepest level of headings in the contents; deeper ones are in the outline alone.
DEPTH = 2
# What stands for a page's number before it is known; as wide as the widest number.
_UNKNOWN = "000"
_FRAME = Template("""\
<!DOCTYPE html>
<html lang="$language" data-theme="light">
<head>
<meta charset="utf-8">
<title>$title</title>
<meta name="author" content="$author">
<link rel="stylesheet" href="$site/_static/pygments.css">
<style>
$style
$heads
</style>
<script>window.MathJax = $mathjax</script>
$loader
</head>
<body>
$front
$contents
$body
</body>
</html>
""")


@dataclass(frozen=True)
class Facts:
    """What the title page says."""

    title: str
    author: str
    language: str
    rows: tuple[tuple[str, str], ...]


def facts(project: Project, config: dict[str, Any], runs: Iterable[StoredRun]) -> Facts:
    """What the title page says: of the book's configuration, its CITATION.cff and its commit.

    Args:
        project: The book.
        config: Its `_config.yml`.
        runs: The runs of its chapters.
    """
    path = project.root / "CITATION.cff"
    cited: dict[str, Any] = yaml.safe_load(path.read_text("utf-8")) if path.is_file() else {}
    versions = dict.fromkeys(provenance.versions(run.info) for run in runs)
    rows = [
        ("On the paper", _paper(cited.get("preferred-citation") or {})),
        ("Commit", _commit(project.root)),
        ("Made with", "; ".join(versions)),
        ("Licence", _licence(cited.get("license") or [])),
    ]
    sphinx = (config.get("sphinx") or {}).get("config") or {}
    return Facts(
        str(config.get("title") or "Untitled"),
        str(config.get("author") or "unknown"),
        str(sphinx.get("language") or "en"),
        tuple((name, text) for name, text in rows if text),
    )


def document(
    made: Facts,
    date: str,
    pages: Sequence[PaperPage],
    parts: dict[str, str],
    frame: dict[str, Any],
) -> str:
    """The HTML of the whole book.

    Args:
        made: What the title page says.
        date: The day on which the PDF is made.
        pages: The pages of the book.
        parts: Titles of parts, by the anchor of the page that is the first of one.
        frame: `site` and `script`, the addresses of the site and of MathJax; `mathjax`, its options;
            `style`, the stylesheet.
    """
    heads = "\n".join(
        f"#{_css_name(page.anchor)} {{ page: p{number}; }}\n"
        f"@page p{number} {{ @top-left {{ content: {_css_string(page.title)}; }} }}"
        for number, page in enumerate(pages)
    )
    body = "\n".join(
        f'<article id="{html.escape(page.anchor)}">\n{page.body}\n</article>' for page in pages
    )
    return _FRAME.substitute(
        language=html.escape(made.language),
        title=html.escape(made.title),
        author=html.escape(made.author),
        site=html.escape(frame["site"]),
        loader=_loader(frame),
        mathjax=json.dumps(frame["mathjax"]).replace("<", "\\u003c"),
        style=frame["style"],
        heads=heads,
        front=_title_page(made, date),
        contents=_contents(pages, parts),
        body=body,
    )


def _title_page(made: Facts, date: str) -> str:
    rows = [*made.rows, ("This PDF", f"of {date}")]
    listed = "\n".join(f"<dt>{name}</dt><dd>{html.escape(text)}</dd>" for name, text in rows)
    return (
        '<section class="title-page">\n'
        f'<p class="name">{html.escape(made.title)}</p>\n'
        f'<p class="authors">{html.escape(made.author)}</p>\n<dl>\n{listed}\n</dl>\n</section>'
    )


def _contents(pages: Sequence[PaperPage], parts: dict[str, str]) -> str:
    lines = ['<section class="contents">', '<h1 id="contents">Contents</h1>', "<ol>"]
    for page in pages:
        if title := parts.get(page.anchor):
            lines.append(f'<li class="part">{html.escape(title)}</li>')
        first, *rest = (heading for heading in page.headings if heading.level <= DEPTH)
        below = "".join(f"<li>{_entry(heading)}</li>\n" for heading in rest)
        lines.append(f"<li>{_entry(first)}\n{f'<ol>{below}</ol>' if below else ''}</li>")
    return "\n".join([*lines, "</ol>", "</section>"])


def _loader(frame: Mapping[str, Any]) -> str:
    """The element that loads MathJax; nothing in a book without formulas."""
    if not frame["script"]:
        return ""
    return (
        f'<script defer src="{html.escape(frame["site"])}/{html.escape(frame["script"])}"></script>'
    )


def _entry(heading: Heading) -> str:
    return (
        f'<a href="#{html.escape(heading.anchor)}"><span>{html.escape(heading.text)}</span>'
        f'<span class="number">{_UNKNOWN}</span></a>'
    )


def _paper(cited: dict[str, Any]) -> str:
    if not cited:
        return ""
    people = [f"{a.get('given-names', '')} {a['family-names']}".strip() for a in cited["authors"]]
    numbers = [str(found["value"]) for found in cited.get("identifiers") or []]
    return f"{', '.join(people)}. {cited['title']}. {', '.join([*numbers, str(cited['year'])])}"


def _commit(root: Path) -> str:
    commit = provenance.commit(root)
    date = provenance.git(root, "show", "-s", "--format=%cs", "HEAD")
    return f"{commit}, of {date}" if date and re.match("[0-9a-f]{7}", commit) else commit


def _licence(names: str | list[str]) -> str:
    found = [names] if isinstance(names, str) else names
    return " (code), ".join(found) + (" (text and figures)" if len(found) == 2 else "")


def _css_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else f"\\{c}" for c in name)


def _css_string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("<", "\\3c ")
    return f'"{escaped}"'
