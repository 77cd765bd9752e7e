"""Which results are older than the code that they are figures of."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.catalogue import BENCHMARKS
from benchmarks.report import RESULTS

ROOT = Path(__file__).parents[1]


def measured_on(name: str) -> dict[str, Any] | None:
    """What a result was measured on, with its `commit`; None where there is no such file."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text("utf-8")).get("measured_on", {})
    return found


def why_stale(name: str) -> str | None:
    """Why a result says nothing of the code as it is; None where it does.

    Raises:
        RuntimeError: there is no git, or no clone.
    """
    around = measured_on(name)
    if around is None:
        return "not measured"
    commit = str(around.get("commit") or "")
    if not commit or commit.endswith("+"):
        return "measured on files that no commit holds"
    if _git("cat-file", "-e", f"{commit}^{{commit}}") is None:
        return f"measured on {commit}, which this clone does not have"
    changed = _git("diff", "--name-only", commit, "--", *BENCHMARKS[name].code)
    if changed is None:
        raise RuntimeError("git cannot compare: is this a clone?")
    files = [one for one in changed.splitlines() if not one.startswith("benchmarks/results/")]
    if not files:
        return None
    return f"{len(files)} files changed since {commit}, {files[0]} among them"


def listing(names: Sequence[str]) -> list[str]:
    """A line for each of the results that is stale, with what measures it again."""
    lines = []
    for name in names:
        if why := why_stale(name):
            one = BENCHMARKS[name]
            lines.append(f"{name}: {why}; {one.command} ({one.minutes} minutes)")
    return lines


def _git(*words: str) -> str | None:
    """What git says; None where it fails."""
    git = shutil.which("git")
    if git is None:
        raise RuntimeError("there is no git here")
    done = subprocess.run([git, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None
