"""Asking for a domain's Spark Connect server by a command that starts it if it does not run."""

import json
import subprocess
import threading
from collections.abc import Sequence

from pydantic import ValidationError

from processors.settings import DomainSpark

TIMEOUT_S = 270.0
"""A command that takes longer is ended."""


class Asking:
    """One run of the command, in a thread of its own.

    Args:
        command: prints {"remote": ..., "token": ...} on a line as soon as it knows them, and ends
            with 0 when the server is ready.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._heard, self._ended = threading.Event(), threading.Event()
        self._found: DomainSpark | None = None
        self.fault: str | None = None
        """Why there is no server, once it has ended without one."""
        threading.Thread(target=self._run, daemon=True).start()

    def server(self, *, patient: bool) -> DomainSpark | None:
        """Where the server answers, or will when it has started; None if there is none.

        patient: wait until it has started.
        """
        (self._ended if patient else self._heard).wait()
        return None if patient and self.fault else self._found

    @property
    def has_ended(self) -> bool:
        """Whether the command has ended; else the server is being started."""
        return self._ended.is_set()

    def _run(self) -> None:
        try:
            # the command is the operator's own setting, and a domain's name is [a-z0-9-]
            with subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            ) as process:
                timer = threading.Timer(TIMEOUT_S, process.kill)
                timer.start()
                try:
                    self._hear(process)
                finally:
                    timer.cancel()
        except OSError as error:
            self.fault = f"{self._command[0]}: {error.strerror}"
        finally:
            self._ended.set()
            self._heard.set()

    def _hear(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None  # noqa: S101 - for the type checker
        said = process.stdout.readline().strip()
        try:
            self._found = DomainSpark.model_validate(json.loads(said))
        except (ValueError, ValidationError):
            self.fault = f"the command printed {said[:100]!r}"
        else:
            self._heard.set()
        _, complaint = process.communicate()
        if process.returncode < 0:
            self.fault = f"it does not start in {TIMEOUT_S:g} s"
        elif process.returncode > 0:
            self.fault = _outline(complaint) or f"exit code {process.returncode}"


def _outline(text: str) -> str:
    """The first and the last line of what a command said: what is wrong, and what to do."""
    lines = [line.strip().rstrip(".") for line in text.strip().splitlines()]
    if lines[:1] == ["Traceback (most recent call last):"]:
        return lines[-1]
    return ". ".join(dict.fromkeys([*lines[:1], *lines[-1:]]))
