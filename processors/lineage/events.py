"""Lineage of links, statements and connectors as OpenLineage events on `mesh.lineage`.

The key is the run id, one run per incarnation. Datasets carry OpenLineage's names for Kafka:
namespace `kafka://host:port` (of the first bootstrap server), name the topic. No OpenLineage
client is used: it would take settings from the environment; only the standard's types are.
"""

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol

import structlog
from confluent_kafka import KafkaException, Producer
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    column_lineage_dataset,
    datasource_dataset,
    error_message_run,
    job_type_job,
    ownership_dataset,
    ownership_job,
    schema_dataset,
    sql_job,
    tags_run,
)
from openlineage.client.naming.dataset import Kafka
from openlineage.client.serde import Serde

from mesh_events import topics
from mesh_events.emit import software
from mesh_events.errors import MeshError
from mesh_events.intents import domain_of
from mesh_events.kafka.connection import Connection
from projections.catalog import Product
from projections.connectors import config
from projections.connectors.state import Connector
from projections.image import Image
from projections.links import Link

LINKS, STATEMENTS, CONNECTORS = "mesh.links", "mesh.statements", "mesh.connectors"
"""Every link, statement and connector is a job of one of these namespaces, named by its id."""
_FLUSH_S = 10.0
UNAWAITED_S = 60.0
"""After an event that was not acknowledged the next ones are not waited for so long: rights are
withdrawn by those who tell of runs."""
LARGEST_EVENT = 900_000
"""Bytes; Kafka's clients and brokers take a megabyte with key and headers by default."""
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Dataset:
    """A topic at `servers` (host:port, separated by commas), and the Avro schema of its values.

    owner: id of who is accountable for it; both None if unknown.
    """

    servers: str
    topic: str
    schema: str | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table in a database, named as OpenLineage does."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Origin:
    """A column of an input, and how it comes to bear: `DIRECT`, or `INDIRECT` as JOIN or FILTER."""

    topic: str
    column: str
    kind: str = "DIRECT"
    subtype: str = "TRANSFORMATION"


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run of a link, a statement or a connector.

    kind: LINK, SQL or CONNECTOR.
    engine: what runs it.
    at: when it was in that state, ms; None: now.
    outputs: what is written, the result first.
    columns: column of the result -> where it comes from.
    decides: columns that decide which records come out at all.
    """

    namespace: str
    job: str
    run: str
    kind: str
    inputs: tuple[Dataset | Table, ...]
    outputs: tuple[Dataset | Table, ...]
    tags: Mapping[str, str]
    sql: str | None = None
    owner: str | None = None
    columns: Mapping[str, tuple[Origin, ...]] = field(default_factory=dict)
    decides: tuple[Origin, ...] = ()
    engine: str = "SPARK"
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Datasets:
    """Topics as datasets, with what the mesh knows of them.

    schema_text: schema id -> Avro schema; None where schemas are not told.
    """

    image: Image
    schema_text: Callable[[int], str | None] | None = None

    def of_topic(self, cluster: str, topic: str) -> Dataset:
        """A topic, with schema and owner as far as a product or a domain tells them."""
        product = self.image.carried.get(topic)
        return self._dataset(cluster, topic, self.image.catalog[product] if product else None)

    def of_product(self, product: str, cluster: str, topic: str) -> Dataset:
        """A topic that holds a product, or a copy of it."""
        return self._dataset(cluster, topic, self.image.catalog.get(product))

    def _dataset(self, cluster: str, topic: str, product: Product | None) -> Dataset:
        servers = self.image.identity.clusters[cluster].bootstrap_servers
        if product is None:
            domain = self.image.identity.domains.get(domain_of(topic))
            return Dataset(servers, topic, owner=domain.owner if domain is not None else None)
        text = self.schema_text
        schema = schema_of(text, product.schema_id) if text is not None else None
        return Dataset(servers, topic, schema, product.owner)


def link_run(link: Link, run: str, datasets: Datasets, correlation: str) -> JobRun:
    """One incarnation of a link; the product's owner answers for the copy and the job as well."""
    source = datasets.of_product(link.product, link.source_cluster, link.source_topic)
    return JobRun(
        namespace=LINKS,
        job=link.id,
        run=run,
        kind="LINK",
        inputs=(source,),
        outputs=(datasets.of_product(link.product, link.cluster, link.topic),),
        tags={"product": link.product, "correlation": correlation},
        owner=source.owner,
        engine=link.engine,
    )


