"""Connectors: what Kafka Connect is to run for each domain, and how it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from immutables import Map

from mesh_events.connectors import (
    Configured,
    ConnectorActivated,
    ConnectorAdded,
    ConnectorFact,
    ConnectorFailed,
    ConnectorHalted,
    ConnectorIntent,
    ConnectorUpdated,
)
from mesh_events.intents import domain_of
from mesh_events.rows import ConnectorState
from projections import life
from projections.connectors import config as connector_config
from projections.copied_facts import remembered
from projections.lineage.runs import EndedRun, with_end
from projections.links import Desired
from projections.table import Table

State = ConnectorState


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector of a domain, at the cluster where the domain's topics live.

    `told` holds the ids of the facts counted last at this generation. The operator has stopped one
    that is `held`. `reading` are the topics that a sink read when it was ACTIVE last: its run goes
    on with them until another config is. `correlation` is the conversation of the last word on it.
    Of a sink, `topic_ids` maps each topic that it has read to Kafka's id of it, which its positions
    are of; `rows_of` maps (place, topic), see `places`, to the id of the topic whose records are
    rows there; `partitions` maps a topic to how many it had when a sink that replaces rows first
    read it. They outlive the config, and the connector itself where one of its name is added.
    """

    id: str
    cluster: str
    config: Map[str, str]
    application: str | None
    description: str
    desired: Desired
    state: State
    generation: int
    correlation: str
    created_generation: int
    created_at: int
    changed: int
    changed_at: int
    principal: str | None = None
    run: str | None = None
    tasks: int = 0
    restarts: int = 0
    failure: str | None = None
    failure_code: str | None = None
    told: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()
    held: bool = False
    ended: tuple[EndedRun, ...] = ()
    topic_ids: Map[str, str] = field(default_factory=Map)
    rows_of: Map[tuple[str, str], str] = field(default_factory=Map)
    partitions: Map[str, int] = field(default_factory=Map)

    @property
    def domain(self) -> str:
        """The domain that it belongs to."""
        return domain_of(self.id)

    @property
    def is_sink(self) -> bool:
        """Whether it reads topics; a source writes them."""
        return connector_config.is_sink(self.config)

    @property
    def reads(self) -> tuple[str, ...]:
        """Topics that it reads; none for a source."""
        return connector_config.reads(self.config)

    @property
    def places(self) -> dict[str, tuple[str, str]]:
        """Topic that it reads -> (place where its records become rows, topic).

        A place is a table, or what stands for the connector itself where no table is known.
        """
        tables = {
            one.topic: f"{one.namespace}/{one.name}" for one in connector_config.filled(self.config)
        }
        return {topic: (tables.get(topic, self.id), topic) for topic in self.reads}

    @property
    def writes(self) -> tuple[str, ...]:
        """Topics that its config says it writes; those of an outbox follow from its rows."""
        return connector_config.writes(self.config)

    @property
    def stands(self) -> bool:
        """Whether it was not deleted."""
        return self.desired is not Desired.DELETED

    @property
    def is_at_rest(self) -> bool:
        """Whether the log says that it stands still as desired."""
        return self.state is State.STOPPED

    @property
    def is_over(self) -> bool:
        """Whether the log says that it is gone."""
        return self.state is State.DELETED


Connectors = Table[str, Connector]
"""Connector id -> connector."""
EMPTY: Connectors = Map()


def added(
    connectors: Connectors, event: ConnectorAdded, cluster: str, generation: int, time: int
) -> Connectors:
    """A connector is wanted; what is known of one of that name that was deleted is forgotten."""
    before = connectors.get(event.connector)
    connector = Connector(
        id=event.connector,
        cluster=cluster,
        config=Map(event.config),
        application=event.application,
        description=event.description,
        desired=Desired.RUNNING,
        state=State.CREATED,
        generation=generation,
        correlation=event.meta.correlation,
        created_generation=generation,
        created_at=time,
        changed=generation,
        changed_at=time,
        held=before.held if before is not None else False,
        ended=before.ended if before is not None else (),
        topic_ids=before.topic_ids if before is not None else Map(),
        rows_of=before.rows_of if before is not None else Map(),
        partitions=before.partitions if before is not None else Map(),
    )
    return connectors.set(event.connector, connector)


def updated(
    connectors: Connectors, event: ConnectorUpdated, generation: int, time: int
) -> Connectors:
    """Another config, from where the one before it stands."""
    connector = _configured(connectors[event.connector], event)
    if connector.desired is Desired.RUNNING:
        connector = replace(connector, state=State.CREATED)
    return _decided(connectors, connector, event, generation, time)


def redirected(
    connectors: Connectors,
    event: ConnectorIntent,
    desired: Desired,
    generation: int,
    time: int,
    *,
    by_operator: bool = False,
) -> Connectors:
    """Somebody stopped, started or deleted it; what the operator stops is held."""
    connector = life.redirected(connectors[event.connector], desired, by_operator=by_operator)
    return _decided(connectors, connector, event, generation, time)


def reported(connectors: Connectors, event: ConnectorFact, offset: int, time: int) -> Connectors:
    """Its controller reported; a report on an older generation, or a copy, changes nothing."""
    connector = connectors.get(event.connector)
    if connector is None or not life.is_news(connector, event):
        return connectors
    after = with_end(connector, _reported(connector, event), event, offset)
    if after == connector:
        return connectors
    after = replace(
        after, told=remembered(connector.told, event.meta.id), changed=offset, changed_at=time
    )
    return connectors.set(event.connector, after)


def _reported(connector: Connector, event: ConnectorFact) -> Connector:
    match event:
        case ConnectorActivated() if connector.desired is Desired.RUNNING:
            return replace(
                _with_topics(connector, event.topic_ids, event.partitions),
                state=State.ACTIVE,
                principal=event.principal,
                run=event.run,
                reading=tuple(connector.reads),
                tasks=event.tasks,
                restarts=connector.restarts + max(0, event.restarts),
                failure=None,
                failure_code=None,
            )
        case ConnectorHalted() if connector.desired is not Desired.RUNNING:
            return replace(life.halted(connector), tasks=0)
        case ConnectorFailed():
            read = _with_topics(connector, event.topic_ids, event.partitions)
            return life.failed(read, event.reason, event.code)
    return connector


def _with_topics(
    connector: Connector, topic_ids: Mapping[str, str], partitions: Mapping[str, int]
) -> Connector:
    """Which topics' records it has read, and made rows of, and how many partitions they had."""
    if not topic_ids:
        return connector
    before = connector.topic_ids
    known = {
        topic: count
        for topic, count in connector.partitions.items()
        if topic_ids.get(topic, before.get(topic)) == before.get(topic)
    }
    read = {topic: topic_ids[topic] for topic in connector.reads if topic in topic_ids}
    places = connector.places
    rows = {places[topic]: known for topic, known in read.items()}
    return replace(
        connector,
        topic_ids=connector.topic_ids.update(read),
        rows_of=connector.rows_of.update(rows),
        partitions=Map({**partitions, **known}),
    )


def _configured(connector: Connector, event: Configured) -> Connector:
    return replace(connector, config=Map(event.config), application=event.application)


def _decided(
    connectors: Connectors,
    connector: Connector,
    event: ConnectorIntent,
    generation: int,
    time: int,
) -> Connectors:
    decided = replace(life.decided(connector, event, generation, time), restarts=0)
    return connectors.set(connector.id, decided)
