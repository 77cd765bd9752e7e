"""The numbers that the README gives, against what they count."""

import re
from pathlib import Path

from tests.e2e.test_story import CLAIMS
from tests.faults.run.catalogue import ALONE, SHARED
from tests.simulation.planted import PLANTED, UNSEEN

README = (Path(__file__).parents[3] / "README.md").read_text("utf-8")


def test_the_readme_tells_how_many_faults_are_run() -> None:
    assert re.findall(r"# (\d+) faults", README) == [str(len(SHARED) + len(ALONE))]


def test_the_readme_tells_how_many_checks_the_simulation_finds_missing() -> None:
    assert re.findall(r"each of (\d+) checks", README) == [str(len(PLANTED.keys() - UNSEEN))]


def test_the_readme_shows_each_check_of_the_demo_in_its_order() -> None:
    shown = re.findall(r"^ +✓ (.+?)(?: \([\d.]+ s\))?$", README, re.MULTILINE)
    assert [re.sub(r"[0-9]{2,}", "#", one) for one in shown] == CLAIMS
