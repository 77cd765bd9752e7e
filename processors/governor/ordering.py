"""The order of what a domain says about one thing: later intents wait for an earlier one's check.

A domain that updates a product twice means the second update, also where the first one waits for
a check. Its intents on other things are decided meanwhile.
"""

import threading
from collections.abc import Callable

from mesh_events.intents import Intent
from mesh_events.record import Entry
from projections.image import Image

Order = tuple[str, str]
"""(domain of the signer, what the intent is about): within it, intents are decided in log order."""


def order_of(image: Image, entry: Entry) -> Order | None:
    """The order that an undecided record stands in; None for one that is no intent."""
    if not isinstance(entry.event, Intent):
        return None
    key = image.identity.key_of(entry.signer)
    return (key.domain if key is not None else "", entry.event.ordering_key)


class Ordering:
    """Which records are held behind one that waits; used by the thread that folds as well.

    A record that is held is in no queue: `decided` gives it back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # order -> the offset that waits for a check
        self._first: dict[Order, int] = {}
        self._orders: dict[int, Order] = {}
        # order -> the offsets behind it, as they came
        self._held: dict[Order, dict[int, None]] = {}

    def clear(self) -> None:
        """Nobody waits."""
        with self._lock:
            self._first.clear()
            self._orders.clear()
            self._held.clear()

    def waits(self, offset: int, order: Order) -> None:
        """A record was found to wait for a check: later ones of its order are held."""
        with self._lock:
            if order not in self._first:
                self._first[order] = offset
                self._orders[offset] = order

    def holds(self, offset: int, order: Order) -> bool:
        """Whether an earlier record of the order waits; then this one is held until that ends."""
        with self._lock:
            first = self._first.get(order)
            if first is None or first == offset:
                return False
            self._held.setdefault(order, {})[offset] = None
            return True

    def decided(self, offset: int, again: Callable[[list[int]], None]) -> None:
        """The decision on a record was folded: what it held is judged next, in its order.

        Args:
            offset: of the record; one that held nothing changes nothing.
            again: takes the offsets that were held. Nobody is held behind them meanwhile.
        """
        with self._lock:
            order = self._orders.pop(offset, None)
            if order is None:
                return
            del self._first[order]
            if held := list(self._held.pop(order, ())):
                again(held)
