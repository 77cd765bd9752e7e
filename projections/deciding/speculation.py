"""Judging several records at once: each on the state that the decisions before it will give.

A governor appends many decisions without waiting for each. What the next one is judged on is the
image at `basis`, followed by the decisions of this epoch behind it, as if nothing else came between
them on the log. Only `decide` sees such an image: its generations are not those of the log.
"""

from mesh_events.decisions import Decision
from mesh_events.meta import milliseconds
from mesh_events.record import Entry
from projections.fold import apply
from projections.image import Image


def decided(image: Image, event: Decision, signer: str) -> Image:
    """The image if the decision were the next record on the log.

    Args:
        image: at the basis, or behind the decisions before this one.
        event: the decision.
        signer: the governor's public key.
    """
    time = milliseconds(event.clock) + image.skew
    return apply(image, Entry(image.offset + 1, time, signer, event, None))
