"""Scenes on a log in memory: two domains, a product, a request, a grant, and controllers that work.

Domains `east` and `west` have a cluster each, `north` lives on east's. East offers `east.users`;
`west.app` reads it over a link, `north.app` on the spot.
"""

from typing import Any

from mesh_events import connectors, facts, intents, statements
from mesh_events.meta import Event
from projections.access import State
from projections.connectors import config as connector_config
from projections.connectors.state import Connector
from projections.connectors.state import State as ConnectorState
from projections.image import Image
from projections.links import Desired, Link
from projections.links import State as LinkState
from projections.statements import State as StatementState
from projections.statements import Statement
from tests.memory_log import MemoryLog, key

PRODUCT = "east.users"
LINK = "east.users@west"
STATEMENT = "east.copied"
CONNECTOR = "east.shop"
POSITIONS = {"0": 0}


def cluster(name: str) -> dict[str, Any]:
    """The fields of ClusterRegistered."""
    return {
        "cluster": name,
        "bootstrap_servers": f"{name}.invalid:9092",
        "admin_user": "admin",
        "admin_password": f"file:/secrets/{name}",
    }


def domain(name: str, home: str, root: str = "root") -> dict[str, Any]:
    """The fields of DomainRegistered in the mesh of a root."""
    return {
        "domain": name,
        "owner": f"team-{name}",
        "cluster": home,
        "public_key": key(name).public,
        "proof": key(name).prove(key(root).public, name),
    }


def product(**changes: Any) -> dict[str, Any]:
    """The fields of ProductPublished for east's users."""
    return {
        "product": PRODUCT,
        "topic": "east.users",
        "description": "everyone who has an account",
        "owner": "team-east",
        "quality": intents.Quality.STANDARD,
        "sla": 2,
        "tags": ["people"],
        "acknowledged": True,
        **changes,
    }


def statement(**changes: Any) -> dict[str, Any]:
    """The fields of StatementAdded for a statement of east's over its users."""
    return {
        "statement": STATEMENT,
        "sql": "SELECT * FROM east.users",
        "stream": "east.users",
        "destination": "east.copied",
        **changes,
    }


def connector(**changes: Any) -> dict[str, Any]:
    """The fields of ConnectorAdded for a connector of east's that captures its orders."""
    config = {
        "connector.class": connector_config.POSTGRES,
        "database.hostname": "db.invalid",
        "database.dbname": "shop",
        "database.password": connectors.OWN_SECRET,
        "table.include.list": "public.orders",
        "topic.prefix": CONNECTOR,
        "transforms": "route",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": r"east\.shop\.[^.]+\.(.+)",
        "transforms.route.replacement": "east.$1",
    }
    config |= changes.pop("more", {})
    return {"connector": CONNECTOR, "config": config, **changes}


def shared(name: str, mode: str) -> dict[str, Any]:
    """The fields of ConnectorAdded for a capture of east's with a publication of west's."""
    more = {
        "table.include.list": f"public.{name.partition('.')[2]}",
        "publication.name": "sdm_west_shop",
        "publication.autocreate.mode": mode,
    }
    return connector(connector=name, more=more)


def running(found: Statement, **changes: Any) -> dict[str, Any]:
    """The fields of StatementActivated about the present generation."""
    started = found.incarnation + 1
    return {
        "statement": found.id,
        "generation": found.generation,
        "incarnation": started,
        "principal": f"sql-{started % 2}",
        "run": f"run-{started}",
        "stream_topic_id": "stream-id",
        "table_topic_ids": dict.fromkeys(found.tables, "table-id"),
        "table_partitions": dict.fromkeys(found.tables, 1),
        "destination_topic_id": "destination-id",
        "schema_id": 7,
        "positions": POSITIONS,
        "stream_schema_id": 6,
        **changes,
    }


def domains(log: MemoryLog) -> None:
    """A governor starts; clusters, domains and applications are registered."""
    log.start_governor()
    for name in ("east", "west"):
        log.operator(intents.ClusterRegistered, **cluster(name))
    for name, home in (("east", "east"), ("west", "west"), ("north", "east")):
        log.operator(intents.DomainRegistered, **domain(name, home, log.root))
    log.govern()
    for name in ("west", "north"):
        log.say(intents.ApplicationRegistered, name, application=f"{name}.app")
    log.govern()


def published(log: MemoryLog) -> None:
    """The domains, and the product of east."""
    domains(log)
    log.say(intents.ProductPublished, "east", **product())
    log.govern()


def statement_added(log: MemoryLog) -> None:
    """A statement over the product."""
    log.say(statements.StatementAdded, "east", **statement())
    log.govern()


def connector_added(log: MemoryLog) -> None:
    """A connector that captures orders of east's."""
    log.say(connectors.ConnectorAdded, "east", **connector())
    log.govern()


def request(log: MemoryLog, consumer: str = "west") -> str:
    """The consumer's application asks for the product; returns the id of the request."""
    event = log.make(
        intents.AccessRequested,
        consumer,
        product=PRODUCT,
        application=f"{consumer}.app",
        reason="to greet people by name",
    )
    log.append(event, by=consumer)
    log.govern()
    return event.meta.id


