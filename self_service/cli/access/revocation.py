"""What a revocation leaves: the copy, and what the consumer's jobs made of the data."""

from typing import Any

from mesh_events.intents import OnRevoke
from projections.access import ENTITLED, Access
from projections.image import Image, purge_policy
from projections.lineage import graph
from projections.links import Copy
from self_service.cli.framework.output import Detail, Listing

COLUMNS = ("topic", "cluster", "job", "name", "state")


def answer(image: Image, access: Access, fields: dict[str, Any]) -> Detail:
    """The answer to a revocation: its fields, the copy, and a part `left`.

    `left` lists the topics and tables that statements and sinks filled with the revoked grant,
    their dead letters, and what was made of these. The mesh deletes none of them.
    """
    about = {**fields, **({"copy": _copy(image, access)} if access.link else {})}
    items = [
        {
            "topic": place[1],
            "cluster": place[0],
            "job": step.kind,
            "name": step.name,
            "state": step.state,
        }
        for step, written in graph.made_with(image, access)
        for place in written
    ]
    empty = f"left: nothing, no statement or sink has read {access.topic} under this grant"
    return Detail(about, {"left": Listing(COLUMNS, items, empty)})


def next_step(image: Image, access: Access) -> str | None:
    """What the owner can do about data that is left, None where there is none."""
    found = graph.made_with(image, access)
    if not found:
        return None
    return (
        f"the topics and tables under `left` keep their records: ask {access.consumer} to delete "
        f"them; `sdm lineage show {access.product} --downstream` continues to list them"
    )


def _copy(image: Image, access: Access) -> str:
    """What becomes of the copy that the application read."""
    others = [
        one.application
        for one in image.access.of_link(access.link or "")
        if one.state in ENTITLED and one.request != access.request
    ]
    link = image.links.get(access.link or "")
    if others:
        return f"kept, {', '.join(sorted(others))} may read it"
    if link is None or link.copy is Copy.NONE:
        return "none"
    if link.copy is not Copy.PRESENT:
        return link.copy
    return "RETAINED" if purge_policy(image, link.id) is OnRevoke.RETAIN else "to be PURGED"
