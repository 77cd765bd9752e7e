"""Ctrl-C and closed pipes: one line that says what was done, and exit codes 130 and 141."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any, Self

import pytest
import typer
from typer.testing import CliRunner

from mesh_events.errors import InfrastructureError, RefusedError
from mesh_events.intents import ApplicationRegistered
from self_service.cli.app import app
from self_service.cli.domain import application as registering
from self_service.cli.framework import interruption
from self_service.cli.framework.exits import ExitCode, code_of
from self_service.cli.mesh import submitting
from self_service.cli.mesh.context import Mesh
from tests import sample_history as story
from tests.memory_log import MemoryLog

INTERRUPTING = """
import builtins, sys
real, wanted = builtins.__import__, sys.argv[1]
def importing(name, *rest, **more):
    if name == wanted:
        raise KeyboardInterrupt
    return real(name, *rest, **more)
builtins.__import__ = importing
from self_service.cli import main
sys.argv[1:] = sys.argv[2:]
main()
"""
"""Runs `sdm`, with Ctrl-C at the import of a module."""


def interrupt(*_: object, **__: object) -> Any:
    raise KeyboardInterrupt


def told(*arguments: str) -> str:
    """The line that an interrupted command ends with."""
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == ExitCode.INTERRUPTED == interruption.INTERRUPTED
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    return line


@pytest.mark.parametrize(
    "module",
    [
        "typer",
        "self_service.cli.app",
        "self_service.cli.framework.exits",
        "self_service.cli.mesh.context",
    ],
)
def test_ctrl_c_while_modules_are_loaded_is_one_line(module: str) -> None:
    command = [sys.executable, "-c", INTERRUPTING, module, "catalog", "list"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (ExitCode.INTERRUPTED, "")
    assert done.stderr == "interrupted: nothing was changed\n"


LOSING = """
import builtins, signal, sys
from contextlib import suppress
where, kind = sys.argv.pop(1), getattr(builtins, sys.argv.pop(1))
# whoever starts the tests in the background has it ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
def losing(*_):
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    raise kind("<method 'poll'> returned NULL without setting an exception")
real = builtins.__import__
def importing(name, *rest, **more):
    return losing() if name == where else real(name, *rest, **more)
builtins.__import__ = importing
from self_service.cli import main
from self_service.cli.framework import interruption
from self_service.cli.platform import session
def show(*_):
    interruption.submitting("AccessRequested")
    losing()
