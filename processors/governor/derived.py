"""Which links are looked at for what follows from the state: those that have changed."""

import threading

from mesh_events.intents import Intent
from projections.deciding.derived import ALL, changed_links, is_on_log, of_link
from projections.image import Image


class DerivedIntents:
    """Finds the governor's own intents at the cost of what was folded, and not of what is there.

    Records are folded in another thread than the one that asks.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # link -> offset of the last record that may have changed what follows from it
        self._changed = {ALL: -1}
        # links from which something follows that was not accepted yet
        self._waiting = set[str]()

    def folded(self, before: Image, image: Image) -> None:
        """Take note of a record: the images before and after it."""
        names = list(changed_links(before, image))
        if names:
            with self._lock:
                self._changed |= dict.fromkeys(names, image.offset)

    def due(self, image: Image, producer: str) -> list[Intent]:
        """The intents that follow from the image and are not on the log yet, in a stable order."""
        with self._lock:
            # what changes behind the image is for a later one
            ready = {name for name, offset in self._changed.items() if offset <= image.offset}
            for name in ready:
                del self._changed[name]
        if ALL in ready:
            ready = set(image.access.by_link)
        self._waiting |= ready
        found = {name: of_link(image, name, producer) for name in sorted(self._waiting)}
        self._waiting = {name for name, intent in found.items() if intent is not None}
        return [one for one in found.values() if one is not None and not is_on_log(image, one)]
