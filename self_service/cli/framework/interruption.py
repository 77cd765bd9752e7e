"""What a command has done so far, for the line that Ctrl-C or a closed pipe ends it with.

One command runs in a process. What it submits is noted by `submitting`; a command that changes
things in another way says so by `became`.
"""

import os
import select
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, field

INTERRUPTED = 130
"""The exit code of Ctrl-C, as shells have it."""
CLOSED_PIPE = 141
"""The exit code where nobody reads stdout any more, as shells have it of SIGPIPE."""
NOTHING = "nothing was changed"
NOT_SUBMITTED = "nothing was submitted to the mesh"


@dataclass
class _Progress:
    """What the line would tell.

    text: what an end of the command would say now
    submitted: offsets of what is on the log
    is_interrupted: whether there was a Ctrl-C, also where its KeyboardInterrupt was lost
    """

    text: str = NOTHING
    submitted: list[int] = field(default_factory=list)
    is_told: bool = False
    is_interrupted: bool = False


_now = _Progress()


def listen() -> None:
    """Take note of Ctrl-C from now on, where it is not ignored.

    Extension modules may lose its KeyboardInterrupt: confluent_kafka's calls then end with a
    SystemError ("returned NULL without setting an exception").
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(*_: object) -> None:
    _now.is_interrupted = True
    raise KeyboardInterrupt


def is_interrupted() -> bool:
    """Whether there was a Ctrl-C since `listen`."""
    return _now.is_interrupted


def begin(command: str, *, reads: bool, submits: bool) -> None:
    """A command begins; one that does neither changes things by itself."""
    _now.submitted.clear()
    _now.is_told = False
    if reads:
        _now.text = NOTHING
    elif submits:
        _now.text = NOT_SUBMITTED
    else:
        _now.text = f"`{command}` may be partly done: check before you run it again"


def became(text: str) -> None:
    """What Ctrl-C would have to say from now on."""
    _now.text = text


def submitting(what: str) -> None:
    """A record is on its way to the log."""
    became(f"{what} may or may not be on the log: see `sdm audit log --limit 5`{_earlier()}")


def submitted(what: str, offset: int) -> None:
    """A record is on the log, and nothing takes it back."""
    earlier = _earlier()
    _now.submitted.append(offset)
    became(
        f"{what} is on the log at offset {offset}, its decision is not known here: see "
        f"`sdm trace {offset}`{earlier}"
    )


def decided(what: str, offset: int) -> None:
    """It was accepted, and its effects are waited for."""
    became(
        f"{what} at offset {offset} was accepted, the command did not wait for its effects: see "
        f"`sdm trace {offset}`"
    )


def reached(what: str, offset: int) -> None:
    """It was accepted, and what was waited for has come."""
    became(f"{what} at offset {offset} was accepted and took effect: see `sdm trace {offset}`")


def refused(what: str, offset: int, code: str) -> None:
    """It was refused, and the answer is to be written."""
    became(f"{what} at offset {offset} was refused ({code}): see `sdm trace {offset}`")


def tell() -> int:
    """Write the line once, and return the exit code; another Ctrl-C ends the process at once."""
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if not _now.is_told:
        _now.is_told = True
        sys.stderr.write(f"interrupted: {_now.text}\n")
        sys.stderr.flush()
    return INTERRUPTED


def reader_is_gone() -> bool:
    """Whether stdout is a pipe that nobody reads any more."""
    try:
        place = sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):  # there is none, or it is no file
        return False
    asked = select.poll()
    asked.register(place, select.POLLOUT)
    return any(told & (select.POLLERR | select.POLLHUP) for _, told in asked.poll(0))


def tell_closed_pipe() -> int:
    """Write what was changed, if anything was, and return the exit code; stdout goes nowhere then.

    Who reads no further has what it wants: a command that only reads has nothing to tell.
    """
    # what is left in its buffer would fail again at the interpreter's end
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if not _now.is_told and _now.text not in (NOTHING, NOT_SUBMITTED):
        _now.is_told = True
        with suppress(OSError):
            sys.stderr.write(f"the output was not read to its end: {_now.text}\n")
            sys.stderr.flush()
    return CLOSED_PIPE


def _earlier() -> str:
    return f"; before it: {', '.join(map(str, _now.submitted))}" if _now.submitted else ""
