"""Whose record is judged next: operators first, then each domain in turn, each in log order."""

import threading
from collections import OrderedDict, deque


class Turns:
    """Offsets that wait to be judged; used by the thread that folds and the one that decides."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._urgent = _Queue()
        self._turns: OrderedDict[str, _Queue] = OrderedDict()

    def __len__(self) -> int:
        return len(self._urgent) + sum(map(len, self._turns.values()))

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._urgent = _Queue()
            self._turns.clear()

    def add(
        self,
        offset: int,
        domain: str,
        *,
        urgent: bool = False,
        first: bool = False,
        since: int | None = None,
    ) -> None:
        """A record is to be judged, behind those of its domain.

        Args:
            offset: of the record.
            domain: whose turn it waits for.
            urgent: it is judged before all that are not.
            first: it is judged before all of its domain that are not.
            since: offset that an image must have for it to be judged; None: its own.
        """
        with self._lock:
            queue = self._urgent if urgent else self._turns.setdefault(domain, _Queue())
            queue.add(offset, offset if since is None else since, first=first)

    def has_next(self, until: int) -> bool:
        """Whether `take` has an offset for an image up to `until`."""
        with self._lock:
            return any(queue.ready(until) for queue in (self._urgent, *self._turns.values()))

    def take_urgent(self, until: int) -> int | None:
        """The next offset that was added as urgent, as `take`; None if there is none."""
        with self._lock:
            return self._urgent.take(until)

    def take(self, until: int) -> int | None:
        """The next offset for an image up to `until`, which then has had its turn, or None."""
        with self._lock:
            if (offset := self._urgent.take(until)) is not None:
                return offset
            for domain, queue in self._turns.items():
                if (offset := queue.take(until)) is None:
                    continue
                if len(queue):
                    self._turns.move_to_end(domain)
                else:
                    del self._turns[domain]
                return offset
        return None


class _Queue:
    """The offsets of one domain, or of the operators: those that are first, and the others."""

    def __init__(self) -> None:
        # (offset, offset that an image must have for it to be judged)
        self._first: deque[tuple[int, int]] = deque()
        self._others: deque[tuple[int, int]] = deque()

    def __len__(self) -> int:
        return len(self._first) + len(self._others)

    def add(self, offset: int, since: int, *, first: bool) -> None:
        (self._first if first else self._others).append((offset, since))

    def ready(self, until: int) -> deque[tuple[int, int]] | None:
        """The part whose next offset an image up to `until` can judge."""
        for part in (self._first, self._others):
            if part and part[0][1] <= until:
                return part
        return None

    def take(self, until: int) -> int | None:
        part = self.ready(until)
        return part.popleft()[0] if part else None
