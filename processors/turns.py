"""Whose record is judged next: operators first, then each domain in turn, each in log order."""

import threading
from collections import OrderedDict, deque


class Turns:
    """Offsets that wait to be judged; used by the thread that folds and the one that decides."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._urgent: deque[int] = deque()
        self._turns: OrderedDict[str, deque[int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._urgent) + sum(map(len, self._turns.values()))

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._urgent.clear()
            self._turns.clear()

    def add(self, offset: int, domain: str, *, urgent: bool = False, first: bool = False) -> None:
        """A record is to be judged, behind those of its domain; `urgent` before all others.

        One that is `first` is judged before the others of its domain.
        """
        with self._lock:
            queue = self._urgent if urgent else self._turns.setdefault(domain, deque())
            if first:
                queue.appendleft(offset)
            else:
                queue.append(offset)

    def has_next(self, until: int) -> bool:
        """Whether `take` has an offset up to `until`."""
        with self._lock:
            queues = [self._urgent, *self._turns.values()]
            return any(queue and queue[0] <= until for queue in queues)

    def take_urgent(self, until: int) -> int | None:
        """The next offset up to `until` that was added as urgent; None if there is none."""
        with self._lock:
            if self._urgent and self._urgent[0] <= until:
                return self._urgent.popleft()
        return None

    def take(self, until: int) -> int | None:
        """The next offset up to `until`, which then has had its turn; None if there is none."""
        with self._lock:
            if self._urgent and self._urgent[0] <= until:
                return self._urgent.popleft()
            for domain, queue in self._turns.items():
                if queue[0] > until:
                    continue
                offset = queue.popleft()
                if queue:
                    self._turns.move_to_end(domain)
                else:
                    del self._turns[domain]
                return offset
        return None
