"""Ending a link: besides standing still, its copy is purged or stays, as the last grant said."""

import structlog

from mesh_events.errors import InfrastructureError
from mesh_events.intents import OnRevoke
from processors.acls.running import Running
from processors.clusters.drift import shortened
from processors.clusters.kafka import Topic
from processors.clusters.rights import Operation, Resource
from processors.controllers.controller import Leadership
from processors.controllers.flows import fence
from processors.controllers.flows.ends import Ends, until
from processors.controllers.flows.flow import Reporter
from processors.controllers.flows.stopping import FlowEnd
from processors.controllers.links.reporter import LinkReporter
from processors.crash_points import crash_point
from projections.access import Accesses, State
from projections.links import Link
from spark_streams.errors import CopyError
from spark_streams.provenance import Origin
from spark_streams.tail import positions, read_tail

log = structlog.get_logger(__name__)
_READING = (Operation.READ, Operation.ALL)
_MOST_READERS = 20


class LinkEnd(FlowEnd[Link]):
    """Pauses and deletes links."""

    def remove(self, ends: Ends[Link], reporter: Reporter[Link], leadership: Leadership) -> None:
        """Stand still, then purge the copy or leave it, as the last grant said.

        Raises:
            CopyError: `readers_remain`; the copy stands still, and is not purged before the log
                says that its readers' rights are gone.
        """
        link = ends.flow
        assert isinstance(reporter, LinkReporter)  # noqa: S101 - for the type checker
        # nothing more is copied, whoever can still read what is there
        self.halt(ends, leadership)
        require_no_readers(ends, reporter.image.access)
        if link.run is not None:
            reached = self._reached_before_purge(ends)
            crash_point("link-after-stop")
            reporter.stopped(reached)
        found = _own_copy(ends)
        if found is None:
            # by the mark of a copy that was never made, a topic that somebody else makes there
            # would be taken for it
            fence.retire(ends.destination, link.topic, link.id, leadership.check)
        topic_id = link.destination_topic_id or (found.id if found else "")
        if link.on_revoke is OnRevoke.RETAIN:
            reporter.retained(topic_id)
            return
        readers = _unexpected_readers(ends, Running(reporter.image, link.cluster, self.starts))
        self._purge(ends, found, leadership)
        crash_point("link-after-purge")
        reporter.purged(topic_id, readers)

    def reached(self, ends: Ends[Link]) -> dict[int, int]:
        """Partition -> next source offset, as far as the copy itself can tell."""
        link = ends.flow
        found = _own_copy(ends)
        if found is None or link.source_topic_id is None:
            return {}
        ends.settle(found.partitions, self.quiet_s)
        origin = Origin(link.source_cluster, link.source_topic_id)
        try:
            tails = read_tail(ends.tail_log, link.topic, found.partitions, origin)
        except CopyError as fault:
            # what is wrong with the copy is for the next start to say, not for its end
            log.warning("tail_not_read", link=link.id, code=fault.code, reason=fault.reason)
            return {}
        return positions(tails)

    def _reached_before_purge(self, ends: Ends[Link]) -> dict[int, int]:
        """As `reached`; but a copy that goes away must not stay because nobody can tell its end."""
        try:
            return self.reached(ends)
        except InfrastructureError as error:
            if ends.flow.on_revoke is OnRevoke.RETAIN:
                raise
            log.warning("tail_not_read", link=ends.flow.id, error=str(error))
            return {}

    def _purge(self, ends: Ends[Link], found: Topic | None, leadership: Leadership) -> None:
        """Delete the copy, if it is still the one that the mesh made."""
        if found is None:
            return
        name = ends.flow.topic
        leadership.check()
        ends.destination.delete_topic(name)

        def gone() -> bool | None:
            now = ends.destination.topic(name)
            return True if now is None or now.id != found.id else None

        until(gone, f"the topic {name} to be gone from cluster {ends.flow.cluster}")
        # the mark of a copy that never became active was needed until here
        fence.retire(ends.destination, name, ends.flow.id, leadership.check)


def require_no_readers(ends: Ends[Link], accesses: Accesses) -> None:
    """Raise `readers_remain` while a grant's reader may read the copy and is about to lose that.

    Nobody else is waited for: what can be read without a grant is to be deleted all the more.
    """
    link = ends.flow
    granted = {
        access.application
        for access in accesses.of_link(link.id)
        if access.is_enforced or access.withdrawing or access.state is State.REVOKING
    }
    readers = granted & {
        found.principal
        for found in ends.destination.rights(topic=link.topic)
        if found.operation in _READING
    }
    if readers:
        raise CopyError(
            "readers_remain",
            f"{', '.join(sorted(readers))} may still read {link.topic} on cluster {link.cluster}: "
            "the copy is removed when that right is gone; revoke the grants, or withdraw it there",
        )


def _unexpected_readers(ends: Ends[Link], running: Running) -> list[str]:
    """Who else may read the copy, by an ACL of any form; some of them, if they are many.

    Statements and connectors of the mesh are no others, whatever somebody's login is called.
    """
    topic = ends.flow.topic
    found = {
        acl.principal
        for acl in ends.destination.acls()
        if acl.resource == Resource.TOPIC
        and acl.operation in _READING
        and not acl.denies
        and acl.covers(topic)
        and not running.explain(acl)
    }
    if found:
        log.warning(
            "copy_purged_with_unexpected_readers", link=ends.flow.id, principals=sorted(found)
        )
    return [shortened(one) for one in sorted(found)[:_MOST_READERS]]


def _own_copy(ends: Ends[Link]) -> Topic | None:
    """The destination if it is this link's, None if it is gone or another's."""
    link = ends.flow
    found = ends.destination.topic(link.topic)
    if found is None:
        return None
    if link.destination_topic_id is None:
        return found if ends.is_claimed() else None
    if found.id != link.destination_topic_id:
        log.warning("destination_not_ours", link=link.id, topic=link.topic, topic_id=found.id)
        return None
    return found
