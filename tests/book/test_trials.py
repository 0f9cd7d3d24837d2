"""`ictd trials`: how often claims hold at other seeds."""

from __future__ import annotations

import json

SEED = "seed: int = 3  # seed of all random numbers, in [0, 9]"
CHECK = "from ictd.book import Chapter\n\nchapter = Chapter()"
CLAIMS = """\
chapter.claim('always', 'seeds are numbers', seed, at_least=0)
chapter.claim('not-five', 'the seed is not 5', abs(seed - 5), at_least=1)"""


def test_claims_are_counted_over_the_seeds_after_the_chapters_own(toy):
    cells = [("markdown", "# Title"), ("parameters", SEED), CHECK, CLAIMS]
    chapter = toy.write("01_toy", cells)
    out, _ = toy.ictd("trials", "01", "--seeds", "3")  # seeds 4, 5 and 6
    assert out.splitlines() == ["3 of 3  always", "2 of 3  not-five"]

    recorded = json.loads((toy.root / "chapters" / "trials.json").read_text())["01_toy"]
    assert recorded["seeds"] == 3
    assert recorded["held"] == {"always": 3, "not-five": 2}

    toy.ictd("build")
    out, _ = toy.ictd("claims")
    assert "held at 2 of 3 other seeds" in out
    claims = json.loads(toy.ictd("claims", "--json")[0])["claims"]
    listed = {claim["id"]: claim for claim in claims}
    assert (listed["not-five"]["held"], listed["not-five"]["of_seeds"]) == (2, 3)

    # Counts of other code are not shown.
    toy.write(chapter.stem, [*cells, "print('more')"])
    toy.ictd("build")
    assert "other seeds" not in toy.ictd("claims")[0]


def test_trials_need_a_seed_and_a_number_of_seeds(toy):
    toy.add("01_toy", "print('no seed')")
    assert "no parameter 'seed: int'" in toy.ictd("trials", "01", status=1)[1]
    assert "--seeds 0" in toy.ictd("trials", "01", "--seeds", "0", status=2)[1]
    assert "no chapter '7'" in toy.ictd("trials", "7", status=2)[1]
