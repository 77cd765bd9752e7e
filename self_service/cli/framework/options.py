"""What many commands share: sets of options, examples in the help, and the shape of a noun."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
import typer.core

from self_service.cli.framework import completion, interruption
from self_service.cli.framework.output import Format

Function = Callable[..., None]


Chosen = TypeVar("Chosen", bound=StrEnum)


class Until(StrEnum):
    """How far a command waits for what it said."""

    DECIDED = "decided"
    APPLIED = "applied"
    ACTIVE = "active"


OfDomain = Annotated[
    str | None,
    typer.Option(
        "--of",
        "-d",
        metavar="DOMAIN",
        help="Of this domain.",
        autocompletion=completion.domains,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """How the answer is shown."""

    output: Annotated[Format, typer.Option("--output", "-o", help="Output format.")] = Format.TABLE


@dataclass(frozen=True, kw_only=True)
class Reading(Shown):
    """A read of the mesh's state: now, or as it was."""

    as_of: Annotated[
        str | None,
        typer.Option("--as-of", metavar="TIME", help="State at this time: ISO 8601 or '10m ago'."),
    ] = None
    at_offset: Annotated[
        int | None,
        typer.Option("--at-offset", metavar="N", min=0, help="State after offset N of the log."),
    ] = None

    @property
    def is_now(self) -> bool:
        """Whether the present is asked for."""
        return self.as_of is None and self.at_offset is None


@dataclass(frozen=True, kw_only=True)
class Acting(Shown):
    """A command that acts in the name of a domain."""

    domain: Annotated[
        str | None,
        typer.Option(
            "--domain",
            "-d",
            metavar="NAME",
            help="Act as this domain instead of the current one; 'mesh' is the operator.",
        ),
    ] = None


Actor = Annotated[
    str | None,
    typer.Option(
        "--actor", metavar="ID", help="Id of the actor; default: $SDM_ACTOR or the OS user's id."
    ),
]
"""In whose name an event is put for the audit."""
Timeout = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="Timeout in seconds.")
]


@dataclass(frozen=True, kw_only=True)
class SubmitOptions(Acting):
    """A command that says an intent."""

    actor: Actor = None
    wait: Annotated[
        bool,
        typer.Option("--wait/--no-wait", help="Wait for the decision and the stage of --until."),
    ] = True
    until: Annotated[
        Until | None,
        typer.Option(
            "--until",
            help="Stage to wait for: the governor's decision (decided), the rights on the clusters "
            "(applied), or that it runs or can be read (active); default: by command.",
        ),
    ] = None
    timeout: Timeout = 60.0


@dataclass(frozen=True, kw_only=True)
class StartOptions(SubmitOptions):
    """A command that says an intent for which a domain's own server may have to be started."""

    timeout: Timeout = 240.0


def one_of(kind: type[Chosen]) -> dict[str, Any]:
    """What an option that takes a value of `kind` is given: all but what an older reader sees."""
    known = {one.value.lower(): one for one in kind if one.name != "UNKNOWN"}

    def parse(text: str) -> Chosen:
        found = known.get(text.lower())
        if found is None:
            raise ValueError(f"{text!r} is not one of {', '.join(known)}")
        return found

    return {
        "parser": parse,
        "metavar": f"[{'|'.join(known)}]",
        "autocompletion": lambda: list(known),
    }


