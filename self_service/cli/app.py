"""The table of commands, and the root that loads a noun's module when it is asked for.

The root knows every noun by one line, so that `sdm --help` and completion stay quick.
"""

from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from self_service.cli.framework import interruption
from self_service.cli.framework.exits import ExitCode, code_of, tell


class Place(NamedTuple):
    """Where a command of the root lives: module, command in it (None: all of it), and one line."""

    module: str
    name: str | None
    help: str


COMMANDS: dict[str, Place] = {
    "up": Place("platform.commands", "up", "Start the local mesh and wait until it is ready."),
    "down": Place("platform.commands", "down", "Stop the local mesh and keep its data."),
    "status": Place("platform.commands", "status", "Show the services and the state of the mesh."),
    "kafka": Place("platform.kafka", "kafka", "Run one of Kafka's own tools as an administrator."),
    "domain": Place("domain.commands", None, "Domains: register, list, describe."),
    "application": Place("domain.application", None, "Applications of a domain: register, list."),
    "key": Place("domain.key", None, "Keys that may act as a domain: register, revoke, list."),
    "freeze": Place("domain.freeze", "freeze", "Reject a domain's intents for a limited time."),
    "thaw": Place("domain.freeze", "thaw", "End a freeze early."),
    "quarantine": Place("domain.freeze", "quarantine", "Isolate a domain until it is released."),
    "release": Place("domain.freeze", "release", "Release a domain from quarantine."),
    "topic": Place(
        "topic.commands", None, "Topics: list, create, describe, produce, consume, delete."
    ),
    "generate": Place(
        "generate.generate", "generate", "Write generated records to a topic, at a given rate."
    ),
    "generator": Place("generate.generator", None, "Generators that the local mesh keeps running."),
    "schema": Place(
        "schema.commands", None, "Schemas of topics: list, describe, register, diff, check."
    ),
    "connect": Place("connect.commands", None, "Connectors that import and export data."),
    "streaming": Place("streaming.commands", None, "Streaming SQL: statements that fill a topic."),
    "product": Place("product.commands", None, "Data products: publish, update, describe."),
    "catalog": Place("product.catalog", None, "Find data products: list, search."),
    "access": Place(
        "access.commands", None, "Access to products: request, grant, revoke, explain."
    ),
    "link": Place(
        "link.commands", None, "Copies on other clusters: list, create, pause, resume, delete."
    ),
    "lineage": Place("lineage.commands", None, "Where data comes from and where it goes."),
    "drift": Place("drift.commands", None, "Differences between the clusters and the log."),
    "audit": Place("audit.commands", None, "The governance log: show, replay, verify, prove."),
    "trace": Place("audit.trace", "trace", "Trace a request: checks, decisions, effects."),
    "switch-domain": Place("platform.session", "switch-domain", "Set the current domain."),
    "version": Place("platform.session", "version", "Show the version of sdm."),
}


class Root(TyperGroup):
    """The root group: imports a noun's module on use, and tells errors without a traceback."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, place in COMMANDS.items():
            self.add_command(TyperCommand(name=name, help=place.help, callback=_unused))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Replace the one-line stand-in by the real command, then resolve as usual."""
        if args and args[0] in COMMANDS:
            self.add_command(load(args[0]), args[0])
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **more: Any) -> Any:
        """Read the root's own options."""
        try:
            return super().make_context(*args, **more)
        except KeyboardInterrupt:
            raise typer.Exit(interruption.tell()) from None
        except BrokenPipeError:
            raise typer.Exit(interruption.tell_closed_pipe()) from None

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error becomes a sentence on stderr and an exit code."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(interruption.tell()) from None
        except Exception as error:
            if _is_interruption(error):
                raise typer.Exit(interruption.tell()) from None
            if isinstance(error, BrokenPipeError) and interruption.reader_is_gone():
                raise typer.Exit(interruption.tell_closed_pipe()) from None
            if _has_own_manner(error):
                _plain(error)
                raise
            raise typer.Exit(tell(error)) from error


def _is_interruption(error: Exception) -> bool:
    """Whether an error is what became of a KeyboardInterrupt."""
    if isinstance(error.__context__, KeyboardInterrupt):  # Ctrl-C at a question
        return True
    if _has_own_manner(error) or not interruption.is_interrupted():
        return False
    # what the mesh, Kafka or the caller's own values are at fault for is said as it is
    return code_of(error) is ExitCode.UNEXPECTED


def _plain(error: Any) -> None:
    """Leave out of a usage error what only the library that checked the value has to say."""
    if isinstance(getattr(error, "message", None), str):
        error.message = error.message.removeprefix("Value error, ")


def _unused() -> None:
    """A stand-in is never called: it is replaced when its name is resolved."""


def _has_own_manner(error: Exception) -> bool:
    """Whether Typer itself knows how to end on this error: usage errors, exits, no input."""
    usage = hasattr(error, "exit_code")
    return usage or isinstance(error, typer.Abort | EOFError)


def load(name: str) -> Any:
    """The real command or group behind a name of the table."""
    place = COMMANDS[name]
    noun = import_module(f"self_service.cli.{place.module}").app
    group = typer.main.get_command(noun)
    found = group if place.name is None else group.commands[place.name]  # type: ignore[attr-defined]
    found.name = name
    return found


def _version(asked: bool) -> None:
    if asked:
        from mesh_events.emit import software

        typer.echo(software().replace("/", " "))
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_version),
    ] = False,
) -> None:
    """Before any command: what belongs to all of them."""


app = typer.Typer(
    cls=Root,
    help="The streaming data mesh: own your data, share it as products, find, request and read.",
    callback=_root,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