session.show = show
main()
"""
"""Runs `sdm version`, with a Ctrl-C that becomes another error."""


def lost(where: str, kind: str) -> Any:
    command = [sys.executable, "-c", LOSING, where, kind, "version"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("kind", ["SystemError", "ValueError"])
def test_ctrl_c_that_an_extension_module_loses_is_one_line(kind: str) -> None:
    done = lost("nowhere", kind)
    line = (
        "interrupted: AccessRequested may or may not be on the log: see `sdm audit log --limit 5`\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (ExitCode.INTERRUPTED, "", line)


def test_ctrl_c_that_is_lost_while_modules_are_loaded_is_one_line() -> None:
    done = lost("self_service.cli.app", "SystemError")
    line = "interrupted: nothing was changed\n"
    assert (done.returncode, done.stdout, done.stderr) == (ExitCode.INTERRUPTED, "", line)


def test_a_system_error_without_ctrl_c_is_unexpected(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise SystemError("returned NULL without setting an exception")

    monkeypatch.setattr(Mesh, "image", broken)
    done = CliRunner().invoke(app, ["catalog", "list"])
    assert done.exit_code == ExitCode.UNEXPECTED
    assert "unexpected SystemError: returned NULL" in done.stderr


@pytest.mark.parametrize(
    "error",
    [
        InfrastructureError("Kafka does not answer", retriable=True),
        RefusedError("denied", "not yours"),
    ],
)
def test_what_the_mesh_answers_behind_a_ctrl_c_is_told(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(*_: object) -> None:
        raise error

    monkeypatch.setattr(interruption, "is_interrupted", lambda: True)
    monkeypatch.setattr(Mesh, "image", answer)
    done = CliRunner().invoke(app, ["catalog", "list"])
    assert done.exit_code == code_of(error)
    assert str(error) in done.stderr


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("catalog", "list"), "interrupted: nothing was changed"),
        (("access", "explain", "east.users", "west.app"), "interrupted: nothing was changed"),
        (
            ("application", "register", "west.app", "-d", "west"),
            "interrupted: nothing was submitted to the mesh",
        ),
        (
            ("topic", "create", "east.x", "--partitions", "1", "-d", "east"),
            "interrupted: `sdm topic create` may be partly done: check before you run it again",
        ),
        (("topic", "produce", "east.x", "-d", "east"), "interrupted: nothing was written"),
        (
            ("topic", "produce", "east.x", "--schema", "x.avsc", "-d", "east"),
            "interrupted: `sdm topic produce` may be partly done: check before you run it again",
        ),
    ],
)
def test_the_line_says_what_a_command_may_have_changed(
    arguments: tuple[str, ...], line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("image", "acting_as", "log"):
        monkeypatch.setattr(Mesh, name, interrupt)
    assert told(*arguments) == line


def test_ctrl_c_at_a_question_is_no_abort(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*_: object, **__: object) -> None:
        try:
            interrupt()
        except KeyboardInterrupt:
            raise typer.Abort from None

    monkeypatch.setattr(Mesh, "image", ask)
    assert told("catalog", "list") == "interrupted: nothing was changed"


class Emitter:
    """Acknowledges a record at offset 7, or is interrupted before."""

    def __init__(self, *, acknowledges: bool) -> None:
        self._acknowledges = acknowledges

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def meta(self, **_: object) -> Any:
        return (
            MemoryLog(founded=False)
            .make(ApplicationRegistered, "west", application="west.app")
            .meta
        )

    def emit(self, intent: Any) -> Any:
        if not self._acknowledges:
            raise KeyboardInterrupt
        return SimpleNamespace(offset=7, id=intent.meta.id)


@pytest.mark.parametrize(
    ("acknowledges", "accepted", "expected"),
    [
        (False, False, "ApplicationRegistered may or may not be on the log: see `sdm audit log"),
        (True, False, "ApplicationRegistered is on the log at offset 7, its decision is not known"),
        (True, True, "ApplicationRegistered at offset 7 was accepted, the command did not wait"),
    ],
)
def test_the_line_says_how_far_an_intent_has_come(
    acknowledges: bool, accepted: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = SimpleNamespace(accepted=True, offset=8, code="", reason="")
    monkeypatch.setattr(Mesh, "image", lambda *_, **__: registered().image)
    monkeypatch.setattr(Mesh, "acting_as", lambda *_: SimpleNamespace(domain="west"))
    monkeypatch.setattr(Mesh, "emitter", lambda *_: Emitter(acknowledges=acknowledges))
    monkeypatch.setattr(submitting, "_outcome", (lambda *_: outcome) if accepted else interrupt)
    monkeypatch.setattr(submitting, "await_stage", interrupt)
    register = ("application", "register", "west.app", "-d", "west", "--until", "active")
    line = told(*register)
    assert line.startswith(f"interrupted: {expected}")
    assert ("sdm trace 7" in line) is acknowledges


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        (True, "ApplicationRegistered at offset 7 was accepted and took effect: see"),
        (False, "ApplicationRegistered at offset 7 was refused (name_taken): see"),
    ],
)
def test_the_line_says_what_became_of_an_intent_whose_answer_is_being_written(
    accepted: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = SimpleNamespace(accepted=accepted, offset=8, code="name_taken", reason="")
    monkeypatch.setattr(Mesh, "image", lambda *_, **__: registered().image)
    monkeypatch.setattr(Mesh, "acting_as", lambda *_: SimpleNamespace(domain="west"))
    monkeypatch.setattr(Mesh, "emitter", lambda *_: Emitter(acknowledges=True))
    monkeypatch.setattr(submitting, "_outcome", lambda *_: outcome)
    monkeypatch.setattr(submitting, "await_stage", lambda *_: registered().image)
    for module in (submitting, registering):
        monkeypatch.setattr(module, "show", interrupt)
    register = ("application", "register", "west.app", "-d", "west", "--until", "active")
    assert told(*register, "-o", "json").startswith(f"interrupted: {expected}")


def registered() -> MemoryLog:
    log = MemoryLog()
    story.domains(log)
    return log


UNREAD = """
import os, sys
from self_service.cli import main
from self_service.cli.framework import interruption, output
from self_service.cli.platform import session
reading, writing = os.pipe()
os.close(reading)
os.dup2(writing, 1)
form, what = output.Format(sys.argv.pop(1)), sys.argv.pop(1)
def show(*_):
    if what == "submits":
        interruption.submitted("DomainFrozen", 7)
        interruption.decided("DomainFrozen", 7)
    items = [{"name": "x" * 100}] * (1 if what == "little" else 1000)
    output.show(output.Listing(("name",), items), form)
session.show = show
main()
"""
"""Runs `sdm`, with a stdout that nobody reads, and `sdm version` with another answer."""


def unread(what: str, *arguments: str, form: str = "table") -> tuple[int, str]:
    """(exit code, stderr) of a command whose stdout nobody reads."""
    command = [sys.executable, "-c", UNREAD, form, what, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("form", ["table", "json"])
@pytest.mark.parametrize("what", ["little", "much"])
def test_a_command_that_reads_ends_as_by_sigpipe_where_its_answer_is_not_read(
    what: str, form: str
) -> None:
    assert unread(what, "version", form=form) == (ExitCode.CLOSED_PIPE, "")


@pytest.mark.parametrize("arguments", [("--help",), ("catalog", "--help")])
def test_help_that_is_not_read_ends_as_by_sigpipe(arguments: tuple[str, ...]) -> None:
    assert unread("little", *arguments) == (ExitCode.CLOSED_PIPE, "")


@pytest.mark.parametrize("form", ["table", "json"])
def test_what_was_accepted_is_said_where_the_answer_is_not_read(form: str) -> None:
    code, told = unread("submits", "version", form=form)
    assert code == ExitCode.CLOSED_PIPE
    [line] = told.splitlines()
    assert line.startswith("the output was not read to its end: DomainFrozen at offset 7 was acc")
    assert line.endswith("see `sdm trace 7`")


@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-", "<&- >&- 2>&-"])
def test_a_command_with_closed_streams_does_what_it_does(closed: str) -> None:
    command = ["sh", "-c", f"exec {sys.executable} -m self_service.cli version {closed}"]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (ExitCode.OK, b"")


def test_an_error_is_told_with_its_code_where_the_answer_is_not_read() -> None:
    code, told = unread("little", "version", "--no-such-option")
    assert code == ExitCode.USAGE
    assert "No such option" in told


def test_a_connection_that_a_server_closed_is_no_closed_pipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def closed(*_: object) -> None:
        raise BrokenPipeError("a server closed it")

    monkeypatch.setattr(Mesh, "image", closed)
    done = CliRunner().invoke(app, ["catalog", "list"])
    assert done.exit_code == ExitCode.UNEXPECTED
    assert "unexpected BrokenPipeError: a server closed it" in done.stderr
