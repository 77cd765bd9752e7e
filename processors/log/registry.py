"""The registry as a worker uses it: asked only for what the log itself has not introduced."""

from collections.abc import Callable, Mapping

from mesh_events import avro
from mesh_events.schema.definition import Definition, Kind
from mesh_events.schema.registry import Registry


class LogRegistry(Registry):
    """Every schema of the mesh stands on the log before its first use, so deciding needs no server.

    Args:
        url, user, password: as of `Registry`.
        introduced: schema id -> text, as folded up to now.
    """

    def __init__(
        self, url: str, user: str, password: str, introduced: Callable[[], Mapping[int, str]]
    ) -> None:
        super().__init__(url, user, password)
        self._introduced = introduced

    def _schema_id(self, name: str) -> int:
        text = avro.text_of(name)
        ids = (number for number, known in self._introduced().items() if known == text)
        found = next(ids, None)
        return found if found is not None else super()._schema_id(name)

    def _definition(self, schema_id: int) -> Definition:
        known = self._introduced().get(schema_id)
        return super()._definition(schema_id) if known is None else Definition(Kind.AVRO, known)
