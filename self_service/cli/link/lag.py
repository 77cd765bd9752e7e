"""How far links and statements are behind, asked from the clusters.

What stands behind the last stable offset counts, too: a transaction is open there, and nobody who
reads committed records gets further yet.
"""

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from mesh_events.errors import MeshError
from projections.links import Copy, Link
from projections.statements import Statement
from self_service.cli.framework.output import note

if TYPE_CHECKING:
    from mesh_events.kafka.connection import Connection
    from projections.image import Image
    from self_service.cli.mesh.brokers import OpenTransactions
    from self_service.cli.mesh.context import Mesh
    from spark_streams.log import KafkaLog

_LASTING_S = 1.0
"""A transaction that is open for longer is told."""


def lag_of(mesh: "Mesh", image: "Image", link: Link) -> dict[int, int] | str:
    """Partition -> offsets that the copy is behind its source, or why that cannot be said.

    The operator's login is needed: it sees both ends.
    """
    if link.copy is not Copy.PRESENT or link.source_topic_id is None:
        return "no copy"
    from contextlib import closing

    from self_service.cli.mesh import brokers
    from spark_streams.lag import behind, copied
    from spark_streams.log import KafkaLog
    from spark_streams.provenance import Origin

    try:
        here = mesh.administration(image, link.source_cluster)
        there = mesh.administration(image, link.cluster)
        # it says at once where there is no such topic
        opened = brokers.open_transactions(here, link.source_topic)
        with (
            closing(KafkaLog(here, committed=True)) as source,
            closing(KafkaLog(there, committed=True)) as destination,
        ):
            partitions = len(brokers.offsets(there, link.topic))
            origin = Origin(link.source_cluster, link.source_topic_id)
            come = copied(source, link.source_topic, destination, link.topic, partitions, origin)
            late = behind(source, link.source_topic, come)
    except MeshError as error:
        return f"not checked: {error}"
    return with_open(late, come, opened)


def with_open(
    late: Mapping[int, int], come: Mapping[int, int], opened: "OpenTransactions"
) -> dict[int, int]:
    """Partition -> offsets behind, those behind the last stable offset among them.

    Args:
        late: partition -> offsets behind the last committed record.
        come: partition -> next offset to be read.
        opened: as `brokers.open_transactions` tells them.
    """
    ends = {partition: end for partition, (_, end) in opened.items()}
    return {p: max(found, ends.get(p, come[p]) - come[p]) for p, found in late.items()}


def stands_still(
    mesh: "Mesh", image: "Image", cluster: str, topics: Iterable[str]
) -> dict[str, dict[int, int] | str]:
    """Topic -> partition -> its last stable offset, where an open transaction keeps it; noted, too.

    Instead of partitions why that cannot be said. Topics without such a transaction are left out.
    """
    from self_service.cli.mesh import brokers

    opened: dict[str, OpenTransactions] = {}
    found: dict[str, dict[int, int] | str] = {}
    logins = {}
    for topic in dict.fromkeys(topics):
        try:
            logins[topic] = mesh.administration(image, cluster)
            opened[topic] = brokers.open_transactions(logins[topic], topic)
        except MeshError as error:
            found[topic] = f"not checked: {error}"
    for topic, offsets in _lasting(opened, logins).items():
        found[topic] = {partition: first for partition, (first, _) in offsets.items()}
        note(f"{told_open(topic, offsets)}: `sdm kafka transactions --cluster {cluster} list`")
    return found


def note_open(login: "Connection", topic: str, partition: int | None) -> None:
    """Note which records a reader of committed records was not shown, and why.

    partition: the one that was read; None: all of them.
    """
    from self_service.cli.mesh import brokers

    try:
        opened = brokers.open_transactions(login, topic)
    except MeshError:
        return
    opened = {p: found for p, found in opened.items() if partition in (None, p)}
    for offsets in _lasting({topic: opened}, {topic: login}).values():
        note(told_open(topic, offsets))


def _lasting(
    opened: "Mapping[str, OpenTransactions]", logins: "Mapping[str, Connection]"
) -> "dict[str, OpenTransactions]":
    """Those that are still open a moment later: short transactions are no finding."""
    from self_service.cli.mesh import brokers

    if not any(opened.values()):
        return {}
    time.sleep(_LASTING_S)
    found: dict[str, OpenTransactions] = {}
    for topic, before in opened.items():
        try:
            after = brokers.open_transactions(logins[topic], topic) if before else {}
        except MeshError:
            continue
        if same := {
            p: pair for p, pair in after.items() if p in before and before[p][0] == pair[0]
        }:
            found[topic] = same
    return found


def told_open(topic: str, opened: "OpenTransactions") -> str:
    """Where transactions are open, and what that means."""
    first, *more = sorted(opened)
    others = f" (and in other partitions: {', '.join(map(str, more))})" if more else ""
    return (
        f"{topic}: a transaction is open in partition {first} since offset {opened[first][0]}"
        f"{others}: records from there can be read once it ends"
    )


def still_fills(mesh: "Mesh", topic: str, servers: str) -> str | None:
    """What to say of a copy in which nothing was found; None if none is at `servers`."""
    try:
        image = mesh.image()
    except MeshError:
        return None
    clusters = image.identity.clusters
    here = {name for name, one in clusters.items() if one.bootstrap_servers == servers}
    links = [one for one in image.links.values() if (one.topic, one.copy) == (topic, Copy.PRESENT)]
    found = next((one for one in links if one.cluster in here), None)
    if found is None:
        return None
    return (
        f"{topic} is a copy, its link {found.id} is {found.state}: records may be in transit. "
        f"`sdm link describe {found.id}` shows how many, --follow waits for them"
    )


def reached(log: "KafkaLog", found: Statement, partitions: int) -> dict[int, int]:
    """Partition -> offset of the stream up to which a statement is known to have come."""
    from spark_streams.provenance import Origin
    from spark_streams.tail import positions, read_tail

    known = {int(partition): at for partition, at in found.positions.items()}
    if found.stream_topic_id is None:
        return known
    origin = Origin(found.cluster, found.stream_topic_id)
    for topic in found.writes:
        tails = read_tail(log, topic, partitions, origin, found.begin_of(topic))
        for partition, at in positions(tails).items():
            known[partition] = max(at, known.get(partition, 0))
    return known
