"""The recipes run as they stand, each from its own first line, and give what the page shows."""

from __future__ import annotations

import code
import doctest
import re
import sys
from pathlib import Path

import pytest

import ictd

PAGE = Path(__file__).resolve().parents[1] / "chapters" / "recipes.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def recipes() -> dict[str, list[str]]:
    """The blocks of code of each section, by its title."""
    _, *sections = re.split(r"^## ", TEXT, flags=re.MULTILINE)
    return {
        section.partition("\n")[0]: [text for _, text in BLOCK.findall(section)]
        for section in sections
    }


each_recipe = pytest.mark.parametrize("title", recipes())


def test_all_code_of_the_page_is_in_a_recipe_and_is_looked_at() -> None:
    assert {language for language, _ in BLOCK.findall(TEXT)} == {"pycon"}
    assert TEXT.count("```") == 2 * sum(map(len, recipes().values()))
    assert len(recipes()) >= 7
    assert all(recipes().values())


@each_recipe
def test_a_recipe_gives_what_it_shows(title: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its blocks together, in names of their own: it uses nothing of another recipe."""
    examples = doctest.DocTestParser().get_doctest(
        "\n".join(recipes()[title]), {}, title, str(PAGE), 0
    )
    assert examples.examples[0].source.startswith("import ictd")
    # Results are compared to the last character: they are rounded, so that other machines agree.
    doctest.DocTestRunner(verbose=False, optionflags=doctest.REPORT_NDIFF).run(
        examples, out=sys.stderr.write
    )
    assert capsys.readouterr().err == ""


class Prompt(code.InteractiveConsole):
    """Python's plain prompt, which takes lines but does not run them."""

    def runcode(self, code: object) -> None:
        pass

    def showsyntaxerror(self, filename: str | None = None, **_: object) -> None:
        raise sys.exc_info()[1] or SyntaxError


@each_recipe
def test_a_recipe_can_be_pasted_into_a_plain_prompt(title: str) -> None:
    """There, a block would have to end with an empty line, which the button does not copy."""
    prompt = Prompt()
    for block in recipes()[title]:
        lines = [x[4:] for x in block.splitlines() if x.startswith((">>>", "..."))]
        open_at_the_end = [prompt.push(line) for line in lines][-1]
        assert not open_at_the_end, block


@each_recipe
def test_what_is_shown_is_short_and_what_is_printed_is_shown(title: str) -> None:
    for block in recipes()[title]:
        assert max(map(len, block.splitlines())) <= 92
        for example in doctest.DocTestParser().get_examples(block):
            assert bool(example.want) == (
                example.source.startswith("print(") or example.exc_msg is not None
            )
            # More digits than other machines agree on.
            assert not re.search(r"\d\.\d{4}", example.want)


def test_names_of_the_library_exist() -> None:
    named = set(re.findall(r"\bictd\.(\w+)", TEXT))
    assert len(named) >= 15
    assert [name for name in named if name not in ictd.__all__] == []
