"""How far links and statements are behind, asked from the clusters."""

from typing import TYPE_CHECKING

from mesh_events.errors import MeshError
from projections.links import Copy, Link
from projections.statements import Statement

if TYPE_CHECKING:
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
            return lag(source, link.source_topic, destination, link.topic, partitions, origin)
    except MeshError as error:
        return f"not looked up: {error}"


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
