"""The states on which a governor judged: each decision names its basis, and what it follows."""

from collections import deque

from mesh_events.decisions import Decision
from projections.image import EMPTY, Image
from projections.speculation import decided


class Judgements:
    """Rebuilds what the governor saw, while a log is folded.

    Images share what did not change; those before the basis of the latest decision are let go.
    """

    def __init__(self) -> None:
        self._images: deque[Image] = deque([EMPTY])
        self._basis = -1
        # the state behind the decisions of one basis, and those that it does not hold yet
        self._state = EMPTY
        self._pending: list[tuple[Decision, str]] = []

    def take(self, image: Image) -> None:
        """The log was folded up to here."""
        self._images.append(image)

    def state(self, event: Decision) -> Image | None:
        """What a decision was judged on; None where its basis does not hold what it follows."""
        self._rest_on(event.basis)
        for before, signer in self._pending:
            self._state = decided(self._state, before, signer)
        self._pending.clear()
        return self._state if self._state.last_decision == event.follows else None

    def counted(self, event: Decision, signer: str) -> None:
        """A decision had its effect: what has the same basis is judged behind it."""
        self._rest_on(event.basis)
        self._pending.append((event, signer))

    def _rest_on(self, basis: int) -> None:
        if basis == self._basis:
            return
        while len(self._images) > 1 and self._images[1].offset <= basis:
            self._images.popleft()
        self._basis, self._state = basis, self._images[0]
        self._pending.clear()
