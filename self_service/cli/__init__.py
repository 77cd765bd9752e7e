"""The command line `sdm`: one folder per noun, a composition root, and the ways to show things.

What lives here: `app` (the table of commands), a folder for each noun with its `commands`, `mesh`
(what a command works at), `framework` (what commands share: options, output, times, errors).
What does not: decisions. A command says an intent and shows what the governor made of it.
Comes in: arguments. Goes out: answers on stdout, everything else on stderr, an exit code.
Start reading with `app.py`, then `mesh/context.py`.
"""

import logging
import os
import signal
import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of `sdm`; Ctrl-C ends it with one line and exit code 130 at any moment.

    Where nobody reads its answer to the end, it ends with 141, as by SIGPIPE.
    """
    # what a library reports comes back as an error; its own lines are for nobody here
    logging.getLogger().addHandler(logging.NullHandler())
    _open_streams()
    try:
        from self_service.cli.framework import interruption

        interruption.listen()
        from self_service.cli.app import app

        app(prog_name="sdm")
    except KeyboardInterrupt:
        from self_service.cli.framework.interruption import tell

        raise SystemExit(tell()) from None
    except Exception:
        # an extension module that was being imported may have made another error of it
        from self_service.cli.framework.interruption import is_interrupted, tell

        if not is_interrupted():
            raise
        raise SystemExit(tell()) from None
    except SystemExit as ended:
        raise SystemExit(_flushed(ended.code)) from None
    finally:
        # what is left are imports and threads to end: nothing that a traceback would tell
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _open_streams() -> None:
    """Open the null device where a standard stream is closed: a connection would be the stream."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # it gets the lowest number that is free: the stream's own
            null = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(null, mode, encoding="utf-8"))


def _flushed(code: str | int | None) -> str | int | None:
    """The exit code of a command that has ended so, once its answer is written.

    Interpreters write what is left of it behind all handlers, and then end with 120.
    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        from self_service.cli.framework.interruption import tell_closed_pipe

        closed = tell_closed_pipe()
        # an error was told already, and is more
        return code or closed
    except (OSError, ValueError):
        # the interpreter tells it
        pass
    return code
