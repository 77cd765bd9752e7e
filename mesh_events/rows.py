"""Rows: the latest state of one thing, for anyone who subscribes to the projections.

A row is never deleted: what ended is a row with an ended state. `as_of_offset` is the offset of
the governance log up to which the row is true; `generation` grows with every decided change.
"""

from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from pydantic import Field

from mesh_events import topics
from mesh_events.intents import Engine, OnRevoke, Quality
from mesh_events.meta import Frozen


class Row(Frozen):
    """What every row has."""

    topic: ClassVar[str]
    as_of_offset: int = Field(description="Offset of mesh.governance that last changed this row")
    generation: int = Field(description="Offset of the decision that made the desired state")

    @property
    def key(self) -> str:
        """Key of the row on its compacted topic."""
        raise NotImplementedError

    @classmethod
    def type_name(cls) -> str:
        """The row's name: the class, the Avro record and the file in `schemas/avro`."""
        return cls.__name__


class ProductRow(Row):
    """A product of the catalog, keyed by product id on `mesh.catalog`."""

    topic: ClassVar[str] = topics.CATALOG
    product: str = Field(description="Product id, <domain>.<name>")
    domain: str = Field(description="Owning domain")
    cluster: str = Field(description="Home cluster")
    kafka_topic: str = Field(description="Topic in the home cluster")
    description: str = Field(description="What a consumer finds in it")
    owner: str = Field(description="Id of the accountable owner")
    quality: Quality = Field(description="RAW, STANDARD or ENRICHED")
    sla: int = Field(description="Service tier, 1 to 3")
    tags: list[str] = Field(description="Words to find it by")
    version: str = Field(description="Version of the product")
    state: str = Field(description="PUBLISHED")
    schema_subject: str = Field(description="Subject of the value's schema in the registry")
    schema_id: int = Field(description="Schema id seen by the check at publication")
    published_at: datetime = Field(
        description="Time of the decision that published it, by the mesh's clock"
    )
    updated_at: datetime = Field(
        description="Time of the decision that last changed it, by the mesh's clock"
    )

    @property
    def key(self) -> str:
        """Product id."""
        return self.product


class AccessState(StrEnum):
    """The visible states of an access request, in the order in which they occur."""

    UNKNOWN = "UNKNOWN"
    REQUESTED = "REQUESTED"
    DENIED = "DENIED"
    GRANTED = "GRANTED"
    ACTIVE = "ACTIVE"
    REVOKING = "REVOKING"
    REVOKED = "REVOKED"


class AccessRow(Row):
    """A request for access and what became of it, keyed by request id on `mesh.access`."""

    topic: ClassVar[str] = topics.ACCESS
    request: str = Field(description="Id of the request")
    product: str = Field(description="Product id")
    application: str = Field(description="Application id; also its Kafka principal")
    cluster: str = Field(description="Cluster where the application reads")
    kafka_topic: str = Field(description="Topic that it reads there")
    link: str | None = Field(description="Link that carries the data, null on a shared cluster")
    state: AccessState = Field(
        description="REQUESTED, DENIED, GRANTED, ACTIVE, REVOKING or REVOKED"
    )
    reason: str = Field(description="Why it was requested")
    requested_by: str = Field(description="Actor who asked")
    requested_at: datetime = Field(description="Time of the request, by the mesh's clock")
    decided_by: str | None = Field(description="Actor who granted or denied")
    decided_at: datetime | None = Field(description="Time of that decision, by the mesh's clock")
    decision_reason: str | None = Field(description="The owner's note")
    on_revoke: OnRevoke = Field(description="PURGE or RETAIN the copy when the last grant ends")
    active_at: datetime | None = Field(
        description="Time of the fact that rights apply, by the mesh's clock"
    )
    revoked_by: str | None = Field(description="Actor who revoked")
    revoked_at: datetime | None = Field(
        description="Time of the revoking decision, by the mesh's clock"
    )
    revoke_reason: str | None = Field(description="Why it was revoked")
    removed_at: datetime | None = Field(
        description="Time of the fact that rights are gone, by the mesh's clock"
    )

    @property
    def key(self) -> str:
        """Request id."""
        return self.request


class LinkState(StrEnum):
    """The visible states of a link."""

    UNKNOWN = "UNKNOWN"
    CREATED = "CREATED"
    ACTIVE = "ACTIVE"
    FAILED = "FAILED"
    PAUSING = "PAUSING"
    PAUSED = "PAUSED"
    DELETING = "DELETING"
    DELETED = "DELETED"


