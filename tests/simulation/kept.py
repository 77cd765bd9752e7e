"""One schedule for each planted fault that shows it, kept in `kept.json`.

What a search draws depends on the code: what it found before a change it may not find after it.
A schedule that no longer shows its fault is found anew by `./scripts/simulate --planted --keep`.

A schedule that has shown a fault of the code itself stands there, too, as `found_<what>`.
"""

import json
from pathlib import Path

from tests.simulation.world import Act

FOUND = "found_"
FILE = Path(__file__).parent / "kept.json"


def kept_schedules() -> dict[str, list[Act]]:
    """Planted fault -> the acts of a schedule that shows it."""
    read = json.loads(FILE.read_text())
    return {name: [(act, a, b) for act, a, b in acts] for name, acts in read.items()}


def keep_schedules(schedules: dict[str, list[Act]]) -> None:
    """Write all of them, one fault a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(acts)}" for name, acts in schedules.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
