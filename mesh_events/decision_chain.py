"""Decisions as they follow one another: which of them follow the last one that counts.

A governor appends several decisions at once. Where one of them is lost, those behind it name a
decision that the log does not hold, and have no effect.
"""

from mesh_events.decisions import Decision, GovernorStarted

Chained = GovernorStarted | Decision


class DecisionChain:
    """Starts and decisions of a governor on a part of the log; the part may grow at both ends."""

    def __init__(self) -> None:
        # id -> its first place; a later one is a copy, which anybody can append
        self._places: dict[str, tuple[int, Chained]] = {}
        # (epoch, id) -> offset of the first decision that follows it
        self._followers: dict[tuple[int, str], int] = {}

    def add(self, offset: int, event: Chained) -> None:
        """Take what the governor's key has signed, in any order of offsets."""
        place = self._places.get(event.meta.id)
        if place is None or offset < place[0]:
            self._places[event.meta.id] = offset, event
        if isinstance(event, Decision):
            link = event.epoch, event.follows
            self._followers[link] = min(offset, self._followers.get(link, offset))

    def follows_last(self, offset: int, event: Decision) -> bool | None:
        """Whether a decision follows the last one of its epoch that counts.

        What stands up to its `basis` its governor has folded, and names the last one that counted
        there; behind that the decisions of the same step must all be on the log.

        Returns None where what it follows is not on the part of the log that was taken.
        """
        while True:
            found = self._places.get(event.follows)
            if not event.epoch <= event.basis < offset:
                return False
            if found is None or found[0] >= offset:
                return None
            place, before = found
            if isinstance(before, GovernorStarted) and place != event.epoch:
                # a copy; the start itself stands before it
                return None
            if isinstance(before, Decision) and before.epoch != event.epoch:
                return False
            if self._followers.get((event.epoch, event.follows), offset) < offset:
                return False
            if place <= event.basis or isinstance(before, GovernorStarted):
                return True
            offset, event = place, before