def connector_run(found: Connector, run: str, datasets: Datasets, owner: str) -> JobRun:
    """One run of a connector: the tables of its database, as far as its config tells them."""
    captured = config.captured(found.config)
    filled = config.filled(found.config)
    return JobRun(
        namespace=CONNECTORS,
        job=found.id,
        run=run,
        kind="CONNECTOR",
        engine="KAFKA_CONNECT",
        inputs=(
            *(Table(one.namespace, one.name) for one in captured),
            *(datasets.of_topic(found.cluster, topic) for topic in found.reads),
        ),
        outputs=(
            *(Table(one.namespace, one.name) for one in filled),
            *(datasets.of_topic(found.cluster, topic) for topic in found.writes),
        ),
        tags={"domain": found.domain, "correlation": found.correlation},
        owner=owner,
    )


class Lineage(Protocol):
    """Where lineage is told. Nothing is raised: a copy does not stop for its lineage."""

    def tell(self, kind: RunState, run: JobRun, reason: str | None = None) -> None:
        """Say that a run started, goes on, completed or failed (with the reason)."""


class LineageTopic:
    """Writes lineage to its topic; what cannot be written is logged and left.

    clock: seconds that only go forward.
    """

    def __init__(
        self,
        connection: Connection,
        topic: str = topics.LINEAGE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._topic, self._clock = topic, clock
        # until then nobody waits for an acknowledgement
        self._unawaited = float("-inf")
        self._producer = Producer(
            connection.config(enable_idempotence=True, message_timeout_ms=int(_FLUSH_S * 1000))
        )

    def tell(self, kind: RunState, run: JobRun, reason: str | None = None) -> None:
        """Append one event and wait for the acknowledgement, unless one was missing just now."""
        value, without = fitting(kind, run, reason)
        if without:
            log.warning("lineage_shortened", job=run.job, run=run.run, without=without)

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                self._lost(run, error)

        try:
            self._producer.produce(self._topic, value, run.run.encode(), on_delivery=delivered)
            if self._clock() < self._unawaited:
                # says of earlier ones what became of them
                self._producer.poll(0)
            elif self._producer.flush(_FLUSH_S):
                self._lost(run, f"no acknowledgement in {_FLUSH_S:g} s")
        except (KafkaException, BufferError) as error:
            self._lost(run, error)

    def _lost(self, run: JobRun, error: object) -> None:
        self._unawaited = self._clock() + UNAWAITED_S
        log.warning("lineage_not_written", job=run.job, run=run.run, error=str(error))


def fitting(kind: RunState, run: JobRun, reason: str | None = None) -> tuple[bytes, str]:
    """(the event, what it was written without): who made a schema decides how long it is.

    A run that is not told at all would hide what was read, whatever its schemas are.
    """
    try:
        return _fitting(kind, run, reason)
    except Exception as error:  # noqa: BLE001 - a schema is a stranger's
        log.error("lineage_error", job=run.job, error=type(error).__name__)  # noqa: TRY400
        return encoded(kind, _bare(run), reason), "schemas and columns"


def _fitting(kind: RunState, run: JobRun, reason: str | None) -> tuple[bytes, str]:
    value, without = encoded(kind, run, reason), ""
    if len(value) > LARGEST_EVENT:
        value, without = encoded(kind, _without_schemas(run), reason), "schemas"
    if len(value) > LARGEST_EVENT:
        value, without = encoded(kind, _bare(run), reason), "schemas and columns"
    return value, without


def _without_schemas(run: JobRun) -> JobRun:
    inputs, outputs = (tuple(map(_without_schema, one)) for one in (run.inputs, run.outputs))
    return replace(run, inputs=inputs, outputs=outputs)


def _bare(run: JobRun) -> JobRun:
    return replace(_without_schemas(run), columns={}, decides=())


def _without_schema(one: Dataset | Table) -> Dataset | Table:
    return replace(one, schema=None) if isinstance(one, Dataset) else one


_NUL = re.compile(r"(\\\\)|\\u0000")
"""In JSON; a backslash that stands for itself is a pair of them."""


def encoded(kind: RunState, run: JobRun, reason: str | None = None) -> bytes:
    """The event as it stands on the topic: JSON in UTF-8."""
    when = datetime.now(UTC) if run.at is None else datetime.fromtimestamp(run.at / 1000, UTC)
    told = Serde.to_json(event(kind, run, when, reason))
    # databases that keep JSON have no text with this character, and a domain may write one
    return _NUL.sub(lambda found: found[1] or "\\ufffd", told).encode()


def event(kind: RunState, run: JobRun, when: datetime, reason: str | None = None) -> RunEvent:
    """The OpenLineage event of a run."""
    by = producer()
    tags = [tags_run.TagsRunFacetFields(name, text, "MESH") for name, text in run.tags.items()]
    facets: dict[str, Any] = {"tags": tags_run.TagsRunFacet(tags=tags, producer=by)}
    if reason is not None:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(reason, "JAVA", producer=by)
    job: dict[str, Any] = {
        "jobType": job_type_job.JobTypeJobFacet("STREAMING", run.engine, run.kind, producer=by)
    }
    if run.sql is not None:
        job["sql"] = sql_job.SQLJobFacet(run.sql, "spark", producer=by)
    if run.owner is not None:
        owners = [ownership_job.Owner(run.owner, "MAINTAINER")]
        job["ownership"] = ownership_job.OwnershipJobFacet(owners, producer=by)
    inputs = [InputDataset(*_name(one), facets=_facets(one, by)) for one in run.inputs]
    outputs = [OutputDataset(*_name(one), facets=_facets(one, by)) for one in run.outputs]
    if run.columns:
        outputs[0].facets = {**(outputs[0].facets or {}), "columnLineage": _column_lineage(run, by)}
    return RunEvent(
        eventTime=when.isoformat(),
        eventType=kind,
        run=Run(run.run, facets),
        job=Job(run.namespace, run.job, job),
        inputs=inputs,
        outputs=outputs,
        producer=by,
    )


def _name(dataset: Dataset | Table) -> tuple[str, str]:
    if isinstance(dataset, Table):
        return dataset.namespace, dataset.name
    name = kafka(dataset.servers, dataset.topic)
    return name.get_namespace(), name.get_name()


def _facets(dataset: Dataset | Table, by: str) -> dict[str, Any]:
    place, _ = _name(dataset)
    source = datasource_dataset.DatasourceDatasetFacet(place, place, producer=by)
    facets: dict[str, Any] = {"dataSource": source}
    if isinstance(dataset, Table):
        return facets
    if dataset.schema is not None:
        facets["schema"] = _schema(dataset.schema, by)
    if dataset.owner is not None:
        owners = [ownership_dataset.Owner(dataset.owner, "OWNER")]
        facets["ownership"] = ownership_dataset.OwnershipDatasetFacet(owners, producer=by)
    return facets


def _column_lineage(run: JobRun, by: str) -> column_lineage_dataset.ColumnLineageDatasetFacet:
    names = {one.topic: _name(one) for one in run.inputs if isinstance(one, Dataset)}

    def from_(origin: Origin) -> column_lineage_dataset.InputField:
        how = column_lineage_dataset.Transformation(origin.kind, origin.subtype)
        return column_lineage_dataset.InputField(*names[origin.topic], origin.column, [how])

    fields = {
        column: column_lineage_dataset.Fields([from_(origin) for origin in origins])
        for column, origins in run.columns.items()
    }
    decides = [from_(origin) for origin in run.decides]
    return column_lineage_dataset.ColumnLineageDatasetFacet(fields, decides, producer=by)


def kafka(bootstrap_servers: str, topic: str) -> Kafka:
    """A topic's OpenLineage name."""
    host, _, port = bootstrap_servers.split(",", maxsplit=1)[0].strip().rpartition(":")
    return Kafka(host, port, topic)


def producer() -> str:
    """Who says so, as the URI that OpenLineage asks for."""
    return f"urn:{software().replace('/', ':')}"


def schema_of(schema_text: Callable[[int], str | None], schema_id: int) -> str | None:
    """The product's Avro schema if the registry has one at hand; lineage does without otherwise."""
    try:
        return schema_text(schema_id) if schema_id else None
    except MeshError as error:
        log.info("schema_not_at_hand", schema_id=schema_id, error=str(error))
        return None


def _schema(avro: str, by: str) -> schema_dataset.SchemaDatasetFacet:
    return schema_dataset.SchemaDatasetFacet(fields=_fields(json.loads(avro)), producer=by)


def _fields(schema: Any) -> list[schema_dataset.SchemaDatasetFacetFields]:
    """Fields of an Avro record, nested ones below their own; [] for anything else."""
    record = _record(schema)
    if record is None:
        return []
    return [
        schema_dataset.SchemaDatasetFacetFields(
            name=field["name"],
            type=_type(field["type"]),
            # whatever else stands there, to Avro it is no text
            description=doc if isinstance(doc := field.get("doc"), str) else None,
            fields=_fields(field["type"]),
        )
        for field in record["fields"]
    ]


def _record(schema: Any) -> dict[str, Any] | None:
    """The record in a schema, also as one branch of a union."""
    if isinstance(schema, list):
        return next((found for branch in schema if (found := _record(branch))), None)
    if isinstance(schema, dict):
        return schema if schema.get("type") == "record" else _record(schema.get("type"))
    return None


def _type(schema: Any) -> str:
    if isinstance(schema, list):
        return " | ".join(_type(branch) for branch in schema)
    if isinstance(schema, dict):
        names = (schema.get("logicalType"), schema.get("name"))
        named = next((one for one in names if one and isinstance(one, str)), None)
        return named or _type(schema["type"])
    return str(schema)
