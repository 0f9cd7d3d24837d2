"""A Sphinx extension: formulas as MathML, which browsers draw without a script or a font of their own.

A formula that cannot be converted is shown as its TeX source.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.util.math import get_node_equation_number

# Numbered environments: the number is Sphinx's, and stands beside the formula.
_NUMBERED = re.compile(
    r"\\(begin|end)\{(equation|align|alignat|gather|multline|flalign|eqnarray)\}"
)
_ENVIRONMENT = re.compile(r"\\begin\{([^}]*)\}(?:(?!\\begin\{).)*?\\end\{\1\}", re.DOTALL)
_LABEL = re.compile(r"\\label\{[^}]*\}|\\(?:nonumber|notag)\b")
_TAG = re.compile(r"\\tag(\*?)\{([^{}]*)\}")
_TEXT = re.compile(r"\\text\{([^{}]*\$[^{}]*)\}")
# MathJax's names for what the converter knows by another one.
_OTHER_NAMES = {r"{split}": r"{aligned}", r"{eqnarray*}": r"{align*}", r"\mathds": r"\mathbb"}
_MACROS = {"substack": r"\begin{matrix}#1\end{matrix}"}


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx for each name in its list of extensions."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Converter:
    """Converts TeX to MathML.

    Args:
        macros: The book's macros, as MathJax takes them: name to TeX, or to a list of the TeX and
            the number of its arguments.
    """

    def __init__(self, macros: Mapping[str, Any] | None = None) -> None:
        own = {
            name: text if isinstance(text, str) else text[0]
            for name, text in (macros or {}).items()
        }
        self._convert = LatexToMathML(
            macros=_MACROS | own, fancy_error=False, allow_unreliable_rendering=True
        )

    def mathml(self, tex: str, *, display: bool) -> str:
        """The element `math` of a formula.

        Raises:
            ValueError: It cannot be converted; the message says why.
        """
        try:
            made = self._convert.convert_with_local_state(
                _normal(tex, display), displaystyle=display
            )
        except LatexError as error:
            raise ValueError(f"{error} (in {tex!r})") from None
        return str(made)

    def shown(self, tex: str, *, display: bool) -> str:
        """The element `math` of a formula, or its source as code."""
        try:
            return self.mathml(tex, display=display)
        except ValueError:
            code = f'<code class="tex">{html.escape(tex.strip(), quote=False)}</code>'
            return f"<pre>{code}</pre>" if display else code


def _normal(tex: str, display: bool) -> str:
    """The TeX of a formula in the converter's dialect."""
    tex = _LABEL.sub("", tex).strip()
    tex = _NUMBERED.sub(r"\\\1{\2*}", tex)
    for name, other in _OTHER_NAMES.items():
        tex = tex.replace(name, other)
    tex = _TAG.sub(lambda tag: rf"\qquad\text{{{tag[2] if tag[1] else f'({tag[2]})'}}}", tex)
    tex = _TEXT.sub(_text_with_maths, tex)
    if display and r"\\" in _outside(tex):
        return rf"\begin{{aligned}}{tex}\end{{aligned}}"
    return tex


def _text_with_maths(text: re.Match[str]) -> str:
    """Text with formulas in it, as texts and formulas one after another."""
    parts = text[1].split("$")
    return "".join(
        part if place % 2 else rf"\text{{{part}}}" for place, part in enumerate(parts) if part
    )


def _outside(tex: str) -> str:
    """What stands in no environment."""
    left = 1
    while left:
        tex, left = _ENVIRONMENT.subn("", tex)
    return tex


def _converter(translator: Any) -> Converter:
    """One converter a build, with the macros that the configuration has for MathJax."""
    builder = translator.builder
    if not hasattr(builder, "maths"):
        options = builder.config.mathjax3_config or {}
        builder.maths = Converter((options.get("tex") or {}).get("macros"))
    made: Converter = builder.maths
    return made


def _inline(self: Any, node: nodes.math) -> None:
    self.body.append(_converter(self).shown(node.astext(), display=False))
    raise nodes.SkipNode


def _display(self: Any, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", "", CLASS="formula"))
    self.body.append(f"<div>{_converter(self).shown(node.astext(), display=True)}</div>")
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})</span>')
    self.body.append("</div>\n")
    raise nodes.SkipNode
