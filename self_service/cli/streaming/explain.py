"""`sdm streaming sql explain`: what a statement reads, fills and promises, before it runs."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from projections.image import Image
from projections.lineage.sources import not_granted
from projections.statements import DEAD_LETTERS, Statement
from self_service.cli.framework import completion
from self_service.cli.framework.exits import NotFoundError
from self_service.cli.framework.options import Acting, command
from self_service.cli.framework.output import Detail, Format, Listing, Multiline, note, show
from self_service.cli.mesh import lookup
from self_service.cli.mesh.context import Mesh
from self_service.cli.mesh.lookup import identity
from self_service.cli.streaming.app import Text, sql_app
from self_service.cli.streaming.dry_run import dry_run, named, supposed
from self_service.cli.streaming.result_schema import asked, require_compatible, result_schema
from self_service.cli.streaming.wording import Worded, worded

if TYPE_CHECKING:
    from spark_streams.sql.plan import Plan

_ONCE = (
    "each record of the stream is processed once, in the order of its partition, even if a server "
    "fails: results that were already written are found in the destination"
)
_TABLE = (
    "the tables are complete before the first record; a record is joined with their rows as they "
    "are when it is processed, and its result does not change later"
)
_ROWS = (
    "each change of a row gives the result's row; a row that is deleted, or no longer meets the "
    "condition, is deleted there, too (a record without a value)"
)
_CHANGES = (
    "FROM names changes of rows: each change gives one result, and later rows of the joined tables "
    "do not change it; for a stream that looks rows up, put the table after JOIN"
)
_NO_VALUE = (
    "a record without a value is skipped: it gives no result, and the result keeps the row that "
    "it deletes; FROM TABLE(...) deletes it there, too"
)
_DEAD = "a record that cannot be read goes to the dead letters, with the reason"


@command(
    sql_app,
    "explain",
    "sdm streaming sql explain 'SELECT ip, status FROM clicks WHERE CAST(status AS int) >= 400'",
    "sdm streaming sql explain click-users",
    "sdm streaming sql explain -f click_users.sql --no-spark -o json",
)
def explain(
    acting: Acting,
    text: Text,
    destination: Annotated[
        str | None,
        typer.Option("--destination", help="Topic to fill; overrides the SQL."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            help="Statement that `add` would create; default: the destination's, or none.",
            autocompletion=completion.statements,
        ),
    ] = None,
    spark: Annotated[
        bool,
        typer.Option(
            "--spark/--no-spark",
            help="Ask the domain's Spark server, which is started if needed, for types and plan.",
        ),
    ] = True,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan", help="Also show Spark's plan with a table; it has hundreds of lines."
        ),
    ] = False,
) -> None:
    """Explain a statement, by its text or by its name, without starting it or reading records.

    Shows the sources and their kinds, the destination and its schema, the origin of each column,
    the guarantees, and with --plan, or as JSON or YAML, Spark's plan. Errors in a text have a line
    and a column. Digits that arithmetic loses are not reported: a BIGINT or a DECIMAL with a DOUBLE
    is computed as a DOUBLE, of about 15 digits.

    The exit code is 0 if `add` would accept the statement, and 3 with the same code if it would
    refuse it; for a text without INSERT INTO, once a destination is named. Without a login that may
    read topics it is 0 as well, and `would_be` reports that the answer is not known. A new text for
    a running statement is refused here: `update` compares and accepts it.
    """
    mesh = Mesh()
    domain = mesh.acting_as(acting.domain).domain
    image = mesh.image()
    lookup.domain(image, domain)
    known = None if text.sql is None else image.statements.get(identity(text.sql.strip(), domain))
    meant = (
        worded(image, domain, text.text(), text.sources(), destination, text.application)
        if known is None
        else _as_it_stands(image, known)
    )
    # names of another domain's statement mean what they mean there
    domain = known.domain if known is not None else domain
    statement = identity(name, domain) if name else named(image, domain, meant)
    found = dry_run(mesh, image, supposed(statement, meant, sender=domain), meant)
    if found.plan is None:
        raise found.refusal or NotFoundError(f"{statement} cannot be planned: {found.text}")
    for warning in found.warnings:
        note(f"warning: {warning}")
    told = _promised(found.plan, meant)
    if known is None:
        told["would_be"] = found.text
    types: dict[str, str] = {}
    physical = None
    refused = known is None and found.refusal is not None
    if not spark or refused:
        told["types"] = f"not checked: {'it would be refused' if refused else '--no-spark'}"
        if known is None and not refused:
            told["would_be"] = f"{found.text}; it starts if Spark accepts its types"
    else:
        schema, physical = _asked(domain, found.plan, meant)
        types = {one["name"]: _type(one["type"]) for one in json.loads(schema)["fields"]}
        told["spark_plan"] = physical if acting.output is not Format.TABLE else None
        if known is None and meant.destination is not None:
            require_compatible(mesh, statement, meant.destination, schema)
    parts = {
        "sources": Listing(("name", "topic", "kind", "product", "key", "readable"),
                           list(_sources(image, domain, meant, found.plan))),
        "columns": Listing(("column", "type", "comes_from"), list(_columns(found.plan, types))),
    }  # fmt: skip
    shown = {name: value for name, value in told.items() if value is not None}
    show(Detail(shown, parts), acting.output)
    if plan and physical is not None and acting.output is Format.TABLE:
        note(f"\nSpark's plan:\n{physical}")
    if known is None and found.refusal is not None:  # the answer shows what is known of it
        raise found.refusal


def _as_it_stands(image: Image, known: Statement) -> Worded:
    """What a statement on the log means; names that its text does not read are left out."""
    from spark_streams.sql.text.parse import parse

    read = {one.name for one in parse(known.sql).sources}
    names = {name: topic for name, topic in known.names.items() if name in read}
    return worded(image, known.domain, known.sql, names, known.destination, known.application)


def _promised(plan: "Plan", meant: Worded) -> dict[str, Any]:
    """What is filled, and what its readers may rely on; None where that is no question."""
    return {
        "destination": meant.destination or "not named: INSERT INTO topic, or --destination",
        "dead_letters": meant.destination + DEAD_LETTERS if meant.destination else None,
        "key": "as in the stream",
        "application": meant.application,
        "filter": plan.query.condition and Multiline(plan.query.condition),
        "delivery": _ONCE,
        "rows": _ROWS if plan.stream.of_rows else None,
        "changes": _CHANGES if plan.tables and plan.stream.shape.is_change else None,
        "without_value": None if plan.stream.of_rows else _NO_VALUE,
        "tables": _TABLE if plan.tables else None,
        "unreadable": _DEAD,
    }


def _asked(domain: str, plan: "Plan", meant: Worded) -> tuple[str, str]:
    """(Avro schema of the result, physical plan) from the domain's own server."""
    with asked(domain) as engine:
        schema = result_schema(engine, plan, meant.destination or f"{domain}.out")
        physical = engine.ask("explaining", plan.spark_plan)
    return schema, physical


