"""How far links and statements are behind, asked from the clusters.

Records of a transaction that is open count, and what stands behind them: nobody who reads committed
records gets that far yet.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from mesh_events.errors import MeshError
from projections.links import Copy, Link
from projections.statements import Statement
from self_service.cli.output import note

if TYPE_CHECKING:
    from mesh_events.kafka import Connection
    from projections.image import Image
    from self_service.cli.context import Mesh
    from spark_streams.log import KafkaLog


def lag_of(mesh: "Mesh", image: "Image", link: Link) -> dict[int, int] | str:
    """Partition -> offsets that the copy is behind its source, or why that cannot be said.

    The operator's login is needed: it sees both ends.
    """
    if link.copy is not Copy.PRESENT or link.source_topic_id is None:
        return "no copy"
    from contextlib import closing

    from self_service.cli import brokers
    from spark_streams.lag import lag
    from spark_streams.log import KafkaLog
    from spark_streams.provenance import Origin

    try:
        here = mesh.administration(image, link.source_cluster)
        there = mesh.administration(image, link.cluster)
        with (
            closing(KafkaLog(here, committed=True)) as source,
            closing(KafkaLog(there, committed=True)) as destination,
        ):
            partitions = len(brokers.offsets(there, link.topic))
            origin = Origin(link.source_cluster, link.source_topic_id)
            found = lag(source, link.source_topic, destination, link.topic, partitions, origin)
        opened = brokers.open_transactions(here, link.source_topic)
    except MeshError as error:
        return f"not looked up: {error}"
    waiting = {partition: end - first for partition, (first, end) in opened.items()}
    return {partition: late + waiting.get(partition, 0) for partition, late in found.items()}


def open_transactions(
    mesh: "Mesh", image: "Image", cluster: str, topics: Iterable[str]
) -> dict[str, dict[int, int]]:
    """Topic -> partition -> first offset of its oldest open transaction, and a note of each topic.

    Topics without one are left out, and those that cannot be looked up.
    """
    from self_service.cli import brokers

    found = {}
    for topic in dict.fromkeys(topics):
        try:
            login = mesh.administration(image, cluster)
            opened = brokers.open_transactions(login, topic)
        except MeshError:
            continue
        if opened:
            found[topic] = {partition: first for partition, (first, _) in opened.items()}
            note(f"{told_open(topic, opened)}: `sdm kafka transactions --cluster {cluster} list`")
    return found


def note_open(login: "Connection", topic: str) -> None:
    """Note which records a reader of committed records was not shown, and why."""
    from self_service.cli import brokers

    try:
        opened = brokers.open_transactions(login, topic)
    except MeshError:
        return
    if opened:
        note(told_open(topic, opened))


def told_open(topic: str, opened: Mapping[int, tuple[int, int]]) -> str:
    """Where transactions are open, and what that means."""
    first, *more = sorted(opened)
    others = f" (and in {len(more)} more partitions)" if more else ""
    return (
        f"{topic}: a transaction is open in partition {first} since offset {opened[first][0]}"
        f"{others}: from there on committed records are read once it ends"
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
        f"{topic} is a copy, its link {found.id} is {found.state}: records may be on their way. "
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
