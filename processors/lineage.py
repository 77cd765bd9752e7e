"""Lineage of links as OpenLineage events on `mesh.lineage`.

The key is the run id, one run per incarnation. Datasets carry OpenLineage's names for Kafka:
namespace `kafka://host:port` (of the first bootstrap server), name the topic. No OpenLineage
client is used: it would take settings from the environment; only the standard's types are.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

import structlog
from confluent_kafka import KafkaException, Producer
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    error_message_run,
    job_type_job,
    schema_dataset,
    tags_run,
)
from openlineage.client.naming.dataset import Kafka
from openlineage.client.serde import Serde

from mesh_events import topics
from mesh_events.emit import software
from mesh_events.errors import MeshError
from mesh_events.kafka import Connection
from projections.links import Link

NAMESPACE = "mesh.links"
"""Every link is a job of this namespace, named by its id."""
_FLUSH_S = 10.0
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LinkRun:
    """One incarnation of a link; addresses are `host:port`, the first of the bootstrap servers.

    schema: Avro schema of the product's values, None if unknown.
    """

    link: Link
    run: str
    source: str
    destination: str
    schema: str | None
    correlation: str


class Lineage(Protocol):
    """Where lineage is told. Nothing is raised: a copy does not stop for its lineage."""

    def tell(self, kind: RunState, run: LinkRun, reason: str | None = None) -> None:
        """Say that a run started, goes on, completed or failed (with the reason)."""


class LineageTopic:
    """Writes lineage to its topic; what cannot be written is logged and left."""

    def __init__(self, connection: Connection, topic: str = topics.LINEAGE) -> None:
        self._topic = topic
        self._producer = Producer(
            connection.config(enable_idempotence=True, message_timeout_ms=int(_FLUSH_S * 1000))
        )

    def tell(self, kind: RunState, run: LinkRun, reason: str | None = None) -> None:
        """Append one event and wait for the acknowledgement."""
        faults: list[str] = []

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                faults.append(str(error))

        value = Serde.to_json(event(kind, run, datetime.now(UTC), reason)).encode()
        try:
            self._producer.produce(self._topic, value, run.run.encode(), on_delivery=delivered)
            if self._producer.flush(_FLUSH_S):
                faults.append(f"no acknowledgement in {_FLUSH_S:g} s")
        except (KafkaException, BufferError) as error:
            faults.append(str(error))
        if faults:
            log.warning("lineage_not_written", link=run.link.id, run=run.run, error=faults[0])


def event(kind: RunState, run: LinkRun, when: datetime, reason: str | None = None) -> RunEvent:
    """The OpenLineage event of a run."""
    link, by = run.link, producer()
    facets: dict[str, Any] = {
        "tags": tags_run.TagsRunFacet(
            tags=[
                tags_run.TagsRunFacetFields("product", link.product, "MESH"),
                tags_run.TagsRunFacetFields("correlation", run.correlation, "MESH"),
            ],
            producer=by,
        )
    }
    if reason is not None:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(reason, "JAVA", producer=by)
    kind_of_job = job_type_job.JobTypeJobFacet("STREAMING", "SPARK", "LINK", producer=by)
    shape: dict[str, Any] = {"schema": _schema(run.schema, by)} if run.schema else {}
    source, copy = kafka(run.source, link.source_topic), kafka(run.destination, link.topic)
    return RunEvent(
        eventTime=when.isoformat(),
        eventType=kind,
        run=Run(run.run, facets),
        job=Job(NAMESPACE, link.id, {"jobType": kind_of_job}),
        inputs=[InputDataset(source.get_namespace(), source.get_name(), facets=shape)],
        outputs=[OutputDataset(copy.get_namespace(), copy.get_name(), facets=shape)],
        producer=by,
    )


def kafka(bootstrap_servers: str, topic: str) -> Kafka:
    """A topic's OpenLineage name."""
    host, _, port = bootstrap_servers.split(",", maxsplit=1)[0].strip().rpartition(":")
    return Kafka(host, port, topic)


def producer() -> str:
    """Who says so, as the URI that OpenLineage asks for."""
    return f"urn:{software().replace('/', ':')}"


def schema_of(schema_text: Callable[[int], str], schema_id: int) -> str | None:
    """The product's schema if the registry has it at hand; lineage does without otherwise."""
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
            description=field.get("doc"),
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
        named = schema.get("logicalType") or schema.get("name")
        return str(named) if named else _type(schema["type"])
    return str(schema)
