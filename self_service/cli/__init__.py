"""The command line `sdm`: one folder per noun, a composition root, and the ways to show things.

What lives here: `app` (the table of commands), a folder for each noun with its `commands`, `mesh`
(what a command works at), `framework` (what commands share: options, output, times, errors).
What does not: decisions. A command says an intent and shows what the governor made of it.
Comes in: arguments. Goes out: answers on stdout, everything else on stderr, an exit code.
Start reading with `app.py`, then `mesh/context.py`.
"""

import logging
import signal

__all__ = ["main"]


def main() -> None:
    """Entry point of `sdm`; Ctrl-C ends it with one line and exit code 130 at any moment."""
    # what a library reports comes back as an error; its own lines are for nobody here
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        from self_service.cli.app import app

        app(prog_name="sdm")
    except KeyboardInterrupt:
        from self_service.cli.framework.interruption import tell

        raise SystemExit(tell()) from None
    finally:
        # what is left are imports and threads to end: nothing that a traceback would tell
        signal.signal(signal.SIGINT, signal.SIG_DFL)