class LinkRow(Row):
    """A copy of a product in another cluster, keyed by link id on `mesh.links`."""

    topic: ClassVar[str] = topics.LINKS
    link: str = Field(description="Link id, <product>@<cluster>")
    product: str = Field(description="Product id")
    source_cluster: str = Field(description="Cluster that is read")
    source_topic: str = Field(description="Topic that is read")
    cluster: str = Field(description="Cluster that is written")
    kafka_topic: str = Field(description="Topic that is written")
    state: LinkState = Field(
        description="CREATED, ACTIVE, FAILED, PAUSING, PAUSED, DELETING, DELETED"
    )
    copy_state: str = Field(description="NONE, PRESENT, PURGED or RETAINED")
    engine: Engine = Field(default=Engine.SPARK, description="What copies: SPARK or MIRRORMAKER")
    incarnation: int = Field(description="Counts the starts of the link")
    run: str | None = Field(description="OpenLineage run id of the latest incarnation")
    failure: str | None = Field(description="Why it is FAILED")
    paused_by: str | None = Field(
        default=None, description="Domain that paused it, mesh for the operator"
    )
    created_at: datetime = Field(
        description="Time of the decision that created it, by the mesh's clock"
    )
    changed_at: datetime = Field(
        description="Time of the record that last changed it, by the mesh's clock"
    )

    @property
    def key(self) -> str:
        """Link id."""
        return self.link


class StatementState(StrEnum):
    """The visible states of a statement."""

    UNKNOWN = "UNKNOWN"
    CREATED = "CREATED"
    ACTIVE = "ACTIVE"
    FAILED = "FAILED"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    DELETING = "DELETING"
    DELETED = "DELETED"


class StatementRow(Row):
    """A statement of streaming SQL, keyed by statement id on `mesh.statements`."""

    topic: ClassVar[str] = topics.STATEMENTS
    statement: str = Field(description="Statement id, <domain>.<name>")
    domain: str = Field(description="Domain that it belongs to")
    cluster: str = Field(description="Cluster on which it reads and writes")
    sql: str = Field(description="The text")
    description: str = Field(description="What it is for")
    stream: str = Field(description="Topic that is read record by record")
    tables: list[str] = Field(description="Topics in which rows are looked up")
    names: dict[str, str] = Field(description="Name in the text -> topic, where they differ")
    destination: str = Field(description="Topic that is filled")
    dead_letters: str = Field(description="Topic of the records that cannot be read")
    application: str | None = Field(description="Application under whose grants it reads")
    state: StatementState = Field(
        description="CREATED, ACTIVE, FAILED, STOPPING, STOPPED, DELETING, DELETED"
    )
    incarnation: int = Field(description="Counts the starts of the statement")
    run: str | None = Field(description="OpenLineage run id of the latest incarnation")
    schema_id: int | None = Field(description="Schema of the destination's values")
    failure: str | None = Field(description="Why it is FAILED")
    created_at: datetime = Field(
        description="Time of the decision that created it, by the mesh's clock"
    )
    changed_at: datetime = Field(
        description="Time of the record that last changed it, by the mesh's clock"
    )

    @property
    def key(self) -> str:
        """Statement id."""
        return self.statement


class ConnectorState(StrEnum):
    """The visible states of a connector."""

    UNKNOWN = "UNKNOWN"
    CREATED = "CREATED"
    ACTIVE = "ACTIVE"
    FAILED = "FAILED"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    DELETING = "DELETING"
    DELETED = "DELETED"


class ConnectorRow(Row):
    """A connector of Kafka Connect, keyed by connector id on `mesh.connectors`."""

    topic: ClassVar[str] = topics.CONNECTORS
    connector: str = Field(description="Connector id, <domain>.<name>, and its name in Connect")
    domain: str = Field(description="Domain that it belongs to")
    cluster: str = Field(description="Cluster whose topics it reads or writes")
    connector_class: str = Field(description="What Connect runs")
    direction: str = Field(description="SOURCE or SINK")
    config: dict[str, str] = Field(description="Setting -> value; secrets by reference")
    description: str = Field(description="What it is for")
    application: str | None = Field(description="Application under whose grants it reads")
    reads: list[str] = Field(description="Topics that it reads")
    writes: list[str] = Field(description="Topics that its config says it writes")
    state: ConnectorState = Field(
        description="CREATED, ACTIVE, FAILED, STOPPING, STOPPED, DELETING, DELETED"
    )
    tasks: int = Field(description="Tasks that ran when it was last seen to run")
    restarts: int = Field(description="Restarts by the controller since its config was decided")
    run: str | None = Field(description="OpenLineage run id of its latest run")
    failure: str | None = Field(description="Why it is FAILED")
    created_at: datetime = Field(
        description="Time of the decision that created it, by the mesh's clock"
    )
    changed_at: datetime = Field(
        description="Time of the record that last changed it, by the mesh's clock"
    )

    @property
    def key(self) -> str:
        """Connector id."""
        return self.connector


ROWS: tuple[type[Row], ...] = (ProductRow, AccessRow, LinkRow, StatementRow, ConnectorRow)