def answer(log: MemoryLog, kind: type[Event], asked: str, by: str = "east", **fields: Any) -> None:
    """Grant, deny or revoke the request `asked`, and let the governor decide."""
    log.say(kind, by, product=PRODUCT, request=asked, **{"reason": "agreed", **fields})
    log.govern()


def granted(log: MemoryLog, consumer: str = "west", **fields: Any) -> str:
    """A request that was granted, with its consequences; returns the id of the request."""
    asked = request(log, consumer)
    answer(log, intents.AccessGranted, asked, **fields)
    return asked


def settle(log: MemoryLog) -> None:
    """Governor and controllers work in turns until nothing is left to do."""
    log.govern()
    while keep(log):
        log.govern()


def keep(log: MemoryLog) -> bool:
    """The controllers make the world match once; whether there was anything to do."""
    before, image = len(log.records), log.image
    _issue_credentials(log, image)
    _apply_rights(log, image)
    for link in image.links.values():
        _move(log, link)
    for one in image.statements.values():
        _turn(log, one)
    for connector_ in image.connectors.values():
        _connect(log, connector_)
    return len(log.records) > before


def rights(log: MemoryLog, kind: type[facts.RightsFact], asked: str, **changes: Any) -> int:
    """A controller's report on the rights of a request, about its present generation."""
    access = log.image.access.requests[asked]
    fields = {
        "subject": asked,
        "cluster": access.cluster,
        "generation": access.generation,
        "bindings": [f"READ {access.topic} for {access.application}"],
    }
    return log.report(kind, **{**fields, **changes})


def activated(log: MemoryLog, name: str = LINK, **changes: Any) -> int:
    """A controller's report that the link runs, about its present generation."""
    link = log.image.links[name]
    started = link.incarnation + 1
    fields = {
        "link": name,
        "generation": link.generation,
        "incarnation": started,
        "principal": f"link-{started % 2}",
        "run": f"run-{started}",
        "source_topic": link.source_topic,
        "source_topic_id": "source-id",
        "destination_topic": link.topic,
        "destination_topic_id": "destination-id",
        "positions": POSITIONS,
    }
    return log.report(facts.LinkActivated, **{**fields, **changes})


def told(log: MemoryLog, kind: type[facts.LinkFact], name: str = LINK, **fields: Any) -> int:
    """A controller's report on the link, about its present generation unless it is given."""
    generation = log.image.links[name].generation
    return log.report(kind, **{"link": name, "generation": generation, **fields})


def _issue_credentials(log: MemoryLog, image: Image) -> None:
    for (principal, where), wanted in sorted(image.identity.credentials.items()):
        if wanted.issued is None:
            log.report(
                facts.CredentialsIssued,
                principal=principal,
                cluster=where,
                generation=wanted.generation,
                reference=f"file:/secrets/{where}/{principal}",
            )


def _apply_rights(log: MemoryLog, image: Image) -> None:
    for asked, access in sorted(image.access.requests.items()):
        link = image.links.get(access.link or "")
        away = link is not None and link.desired is Desired.DELETED
        away = away or access.consumer in image.identity.quarantines
        if access.state is State.GRANTED and not away:
            rights(log, facts.AclApplied, asked)
        dropped = access.state is State.GRANTED and access.is_enforced
        if access.state is State.REVOKING or (away and dropped):
            rights(log, facts.AclRemoved, asked)


def _move(log: MemoryLog, link: Link) -> None:
    match link.desired:
        case Desired.RUNNING if link.state is LinkState.CREATED:
            activated(log, link.id)
        case Desired.PAUSED if link.state is LinkState.PAUSING:
            told(log, facts.LinkStopped, link.id, positions=POSITIONS)
        case Desired.DELETED if link.state is LinkState.DELETING:
            told(log, facts.LinkStopped, link.id, positions=POSITIONS)
            purge = link.on_revoke is intents.OnRevoke.PURGE
            kind = facts.CopyPurged if purge else facts.CopyRetained
            told(log, kind, link.id, topic=link.topic, topic_id="destination-id")


def _turn(log: MemoryLog, found: Statement) -> None:
    if found.state is StatementState.CREATED:
        log.report(statements.StatementActivated, **running(found))
    elif found.state in (StatementState.STOPPING, StatementState.DELETING):
        fields = {"statement": found.id, "generation": found.generation, "positions": POSITIONS}
        log.report(statements.StatementHalted, **fields)


def _connect(log: MemoryLog, found: Connector) -> None:
    about = {"connector": found.id, "generation": found.generation}
    if found.state is ConnectorState.CREATED:
        more = {"principal": "connect", "run": "run", "tasks": 1, "restarts": 0}
        log.report(connectors.ConnectorActivated, **about, **more)
    elif found.state in (ConnectorState.STOPPING, ConnectorState.DELETING):
        log.report(connectors.ConnectorHalted, **about)
