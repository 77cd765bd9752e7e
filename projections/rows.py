"""The image as rows: what the projections' topics hold."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from mesh_events.rows import AccessRow, ConnectorRow, LinkRow, ProductRow, Row, StatementRow
from projections.access import Access
from projections.catalog import Product
from projections.connectors.state import Connector
from projections.image import Image, RowKey
from projections.links import Link
from projections.statements import Statement


def row(image: Image, key: RowKey) -> Row | None:
    """The row for (topic, key), or None if the image has no such thing."""
    topic, name = key
    if topic == ProductRow.topic:
        product = image.catalog.get(name)
        return product_row(product) if product else None
    if topic == AccessRow.topic:
        access = image.access.requests.get(name)
        return access_row(access) if access else None
    if topic == LinkRow.topic:
        link = image.links.get(name)
        return link_row(link) if link else None
    if topic == ConnectorRow.topic:
        connector = image.connectors.get(name)
        return connector_row(connector) if connector else None
    statement = image.statements.get(name)
    return statement_row(statement) if statement else None


def touched_rows(image: Image) -> Iterator[Row]:
    """The rows that the image's last record may have changed."""
    return _existing(row(image, key) for key in image.touched)


def all_rows(image: Image) -> Iterator[Row]:
    """Every row of the image, by topic and key."""
    yield from (product_row(image.catalog[name]) for name in sorted(image.catalog))
    yield from (access_row(found) for _, found in sorted(image.access.requests.items()))
    yield from (link_row(image.links[name]) for name in sorted(image.links))
    yield from (statement_row(image.statements[name]) for name in sorted(image.statements))
    yield from (connector_row(image.connectors[name]) for name in sorted(image.connectors))


def _existing(rows: Iterable[Row | None]) -> Iterator[Row]:
    return (found for found in rows if found is not None)


def at(milliseconds: int) -> datetime:
    """Log time as a UTC datetime."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _at(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else at(milliseconds)


def product_row(product: Product) -> ProductRow:
    """A product as subscribers see it."""
    return ProductRow(
        as_of_offset=product.changed,
        generation=product.generation,
        product=product.id,
        domain=product.domain,
        cluster=product.cluster,
        kafka_topic=product.topic,
        description=product.description,
        owner=product.owner,
        quality=product.quality,
        sla=product.sla,
        tags=list(product.tags),
        version=product.version,
        state="PUBLISHED",
        schema_subject=product.schema_subject,
        schema_id=product.schema_id,
        published_at=at(product.published_at),
        updated_at=at(product.updated_at),
    )


def access_row(access: Access) -> AccessRow:
    """A request or grant as subscribers see it."""
    return AccessRow(
        as_of_offset=access.changed,
        generation=access.generation,
        request=access.request,
        product=access.product,
        application=access.application,
        cluster=access.cluster,
        kafka_topic=access.topic,
        link=access.link,
        state=access.state,
        reason=access.reason,
        requested_by=access.requested_by,
        requested_at=at(access.requested_at),
        decided_by=access.decided_by,
        decided_at=_at(access.decided_at),
        decision_reason=access.decision_reason,
        on_revoke=access.on_revoke,
        active_at=_at(access.active_at),
        revoked_by=access.revoked_by,
        revoked_at=_at(access.revoked_at),
        revoke_reason=access.revoke_reason,
        removed_at=_at(access.removed_at),
    )


def link_row(link: Link) -> LinkRow:
    """A link as subscribers see it."""
    return LinkRow(
        as_of_offset=link.changed,
        generation=link.generation,
        link=link.id,
        product=link.product,
        source_cluster=link.source_cluster,
        source_topic=link.source_topic,
        cluster=link.cluster,
        kafka_topic=link.topic,
        state=link.state,
        copy_state=link.copy,
        engine=link.engine,
        incarnation=link.incarnation,
        run=link.run,
        failure=link.failure,
        paused_by=link.paused_by,
        created_at=at(link.created_at),
        changed_at=at(link.changed_at),
    )


def statement_row(statement: Statement) -> StatementRow:
    """A statement as subscribers see it."""
    return StatementRow(
        as_of_offset=statement.changed,
        generation=statement.generation,
        statement=statement.id,
        domain=statement.domain,
        cluster=statement.cluster,
        sql=statement.sql,
        description=statement.description,
        stream=statement.stream,
        tables=list(statement.tables),
        names=dict(statement.names),
        destination=statement.destination,
        dead_letters=statement.dead_letters,
        application=statement.application,
        state=statement.state,
        incarnation=statement.incarnation,
        run=statement.run,
        schema_id=statement.schema_id,
        failure=statement.failure,
        created_at=at(statement.created_at),
        changed_at=at(statement.changed_at),
    )


def connector_row(connector: Connector) -> ConnectorRow:
    """A connector as subscribers see it."""
    return ConnectorRow(
        as_of_offset=connector.changed,
        generation=connector.generation,
        connector=connector.id,
        domain=connector.domain,
        cluster=connector.cluster,
        connector_class=connector.config.get("connector.class", ""),
        direction="SINK" if connector.is_sink else "SOURCE",
        config=dict(connector.config),
        description=connector.description,
        application=connector.application,
        reads=list(connector.reads),
        writes=list(connector.writes),
        state=connector.state,
        tasks=connector.tasks,
        restarts=connector.restarts,
        run=connector.run,
        failure=connector.failure,
        created_at=at(connector.created_at),
        changed_at=at(connector.changed_at),
    )
