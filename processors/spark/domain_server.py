"""Asking for a server of a domain by a command that starts it if it does not run."""

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Generic, TypeVar

from pydantic import BaseModel, ValidationError

Server = TypeVar("Server", bound=BaseModel)

TIMEOUT_S = 270.0
"""A command that takes longer is ended."""
FIRST_WORD_S = 5.0
"""For so long a caller waits for the command to tell where the server will answer."""
_LAST_WORD_S = 5.0
_MOST_SHOWN = 65_536


@dataclass(frozen=True, slots=True)
class Answer(Generic[Server]):
    """The state of one run of the command.

    server: where it answers, or will when it has started; None while that is not known.
    fault: why there is no server, if the command has ended without one.
    ended: whether the command has ended; else the server is being started.
    """

    server: Server | None
    fault: str | None
    ended: bool


class Asking(Generic[Server]):
    """One run of the command, in a thread of its own.

    Args:
        command: prints where the server answers, as JSON on a line, as soon as it knows that, and
            ends with 0 when the server is ready. What it leaves running may keep its pipes open.
        kind: the fields of that line.
    """

    def __init__(self, command: Sequence[str], kind: type[Server]) -> None:
        self._command, self._kind = command, kind
        self._spoke, self._heard, self._ended = (threading.Event() for _ in range(3))
        self._found: Server | None = None
        self._said = ""
        self._fault: str | None = f"{command[0]} was not run"
        threading.Thread(target=self._run, daemon=True).start()

    def answer(self, *, patient: bool) -> Answer[Server]:
        """What is known of the server, `FIRST_WORD_S` from the first call on at the latest.

        patient: wait until the command has ended.
        """
        if patient:
            self._ended.wait()
        else:
            self._heard.wait(FIRST_WORD_S)
        # in this order: what is found, and the fault, are final when it has ended
        ended = self._ended.is_set()
        return Answer(self._found, self._fault if ended else None, ended)

    def _run(self) -> None:
        try:
            with tempfile.TemporaryFile() as complaint:
                self._fault = self._outcome(complaint)
        except OSError as error:
            self._fault = f"{self._command[0]}: {error.strerror}"
        finally:
            self._ended.set()
            self._heard.set()

    def _outcome(self, complaint: IO[bytes]) -> str | None:
        """Run the command to its end; why there is no server, None if there is one."""
        # the command is the operator's own setting, and a domain's name is [a-z0-9-]; it is ended
        # with all that it has started, and with the worker
        process = subprocess.Popen(
            self._command,
            stdout=subprocess.PIPE,
            stderr=complaint,
            text=True,
            errors="replace",
            process_group=0,
        )
        threading.Thread(target=self._listen, args=(process.stdout,), daemon=True).start()
        try:
            code = process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"it does not start in {TIMEOUT_S:g} s"
        # the pipe's end is no sign: what the command has started may hold it
        self._spoke.wait(_LAST_WORD_S)
        if code < 0:
            return f"the command was ended by signal {-code}"
        if code > 0:
            complaint.seek(0)
            text = complaint.read(_MOST_SHOWN).decode(errors="replace")
            return _outline(text) or f"exit code {code}"
        return None if self._found else f"the command printed {self._said[:100]!r}"

    def _listen(self, pipe: IO[str]) -> None:
        """Take what the command says: its first line, and the rest so that it is not held up."""
        with pipe:
            self._said = pipe.readline(_MOST_SHOWN).strip()
            with suppress(ValueError, ValidationError):
                self._found = self._kind.model_validate(json.loads(self._said))
                self._heard.set()
            self._spoke.set()
            while pipe.read(_MOST_SHOWN):
                pass


def _outline(text: str) -> str:
    """The first and the last line of what a command said: what is wrong, and what to do."""
    lines = [line.strip().rstrip(".") for line in text.strip().splitlines()]
    if lines[:1] == ["Traceback (most recent call last):"]:
        return lines[-1]
    return ". ".join(dict.fromkeys([*lines[:1], *lines[-1:]]))
