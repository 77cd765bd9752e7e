"""`sdm schema register`: the next version of a subject, if no reader breaks; or a new major one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mesh_events.errors import RefusedError
from mesh_events.schema.definition import Definition, Version
from projections.image import Image
from self_service.cli.framework.exits import UsageError
from self_service.cli.framework.options import Acting, Actor, command
from self_service.cli.framework.output import Detail, Format, note, show
from self_service.cli.mesh.callers import Caller
from self_service.cli.mesh.context import Mesh
from self_service.cli.schema import check
from self_service.cli.schema.app import Name, Written, app
from self_service.cli.schema.check import Outcome
from self_service.cli.schema.owner import require_owner
from self_service.cli.schema.references import referred
from self_service.cli.schema.registry import NotJudgedError, Subjects
from self_service.cli.schema.subjects import topic_of


@dataclass(frozen=True, kw_only=True)
class Options:
    """What becomes of the schema beside its registration."""

    shared: Annotated[
        bool,
        typer.Option(
            "--shared",
            help="The subject is NAME itself: a schema that others refer to, without a topic.",
        ),
    ] = False
    major: Annotated[
        bool,
        typer.Option(
            "--major",
            help="Allow a schema that breaks readers: create the topic and product <name>-v2.",
        ),
    ] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = (
        False
    )
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="With --major: do not ask for confirmation.")
    ] = False


@dataclass(frozen=True, slots=True)
class Draft:
    """A schema that somebody wants to register: by whom, under which subject, from which file."""

    who: Caller
    subject: str
    path: Path
    schema: Definition


@command(
    app,
    "register",
    "sdm schema register east.users users.avsc",
    "sdm schema register east.money money.avsc --shared",
    "sdm schema register east.orders order.avsc --reference acme.Money=east.money --dry-run",
    "sdm schema register east.users users.avsc --major --yes",
)
def register(
    acting: Acting,
    written: Written,
    options: Options,
    name: Name,
    file: Annotated[Path, typer.Argument(help="Schema file: .avsc, .json, .proto.")],
    actor: Actor = None,
) -> None:
    """Register a schema as the next version of its subject if `schema check` finds no break.

    A domain registers schemas of its own topics, and shared schemas under names with the same
    prefix. A schema that is already registered stays unchanged. With --major a schema that breaks
    readers gets a new topic like the old one, and a new product if the old topic carries one; the
    output lists the readers of the old ones.
    """
    from self_service.cli.schema import subjects

    if options.shared and (options.major or written.key):
        raise UsageError("a shared schema has no topic: leave out --shared, or --major and --key")
    mesh = Mesh()
    image, registry = mesh.image(), Subjects(mesh)
    subject = name if options.shared else registry.subject(name, key=written.key)
    who = mesh.acting_as(acting.domain)
    if not require_owner(mesh, image, who, subject) and not options.shared:
        note(f"there is no topic {topic_of(subject)} yet: `sdm topic create {topic_of(subject)}`")
    schema = registry.draft(subject, file, written.kind, referred(registry, written.references))
    draft = Draft(who, subject, file, schema)
    known = registry.known(subject, schema)
    if known is not None and not options.major:
        show(Detail(_fields(draft, "registered already", known)), acting.output)
        return
    outcome = _judged(image, registry, file, subject, schema)
    if options.major:
        from self_service.cli.schema.major import make_major

        if known is not None or not (outcome is None or outcome.found):
            raise RefusedError(
                "not_breaking",
                f"{file} breaks no reader of {subject}: leave out --major to register it as the "
                "next version",
            )
        make_major(mesh, image, draft, acting, actor, yes=options.yes, dry_run=options.dry_run)
        return
    _require_harmless(draft, outcome, acting.output)
    found, told = None, "would be registered"
    if not options.dry_run:
        before = registry.numbers(subject)
        found = registry.of_id(subject, subjects.register(mesh, subject, schema))
        # to the registry, more may be the same than what is written alike
        told = "registered already" if found and found.number in before else "registered"
    against = {} if outcome is None else _against(outcome)
    show(Detail({**_fields(draft, told, found), **against}), acting.output)


def register_next(mesh: Mesh, subject: str, path: Path, schema: Definition) -> int:
    """The id of a schema that another command writes by; registered, unless it breaks a reader.

    Raises RefusedError `incompatible_schema` where `schema check` finds a break.
    """
    from self_service.cli.schema import subjects

    registry = Subjects(mesh)
    if (known := registry.known(subject, schema)) is not None:
        return known.schema_id
    outcome = _judged(mesh.image(), registry, path, subject, schema)
    if outcome is not None and outcome.found:
        number, first = outcome.found[0]
        raise RefusedError(
            "incompatible_schema",
            f"{path} breaks {outcome.level} with version {number} of {subject}: {first}; "
            f"`sdm schema check {path} --subject {topic_of(subject)}` shows all of it, and "
            "`sdm schema register --major` creates a new topic with it",
        )
    return subjects.register(mesh, subject, schema)


def _judged(
    image: Image, registry: Subjects, path: Path, subject: str, schema: Definition
) -> Outcome | None:
    """What `schema check` finds; None and a note where the registry cannot say it before."""
    try:
        return check.judged(image, registry, path, subject, schema)
    except NotJudgedError as error:
        note(str(error))
        return None


def _require_harmless(draft: Draft, outcome: Outcome | None, output: Format) -> None:
    """Raise RefusedError `incompatible_schema` that names what breaks, whom, and the next step."""
    if outcome is None or not outcome.found:
        return
    if output is Format.TABLE:
        for number, each in outcome.found:
            note(f"{draft.path}, version {number} of {draft.subject}: {each}")
    else:
        breaks = [
            {"version": number, "field": each.path, "reason": each.reason, "who": each.who}
            for number, each in outcome.found
        ]
        show(
            Detail({**_fields(draft, "breaks", None), **_against(outcome), "breaks": breaks}),
            output,
        )
    number, first = outcome.found[0]
    rest = len(outcome.found) - 1
    readers = ", ".join(outcome.consumers)
    raise RefusedError(
        "incompatible_schema",
        f"{draft.path} breaks {outcome.level} with version {number} of {draft.subject}: {first}"
        f"{f', and {rest} more' if rest else ''}; "
        f"{f'it is read by {readers}' if readers else 'nobody is known to read it'}; give new "
        "fields a default and keep the old ones, or add --major to create a new topic and product "
        "with it",
    )


def _fields(draft: Draft, outcome: str, version: Version | None) -> dict[str, Any]:
    return {
        "subject": draft.subject,
        "outcome": outcome,
        "version": version.number if version else None,
        "id": version.schema_id if version else None,
        "type": draft.schema.kind,
        "references": [
            f"{one.name}={one.subject}:{one.version}" for one in draft.schema.references
        ],
    }


def _against(outcome: Outcome) -> dict[str, Any]:
    return {
        "compatibility": outcome.level,
        "against": list(outcome.against),
        "consumers": list(outcome.consumers),
    }
