"""As whom the starts that are under way write: the log knows it only when they have ended."""


class Starts:
    """Flow -> principals of its last start in this process, and of those that it has not undone.

    For many threads. A worker that takes over begins with none: what an earlier one has left is
    undone by the next start.
    """

    def __init__(self) -> None:
        self._principals: dict[str, frozenset[str]] = {}

    def begin(self, flow: str, principal: str) -> None:
        """A start gives rights to a principal."""
        self._principals[flow] = self._principals.get(flow, frozenset()) | {principal}

    def keep(self, flow: str, principal: str) -> None:
        """The rights of all others are withdrawn."""
        self._principals[flow] = frozenset({principal})

    def forget(self, flow: str) -> None:
        """All rights of the flow's starts are withdrawn."""
        self._principals.pop(flow, None)

    def has(self, flow: str, principal: str) -> bool:
        """Whether a principal is one of a flow's starts."""
        return principal in self._principals.get(flow, ())
