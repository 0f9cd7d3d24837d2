"""The button that copies a block of code gives what can be pasted."""

from __future__ import annotations

from pathlib import Path

import pytest

# The button selects the code in a field out of sight and copies that.
KEEP = "document.addEventListener('copy', () => { window.copied = document.activeElement.value; });"


@pytest.mark.browser
def test_prompts_and_results_are_left_out_and_other_code_is_whole(browser, site: Path) -> None:
    page = browser.new_page()
    page.add_init_script(KEEP)

    def copied(name: str) -> list[str]:
        page.goto((site / "chapters" / f"{name}.html").as_uri())
        found = []
        for button in page.locator("button.copybtn").all():
            button.click(force=True)
            page.wait_for_function("window.copied !== undefined")
            found.append(
                page.evaluate("{ const text = window.copied; delete window.copied; text }")
            )
        return found

    recipes = copied("recipes")
    (plain,) = copied("index")
    page.close()
    for code in recipes:
        assert not [line for line in code.splitlines() if line.startswith((">>>", "... "))]
        compile(code, "recipe", "exec")
    assert recipes[0].splitlines()[0] == "import ictd"
    lines = "values = ictd.weighted_softmax_td(\n    context, scores, chain.gamma, n_steps=200\n)\n"
    assert lines in recipes[1]
    assert recipes[1].splitlines()[-1] == "print(values.shape, values[-1].round(2))"
    assert plain.startswith("import ictd\nimport numpy as np\n")
    compile(plain, "index", "exec")
