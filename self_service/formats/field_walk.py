"""A bounded walk over the fields of a schema whose types may use each other."""

from collections.abc import Iterable
from itertools import islice

from mesh_events.schema.compatibility import Field
from mesh_events.schema.size import MOST_LEVELS

MOST_FIELDS = 5_000
_MOST_STEPS = 50_000
_LONGEST_PATH = 1_000


class Walk:
    """Counts the types that are entered: of very many fields the first are listed."""

    def __init__(self) -> None:
        self._steps = 0

    def enters(self, path: str, level: int) -> bool:
        """Whether one more type is entered, at a path and so many types below the first one."""
        self._steps += 1
        return self._steps <= _MOST_STEPS and level < MOST_LEVELS and len(path) <= _LONGEST_PATH

    def first(self, fields: Iterable[Field]) -> list[Field]:
        """The first fields of a walk."""
        return list(islice(fields, MOST_FIELDS))
