"""The result of a statement's text, as the domain's own Spark server sees it before it runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING

from mesh_events.errors import ConfigurationError, RefusedError
from mesh_events.intents import domain_of
from mesh_events.schema.definition import Definition, Kind
from self_service.cli.framework.output import note
from self_service.cli.mesh.context import Mesh
from self_service.cli.schema import check
from self_service.cli.schema.registry import Subjects
from spark_streams.errors import EngineError

if TYPE_CHECKING:
    from processors.spark.domain_engine import DomainEngine
    from spark_streams.sql.plan import Plan


_SILENT_S = 3.0
"""A server that runs has answered by then."""


@contextmanager
def asked(domain: str) -> "Iterator[DomainEngine]":
    """The domain's server, to be asked; it is started if it does not run."""
    from processors.settings import WorkerSettings
    from processors.spark.domain_engine import DomainEngine

    engine = DomainEngine(domain, WorkerSettings.load(), session=f"explain/{domain}", patient=True)
    starting = (
        f"asking the Spark server of {domain}; if it does not run yet, its start takes some "
        "ten seconds"
    )
    told = Timer(_SILENT_S, note, [starting])
    told.daemon = True
    told.start()
    try:
        yield engine
    finally:
        told.cancel()
        engine.close()


def result_schema(engine: "DomainEngine", plan: "Plan", destination: str) -> str:
    """The Avro schema of the result's values, as it would be registered."""
    from spark_streams.sql.plan import record_name

    name, namespace = record_name(destination)
    return engine.ask("explaining", lambda session: plan.result_schema(session, name, namespace))


def require_fit(mesh: Mesh, statement: str, destination: str, plan: "Plan") -> None:
    """Refuse a text that Spark cannot run, or whose result breaks readers of what is there.

    Nothing has changed by then. Raises RefusedError: Spark's, which names line and column, or
    `incompatible_schema`, which names the fields.
    """
    try:
        with asked(domain_of(statement)) as engine:
            schema = result_schema(engine, plan, destination)
    except (ConfigurationError, EngineError) as error:
        if isinstance(error, EngineError) and error.code != "engine_unavailable":
            raise
        note(f"whether Spark accepts the text is not known before it starts: {error}")
        return
    require_compatible(mesh, statement, destination, schema)


def require_compatible(mesh: Mesh, statement: str, destination: str, schema: str) -> None:
    """Refuse a result whose Avro schema breaks readers of what came out before.

    Raises RefusedError `incompatible_schema`, which names the fields.
    """
    subject = f"{destination}-value"
    result = Definition(Kind.AVRO, schema)
    outcome = check.judged(mesh.image(), Subjects(mesh), Path(statement), subject, result)
    if outcome.found:
        number, _ = outcome.found[0]
        told = "; ".join(str(each) for _, each in outcome.found)
        raise RefusedError(
            "incompatible_schema",
            f"the result would break {outcome.level} with version {number} of {subject}: {told}. "
            "Nothing was changed: keep the columns and their types (CAST helps), or add another "
            "statement",
        )
