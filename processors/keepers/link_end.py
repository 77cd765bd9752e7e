"""Ending a copy: standing still, or gone.

The fence is closed even when the engine does not answer: who may not write any more does not
write, whatever a Spark server still believes.
"""

import structlog

from mesh_events.intents import OnRevoke
from processors.clusters import Topic
from processors.crash_points import crash_point
from processors.keepers import fence
from processors.keepers.keeper import Reign
from processors.keepers.link_ends import Ends, until
from processors.keepers.link_telling import Telling
from processors.rights import Operation
from projections.links import Link, State
from spark_streams.engine import LinkEngine
from spark_streams.errors import CopyError, EngineError
from spark_streams.provenance import Origin
from spark_streams.tail import positions, read_tail

log = structlog.get_logger(__name__)
_MESH = "mesh."
_READING = (Operation.READ, Operation.ALL)


class LinkEnd:
    """Pauses and removes links.

    Args:
        engine: runs the copies.
        quiet_s: for how long a fenced destination has to stand still, seconds.
    """

    def __init__(self, engine: LinkEngine, quiet_s: float) -> None:
        self._engine, self._quiet_s = engine, quiet_s

    def pause(self, ends: Ends, telling: Telling, reign: Reign) -> None:
        """Stand still: no query, no right to write, positions on the log."""
        self.halt(ends, reign)
        reached = self._reached(ends)
        crash_point("link-after-stop")
        if ends.link.state is not State.PAUSED:
            telling.stopped(reached)

    def remove(self, ends: Ends, telling: Telling, reign: Reign) -> None:
        """Stand still, then purge the copy or leave it, as the last grant said.

        Raises:
            CopyError: `readers_remain`; the copy stands still, and is not purged yet.
        """
        link = ends.link
        # nothing more is copied, whoever can still read what is there
        self.halt(ends, reign)
        require_no_readers(ends)
        if link.run is not None:
            reached = self._reached(ends)
            crash_point("link-after-stop")
            telling.stopped(reached)
        found = _own_copy(ends)
        topic_id = link.destination_topic_id or (found.id if found else "")
        if link.on_revoke is OnRevoke.RETAIN:
            telling.retained(topic_id)
            return
        self._purge(ends, found, reign)
        crash_point("link-after-purge")
        telling.purged(topic_id)

    def halt(self, ends: Ends, reign: Reign) -> None:
        """Stop the query and take every right from the link's incarnations, at both ends.

        The mark of a copy that never became active stays: by it the copy is known as ours.
        """
        link = ends.link
        reign.check()
        try:
            self._engine.stop(link.id)
        except EngineError as error:
            log.warning("engine_not_asked", link=link.id, error=str(error))
        fence.close(ends.destination, link.topic, link.id, reign.check)
        fence.retire(ends.source, link.source_topic, link.id, reign.check)
        unknown = link.destination_topic_id is None
        fence.retire(ends.destination, link.topic, link.id, reign.check, keep_claims=unknown)

    def _reached(self, ends: Ends) -> dict[int, int]:
        """Partition -> next source offset, as far as the copy itself can tell."""
        link = ends.link
        found = _own_copy(ends)
        if found is None or link.source_topic_id is None:
            return {}
        fence.settle(ends.destination_log, link.topic, found.partitions, self._quiet_s)
        origin = Origin(link.source_cluster, link.source_topic_id)
        try:
            tails = read_tail(ends.destination_log, link.topic, found.partitions, origin)
        except CopyError as fault:
            # what is wrong with the copy is for the next start to say, not for its end
            log.warning("tail_not_read", link=link.id, code=fault.code, reason=fault.reason)
            return {}
        return positions(tails)

    def _purge(self, ends: Ends, found: Topic | None, reign: Reign) -> None:
        """Delete the copy, if it is still the one that the mesh made."""
        if found is None:
            return
        name = ends.link.topic
        reign.check()
        ends.destination.delete_topic(name)

        def gone() -> bool | None:
            now = ends.destination.topic(name)
            return True if now is None or now.id != found.id else None

        until(gone, f"the topic {name} to be gone from cluster {ends.link.cluster}")
        # the mark of a copy that never became active was needed until here
        fence.retire(ends.destination, name, ends.link.id, reign.check)


def require_no_readers(ends: Ends) -> None:
    """Raise `readers_remain` while anybody else may read the copy."""
    link = ends.link
    readers = {
        found.principal
        for found in ends.destination.rights(topic=link.topic)
        if found.operation in _READING and not found.principal.startswith(_MESH)
    }
    if readers:
        raise CopyError(
            "readers_remain",
            f"{', '.join(sorted(readers))} may still read {link.topic} on cluster {link.cluster}: "
            "the copy is removed when that right is gone; revoke the grants, or withdraw it there",
        )


def _own_copy(ends: Ends) -> Topic | None:
    """The destination if it is this link's, None if it is gone or another's."""
    link: Link = ends.link
    found = ends.destination.topic(link.topic)
    if found is None:
        return None
    if link.destination_topic_id is None:
        return found if ends.is_claimed() else None
    if found.id != link.destination_topic_id:
        log.warning("destination_not_ours", link=link.id, topic=link.topic, topic_id=found.id)
        return None
    return found
