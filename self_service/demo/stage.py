"""The stage: runs `sdm` as a person would, tells each step in a line, and keeps the checks."""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

from local_platform.layout import Layout

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Check:
    """One claim of the story and whether it held; `seconds` where a wait was measured."""

    claim: str
    held: bool
    detail: str
    seconds: float | None = None


@dataclass(frozen=True)
class Answer:
    """What `sdm` said: exit code, parsed JSON (None if it gave none), and its error text."""

    code: int
    data: Any
    error: str


class StoryBrokenError(Exception):
    """A step on which the rest depends did not work; the message says which and why."""


class Stage:
    """Runs commands against the mesh at `home` and prints the story."""

    def __init__(self, home: Path, environment: dict[str, str]) -> None:
        self.home = home
        self.console = Console(highlight=False)
        self.checks: list[Check] = []
        self._environment = {**os.environ, **environment, "SDM_HOME": str(home)}
        self._chapter = 0

    def chapter(self, title: str) -> None:
        """Begin a part of the story."""
        self._chapter += 1
        self.console.print(f"\n[bold]{self._chapter:2}. {title}[/bold]")

    def tell(self, line: str) -> None:
        """Say what happened."""
        self.console.print(f"    {line}", markup=False, soft_wrap=True)

    def sdm(self, *words: str, refused: bool = False, quiet: bool = False) -> Answer:
        """Run one command; a failure ends the story unless a refusal is what is expected."""
        if not quiet:
            self.console.print(f"    [dim]$ sdm {shlex.join(words)}[/dim]", soft_wrap=True)
        done = subprocess.run(
            [sys.executable, "-m", "self_service.cli", *words, "-o", "json"],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        answer = Answer(done.returncode, _parsed(done.stdout), done.stderr.strip())
        if done.returncode != 0 and not refused:
            raise StoryBrokenError(
                f"`sdm {' '.join(words)}` ended with {done.returncode}:\n{answer.error}"
            )
        return answer

    def watched(self, *words: str) -> None:
        """Run one command whose progress the reader sees as it goes."""
        self.console.print(f"    [dim]$ sdm {' '.join(words)}[/dim]", soft_wrap=True)
        command = [sys.executable, "-m", "self_service.cli", *words, "-o", "json"]
        done = subprocess.run(
            command, env=self._environment, stdout=subprocess.DEVNULL, check=False
        )
        if done.returncode != 0:
            raise StoryBrokenError(f"`sdm {' '.join(words)}` ended with {done.returncode}")

    def check(
        self, claim: str, held: object, detail: str = "", seconds: float | None = None
    ) -> None:
        """Keep the outcome of one claim."""
        found = Check(claim, bool(held), detail, seconds)
        self.checks.append(found)
        mark = "[green]✓[/green]" if found.held else "[red]✗[/red]"
        after = f" ({seconds:.1f} s)" if seconds is not None else ""
        self.console.print(f"    {mark} {claim}{after}", soft_wrap=True)
        if detail and not found.held:
            self.tell(f"  {detail}")

    def within(
        self, seconds: float, look: Callable[[], _Found | None]
    ) -> tuple[_Found | None, float]:
        """Look until there is something; returns it (or None) and the seconds it took."""
        start = time.monotonic()
        while True:
            found = look()
            took = time.monotonic() - start
            if found or took > seconds:
                return found or None, took

    def summary(self, title: str) -> bool:
        """Print the table of checks; whether all of them held."""
        table = Table(title=title, title_justify="left")
        for column in ("", "check", "took"):
            table.add_column(column)
        for check in self.checks:
            mark = "[green]✓[/green]" if check.held else "[red]✗[/red]"
            table.add_row(mark, check.claim, f"{check.seconds:.1f} s" if check.seconds else "")
        self.console.print()
        self.console.print(table)
        return not self._failed()

    def failure(self, fault: str = "") -> str:
        """What did not hold and where the logs lie; `fault` broke the story off."""
        broken = [f"  ✗ {one.claim}: {one.detail or 'it did not hold'}" for one in self._failed()]
        if fault:
            broken.append(f"  ✗ in chapter {self._chapter} the story broke off: {fault}")
        logs = f"The servers' logs are in {Layout(self.home).logs}: begin with governor.log."
        step = (
            "Next step: mend what is named above and run it again; with `./scripts/demo --keep` "
            "the mesh stays, to look with `sdm status` and `sdm trace`."
        )
        return "\n".join(["The story did not hold:", *broken, logs, step])

    def _failed(self) -> list[Check]:
        return [check for check in self.checks if not check.held]

    def write(self, path: Path, seconds: float) -> None:
        """Write the checks as JSON."""
        data = {"seconds": round(seconds, 1), "checks": [asdict(check) for check in self.checks]}
        path.write_text(json.dumps(data, indent=2) + "\n", "utf-8")


def items(data: Any) -> list[dict[str, Any]]:
    """The rows of a listing."""
    if isinstance(data, dict):
        return list(data.get("items", []))
    return list(data or [])


def _parsed(text: str) -> Any:
    """One JSON document, or a list of one per line; None for anything else."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines()] or None
    except ValueError:
        return None