def noun(text: str) -> typer.Typer:
    """The group of commands on one kind of thing; `text` is its help."""
    return typer.Typer(
        help=text,
        # a callback makes it a group even with one command
        callback=_nothing,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def _nothing() -> None:
    """A noun by itself does nothing."""


_NO_NAMES = frozenset({"text"})
"""Arguments that must be given, and may be empty: a search for nothing finds everything."""


class Command(typer.core.TyperCommand):
    """A command whose arguments are written as Kafka's and Kubernetes' help has them."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        for one in arguments(self):
            one.metavar = one.metavar or one.name.upper()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As its base; a name that is empty, as of a variable that is not set, is no value."""
        rest: list[str] = super().parse_args(ctx, args)
        for one in arguments(self):
            value = ctx.params.get(one.name)
            is_name = one.required and one.name not in _NO_NAMES
            if is_name and isinstance(value, str) and not value.strip():
                raise typer.BadParameter("is empty", ctx=ctx, param=one)
        return rest

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002 - as its base has it
        """What stands behind the command in its usage: `[OPTIONS] NAME [TOPIC]...`."""
        return [self.options_metavar or "", *map(usage, arguments(self))]


def arguments(found: Any) -> list[Any]:
    """The arguments of a command, in their order."""
    return [one for one in found.params if one.param_type_name == "argument"]


def usage(argument: Any) -> str:
    """An argument in a usage line."""
    name = argument.metavar if argument.required else f"[{argument.metavar}]"
    return f"{name}..." if argument.nargs != 1 else name


def command(
    app: typer.Typer, name: str, *examples: str, passing_on: bool = False, alias: str | None = None
) -> Callable[[Function], Function]:
    """Register a function as a command, with examples below its help.

    Parameters annotated with a dataclass stand for that dataclass's fields, each an option. With
    `passing_on`, what the command does not know is left for it in its context. An `alias` is
    another name of it that no help shows.
    """
    extra = {"allow_extra_args": True, "ignore_unknown_options": True} if passing_on else None
    # \b keeps the lines as they are
    epilog = "Examples:\n\n\b\n" + "\n".join(f"  {example}" for example in examples)

    def register(function: Function) -> Function:
        spread = _spread(function, name, _path(name, examples))
        for called in (name,) if alias is None else (name, alias):
            app.command(
                called, cls=Command, epilog=epilog, context_settings=extra, hidden=called == alias
            )(spread)
        return function

    return register


_READING = frozenset(
    {"list", "describe", "show", "search", "explain", "readers", "log", "history", "verify"}
    | {"replay", "prove", "check-proof", "trace", "status", "version", "diff", "check", "ps"}
    | {"consume", "plugins", "workers", "deployed", "repository", "compare"}
)
"""Names of commands that change nothing."""


def _path(name: str, examples: Sequence[str]) -> str:
    """A command with its nouns, such as `sdm topic create`."""
    words = examples[0].partition("sdm ")[2].split() if examples else []
    nouns = words[: words.index(name)] if name in words else []
    return " ".join(["sdm", *nouns, name])


def _spread(function: Function, name: str, path: str) -> Function:
    """The same function with one parameter for each field of its option sets."""
    sets: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if is_dataclass(parameter.annotation):
            sets[parameter.name] = parameter.annotation
            parameters.extend(_parameters(parameter.annotation))
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    submits = any(issubclass(kind, SubmitOptions) for kind in sets.values())
    reads = name in _READING and not submits

    def call(**given: Any) -> None:
        interruption.begin(path, reads=reads, submits=submits)
        built = {
            name: kind(**{one.name: given.pop(one.name) for one in fields(kind)})
            for name, kind in sets.items()
        }
        function(**built, **given)

    call.__doc__ = function.__doc__
    call.__name__ = function.__name__
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    return call


def _parameters(kind: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(one),
            annotation=hints[one.name],
        )
        for one in fields(kind)
    ]


def _default(one: Any) -> Any:
    if one.default_factory is not MISSING:
        return one.default_factory()
    return inspect.Parameter.empty if one.default is MISSING else one.default


Reason = Annotated[
    str, typer.Option("--reason", "-r", help="Reason, for the other side and the audit.")
]
"""A reason that must be given."""
OptionalReason = Annotated[
    str, typer.Option("--reason", "-r", help="Reason, for the other side and the audit.")
]
"""A reason that may be given."""

__all__ = [
    "Acting",
    "Actor",
    "Function",
    "OptionalReason",
    "Reading",
    "Reason",
    "Shown",
    "SubmitOptions",
    "Until",
    "command",
    "noun",
]