def _sources(image: Image, domain: str, meant: Worded, plan: "Plan") -> Iterable[dict[str, Any]]:
    home = image.identity.domains[domain].cluster
    tables = {alias: table.shape for alias, table in plan.tables.items()}
    for source in meant.parsed.sources:
        topic = meant.names.get(source.name, source.name)
        shape = tables.get(source.alias, plan.stream).shape
        is_table = source.alias in tables
        what = "changes of rows" if shape.is_change else "records"
        kind = f"table, latest row per key of {what}" if is_table else f"stream of {what}"
        if plan.stream.of_rows:
            kind = f"table, each change of a row, of {what}"
        refused = not_granted(image, domain, meant.application, home, [topic])
        yield {
            "name": source.alias,
            "topic": topic,
            "kind": kind,
            "product": meant.products.get(topic),
            "key": ", ".join(plan.query_key(source.alias)) if is_table else None,
            "readable": "not granted" if refused else "yes",
        }


def _columns(plan: "Plan", types: dict[str, str]) -> Iterable[dict[str, Any]]:
    for out in plan.query.out:
        yield {
            "column": out.name,
            "type": types.get(out.name),
            "comes_from": ", ".join(f"{one.alias}.{one.column}" for one in out.inputs),
        }


def _type(schema: Any) -> str:
    """An Avro type in a few words; that it may be null goes without options."""
    if isinstance(schema, list):
        return " | ".join(_type(one) for one in schema if one != "null")
    if not isinstance(schema, dict):
        return str(schema)
    match schema["type"]:
        case "array":
            return f"array of {_type(schema['items'])}"
        case "map":
            return f"map of {_type(schema['values'])}"
        case "record":
            return f"record of {', '.join(one['name'] for one in schema['fields'])}"
    if schema.get("logicalType") == "decimal":
        return f"decimal({schema['precision']}, {schema['scale']})"
    return str(schema.get("logicalType", schema["type"]))
