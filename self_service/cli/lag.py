"""How far a link is behind, asked from both clusters."""

from typing import TYPE_CHECKING

from mesh_events.errors import MeshError
from projections.links import Copy, Link

if TYPE_CHECKING:
    from projections.image import Image
    from self_service.cli.context import Mesh


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
            closing(KafkaLog(there)) as destination,
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
