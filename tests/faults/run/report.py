"""The verdicts of a run for people and for programs."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import surroundings
from tests.faults.run.fault import Outcome, Verdict


def table(verdicts: Sequence[Verdict]) -> str:
    """Every verdict in a row, then how many of each there are."""
    rows = [f"{'fault':<30}{'verdict':<9}{'recovery s':>11}{'took s':>9}"]
    for each in verdicts:
        recovery = "" if each.recovery_s is None else f"{each.recovery_s:.1f}"
        rows.append(f"{each.name:<30}{each.outcome:<9}{recovery:>11}{each.took_s:>9.1f}")
    counted = Counter(each.outcome for each in verdicts)
    rows.append(", ".join(f"{counted[outcome]} {outcome}" for outcome in Outcome))
    return "\n".join(rows)


def write(verdicts: Sequence[Verdict], path: Path, meanwhile: Sequence[dict[str, Any]]) -> None:
    """All of it as JSON; `meanwhile` tells what load and prober of each mesh did."""
    found = {
        "measured_on": surroundings(),
        "faults": [each.as_json() for each in verdicts],
        "meanwhile": [*meanwhile],
    }
    path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


def succeeded(verdicts: Sequence[Verdict]) -> bool:
    """Whether nothing failed; what was skipped did not fail."""
    return all(each.outcome is not Outcome.FAIL for each in verdicts)
