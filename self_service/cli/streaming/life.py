"""`sdm streaming sql add|update|stop|start|restart|delete`: the desired state of statements."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from mesh_events.errors import RefusedError
from mesh_events.intents import Intent
from mesh_events.meta import Meta
from mesh_events.statements import (
    Begin,
    StatementAdded,
    StatementDeleted,
    StatementIntent,
    StatementStarted,
    StatementStopped,
    StatementUpdated,
)
from projections.statements import Statement
from self_service.cli.framework.exits import UsageError
from self_service.cli.framework.options import (
    OptionalReason,
    StartOptions,
    SubmitOptions,
    Until,
    command,
    one_of,
)
from self_service.cli.framework.output import Detail, note, show
from self_service.cli.mesh import lookup
from self_service.cli.mesh.context import Mesh
from self_service.cli.mesh.lookup import identity
from self_service.cli.streaming.app import Name, Text, sql_app
from self_service.cli.streaming.dry_run import coming_back, dry_run, supposed
from self_service.cli.streaming.result_schema import require_fit
from self_service.cli.streaming.trial_comparison import comparison_text
from self_service.cli.streaming.wording import Worded, worded
from self_service.cli.topic.readers import left_dry


@command(
    sql_app,
    "add",
    "sdm streaming sql add pageviews 'INSERT INTO pageviews SELECT ip, status FROM clicks'",
    "sdm streaming sql add click-users -f click_users.sql --from latest",
)
def add(
    options: StartOptions,
    name: Name,
    text: Text,
    destination: Annotated[
        str | None,
        typer.Option("--destination", help="Topic to fill; overrides the SQL."),
    ] = None,
    begin: Annotated[
        Begin,
        typer.Option("--from", **one_of(Begin), help="Offset to start at: EARLIEST or LATEST."),
    ] = Begin.EARLIEST,
    description: Annotated[
        str, typer.Option("--description", help="Purpose of the statement.")
    ] = "",
) -> None:
    """Add a statement of the current domain, and wait until it runs.

    A name in the SQL is a product, or a topic of the domain's home cluster. FROM names the stream,
    JOIN the tables. The destination, its schema and a topic for unreadable records are created from
    the query.
    """
    mesh = Mesh()
    who = mesh.acting_as(options.domain)
    meant = _worded(mesh, who.domain, text, destination)
    if meant.destination is None:
        raise UsageError("no destination: write INSERT INTO topic, or give --destination")
    fields = {**meant.fields(), "destination": meant.destination}
    fields |= {"description": description, "begin": begin}
    statement = identity(name, who.domain)
    image = mesh.image()
    before = image.statements.get(statement)
    found = dry_run(mesh, image, supposed(statement, meant, begin, sender=who.domain), meant)
    if found.refusal is not None and not found.by_governor:
        raise found.refusal
    for warning in found.warnings:
        note(f"warning: {warning}")
    # without waiting, Spark's refusal is the state of the statement
    if options.wait and found.refusal is None and found.plan is not None:
        require_fit(mesh, statement, meant.destination, found.plan)
    _submit(mesh, options, statement, StatementAdded, fields)
    if before is None:
        return
    after = mesh.image().statements.get(statement)
    if after is not None and after.out_begin:
        note(coming_back(before, same=after.stream_topic_id == before.stream_topic_id))


@command(
    sql_app,
    "update",
    "sdm streaming sql update click-users -f click_users.sql",
    "sdm streaming sql update click-users -f click_users.sql --records 100000 --yes",
)
def update(
    options: StartOptions,
    name: Name,
    text: Text,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare/--no-compare", help="Run the new text next to the current one first."
        ),
    ] = True,
    records: Annotated[
        int,
        typer.Option("--records", min=1, help="Number of records to compare per partition."),
    ] = 10_000,
    yes: Annotated[
        bool, typer.Option("--yes", help="Switch even if results differ or were not compared.")
    ] = False,
) -> None:
    """Change the text of a statement, which resumes at its position.

    The new text first runs next to the current one, on the first records of the stream, and the
    results are compared. The switch needs --yes if the results differ, if either has not processed
    these records in time, or if there are no results. The stream and the destination stay the same;
    the schema of the new result must be compatible with the previous one.
    """
    from spark_streams.sql.plan import planned, require_no_table
    from spark_streams.sql.text.parse import parse

    mesh, found = _standing(options, name)
    meant = _worded(mesh, found.domain, text, found.destination)
    require_no_table(parse(found.sql), meant.parsed)
    plan = planned(meant.parsed, meant.names, mesh.registry)
    require_fit(mesh, found.id, found.destination, plan)
    if compare:
        _compare(mesh, options, found, meant, records, yes=yes)
    until = Until.ACTIVE if found.desired == "RUNNING" else Until.DECIDED
    _submit(mesh, options, found.id, StatementUpdated, meant.fields(), until)


@command(sql_app, "stop", "sdm streaming sql stop click-users --reason 'maintenance'")
def stop(options: SubmitOptions, name: Name, reason: OptionalReason = "") -> None:
    """Stop a statement and keep its topic. `start` resumes at its position."""
    _direct(options, name, StatementStopped, reason)


@command(sql_app, "start", "sdm streaming sql start click-users")
def start(options: StartOptions, name: Name, reason: OptionalReason = "") -> None:
    """Start a stopped statement at its position."""
    _direct(options, name, StatementStarted, reason)


@command(sql_app, "restart", "sdm streaming sql restart click-users")
def restart(options: StartOptions, name: Name, reason: OptionalReason = "") -> None:
    """Restart a statement: it reads its tables and schemas again."""
    mesh, found = _standing(options, name)
    if found.desired == "RUNNING":
        _emit(mesh, options, found.id, StatementStopped, {"reason": reason}, Until.ACTIVE)
    _submit(mesh, options, found.id, StatementStarted, {"reason": reason})


@command(
    sql_app, "delete", "sdm streaming sql delete click-users --reason 'replaced'", alias="drop"
)
def delete(options: SubmitOptions, name: Name, reason: OptionalReason = "") -> None:
    """Delete a statement; the domain keeps its topic."""
    mesh, found = _standing(options, name)
    for told in left_dry(mesh.image(), (found.destination,)):
        note(told)
    _submit(mesh, options, found.id, StatementDeleted, {"reason": reason})


def _direct(options: SubmitOptions, name: str, kind: type[StatementIntent], reason: str) -> None:
    mesh, found = _standing(options, name)
    _submit(mesh, options, found.id, kind, {"reason": reason})


def _standing(options: SubmitOptions, name: str) -> tuple[Mesh, Statement]:
    mesh = Mesh()
    who = mesh.acting_as(options.domain)
    return mesh, lookup.statement(mesh.image(), identity(name, who.domain))


def _worded(mesh: Mesh, domain: str, text: Text, destination: str | None) -> Worded:
    image = mesh.image()
    lookup.domain(image, domain)
    return worded(image, domain, text.text(), text.sources(), destination, text.application)


def _compare(
    mesh: Mesh,
    options: SubmitOptions,
    found: Statement,
    meant: Worded,
    records: int,
    *,
    yes: bool,
) -> None:
    """Try the new text and tell what differs; raises RefusedError without a yes."""
    from self_service.cli.streaming.trial import Trial

    told = Trial(mesh, options, found, meant, records).run()
    note(comparison_text(told))
    why = "its results would differ" if told.differs else told.doubt
    if why is not None and not yes:
        raise RefusedError(
            "not_confirmed", f"{found.id} was not changed, since {why}: add --yes to switch"
        )


def _submit(
    mesh: Mesh,
    options: SubmitOptions,
    name: str,
    kind: type[StatementIntent],
    fields: dict[str, Any],
    until: Until = Until.ACTIVE,
) -> None:
    shown = _emit(mesh, options, name, kind, fields, until)
    show(Detail({"statement": name, **shown}), options.output)


def _emit(
    mesh: Mesh,
    options: SubmitOptions,
    name: str,
    kind: type[StatementIntent],
    fields: dict[str, Any],
    until: Until,
) -> dict[str, Any]:
    from self_service.cli.mesh.submitting import submit

    make: Callable[[Meta], Intent] = lambda meta: kind(  # noqa: E731 - one intent, made of a meta
        meta=meta, statement=name, **fields
    )
    return submit(mesh, mesh.acting_as(options.domain), options, make, default=until).fields()
