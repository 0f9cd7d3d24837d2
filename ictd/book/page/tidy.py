"""The body of a page as Sphinx writes it, made smaller and to stand alone, without a script.

- A block of the class `dropdown`, which in the book a script folds, becomes an element `details`.
- There is one h1. Tables stand in a box in which they can scroll.
- Of the colours of code, those of keywords, names that are defined, strings, numbers and comments are left.
- No two elements have one id.
- What would load something, such as a script in the output of a cell, is taken out.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

# Classes of Pygments, by how they begin, and the ones that the page has for them.
_COLOURS = {
    "c": "c",
    "k": "k",
    "ow": "k",
    "s": "s",
    "m": "m",
    "nf": "f",
    "nc": "f",
    "gr": "e",
    "ne": "e",
}
# Classes for the book's theme.
_NEEDLESS = frozenset(
    [
        *("docutils", "container", "notranslate", "nohighlight", "literal", "highlight"),
        *("reference", "internal", "external", "align-default", "simple"),
        *("table", "colwidths-auto", "row-odd", "row-even", "text-left"),
    ]
)
_LOADING = frozenset(
    {"script", "link", "iframe", "object", "embed", "base", "meta", "audio", "video"}
)
_VOID = frozenset({"link", "base", "meta", "embed"})
# A formula with the marks that touch it: no line breaks between them.
_HELD = re.compile(
    r"[(\[“]<math>(?:(?!</math>).)*</math>[-.,;:!?)\]’”]*|<math>(?:(?!</math>).)*</math>[-.,;:!?)\]’”]+"
)
_CLASS = re.compile(r' class="([^"]*)"')
_ID = re.compile(r"""\sid=("[^"]*"|'[^']*'|[^\s>]*)""")
_SOURCE = re.compile(r'\s(?:src|srcset|poster|background)\s*=(?!\s*["\']?data:)', re.IGNORECASE)


def tidy(body: str) -> str:
    """The body of a page that stands alone.

    Args:
        body: HTML.
    """
    parser = _Tidy()
    parser.feed(body)
    parser.close()
    return _HELD.sub(r'<span class="held">\g<0></span>', "".join(parser.made))


class _Tidy(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.made: list[str] = []
        self._ends: dict[str, list[str]] = {"div": [], "span": [], "p": [], "table": [], "h1": []}
        self._code = 0  # depth of elements pre
        self._dropped = 0  # depth of elements that load something
        self._folds = False  # whether the next paragraph is the title of what folds
        self._headings = 0
        self._ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        text = self.get_starttag_text() or ""
        if tag in _LOADING or (tag in ("img", "source", "input") and _SOURCE.search(text)):
            self._dropped += tag in _LOADING - _VOID
            return
        classes = (dict(attrs).get("class") or "").split()
        self._code += tag == "pre"
        begin, end = self._element(tag, self._once(text, dict(attrs).get("id")), classes)
        self._put(_without(begin, _NEEDLESS))
        if tag in self._ends:
            self._ends[tag].append(end)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        text = self.get_starttag_text() or ""
        if tag not in _LOADING and not _SOURCE.search(text):
            self._put(_without(text, _NEEDLESS))

    def _element(self, tag: str, text: str, classes: list[str]) -> tuple[str, str]:
        """The begin and the end of an element."""
        if tag == "div" and {"dropdown", "admonition"} <= set(classes):
            self._folds = True
            return "<details" + text.removeprefix("<div"), "</details>"
        if self._folds:
            self._folds = False
            if "admonition-title" in classes:
                return "<summary" + text.removeprefix("<p"), "</summary>"
            # The title of a proof is the first word of its text.
            text = f"<summary>Proof</summary>\n{text}"
        if tag == "span" and (self._code or "pre" in classes):
            colour = _colour(classes) if self._code else ""
            return (f'<span class="{colour}">', "</span>") if colour else ("", "")
        if tag == "table":
            return f'<div class="scroll">{text}', "</table></div>"
        if tag == "h1":
            self._headings += 1
            if self._headings > 1:
                return "<h2" + text.removeprefix("<h1"), "</h2>"
        return text, f"</{tag}>"

    def _once(self, text: str, id: str | None) -> str:
        """The begin of an element, without its id if another one has it."""
        if id is not None and id in self._ids:
            return _ID.sub("", text)
        if id is not None:
            self._ids.add(id)
        return text

    def handle_endtag(self, tag: str) -> None:
        if tag in _LOADING:
            self._dropped -= tag in _LOADING - _VOID and self._dropped > 0
            return
        self._code -= tag == "pre" and self._code > 0
        open_ones = self._ends.get(tag)
        self._put(open_ones.pop() if open_ones else f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self._put(data)

    def handle_entityref(self, name: str) -> None:
        self._put(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._put(f"&#{name};")

    def handle_decl(self, decl: str) -> None:
        pass

    def _put(self, text: str) -> None:
        if not self._dropped:
            self.made.append(text)


def _colour(classes: list[str]) -> str:
    """The page's class for a piece of code, empty if it has no colour."""
    for name in classes[:1]:
        for start in (name[:2], name[:1]):
            if start in _COLOURS:
                return _COLOURS[start]
    return ""


def _without(begin: str, needless: frozenset[str]) -> str:
    """A begin of an element without some of its classes."""

    def left(found: re.Match[str]) -> str:
        kept = [name for name in found[1].split() if name not in needless]
        return f' class="{" ".join(kept)}"' if kept else ""

    return _CLASS.sub(left, begin)
