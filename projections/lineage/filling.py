"""Which tables of a statement are copies that their links have not filled yet. Pure.

A copy is filled once it has all that its source held when its link last started: ends of one
moment, so that a source that is written all the time is reached as well. It stays filled until the
link starts again, also where the link is paused or fails meanwhile.
"""

from projections.image import Image
from projections.links import Desired, Link
from projections.statements import Statement


def copying(image: Image, statement: Statement, topic: str) -> list[Link]:
    """The links that fill a topic which a statement reads under a grant; [] if it is no copy."""
    if statement.application is None:
        return []
    accesses = image.access.of_reader(statement.application, statement.cluster, topic)
    found = [image.links.get(access.link) for access in accesses if access.link is not None]
    return [link for link in found if link is not None and link.desired is not Desired.DELETED]


def unfilled(image: Image, statement: Statement) -> Link | None:
    """The link that has not filled a table of the statement, the first one; None: they are filled.

    The stream is not asked for: what comes into it later is read later.
    """
    for topic in dict.fromkeys(statement.tables):
        links = copying(image, statement, topic)
        if links and not any(link.is_filled for link in links):
            return links[0]
    return None


def waits_for(link: Link) -> str:
    """Why a statement waits for a link, and what ends that.

    The number in it is rounded up to one digit: it is told anew a few times, and not all the time.
    """
    parts = [f"the table {link.topic} is a copy that the link {link.id} has not filled"]
    if not link.source_ends:
        parts.append(f"the link is {link.shown_state} and has not told yet what its source holds")
    else:
        most = f"at most {_rounded_up(link.missing)} offsets of its source are missing"
        parts.append(f"the link is {link.shown_state}, {most}")
    parts.append(
        "the statement starts by itself when the copy has all that its source held when the link "
        f"started: `sdm link describe {link.id}` shows how far it is"
    )
    if link.desired is Desired.PAUSED:
        parts.append("resume the link")
    return "; ".join(parts)


def _rounded_up(number: int) -> str:
    unit = 10 ** max(0, len(str(number)) - 1)
    return f"{-(-number // unit) * unit:,}"
