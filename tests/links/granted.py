"""A grant that is carried by a link, as the log's image has it."""

from projections.access import Access, State
from projections.links import Link


def access_by(link: Link, application: str) -> Access:
    """A grant of what the link copies to an application at the copy's cluster."""
    return Access(
        request="r1",
        offset=0,
        product=link.product,
        application=application,
        cluster=link.cluster,
        topic=link.topic,
        link=link.id,
        reason="",
        requested_by=application.partition(".")[0],
        requested_at=0,
        state=State.GRANTED,
        generation=0,
        changed=0,
    )
