"""What the registry asks of the next schema of a subject."""

from urllib.parse import quote

from mesh_events.schema.compatibility import Level
from processors.registries.rest import RegistryRest


class SubjectRules:
    """The rules of a registry; methods raise InfrastructureError.

    Args:
        rest: how it is asked, by somebody who may register schemas.
    """

    def __init__(self, rest: RegistryRest) -> None:
        self._rest = rest

    def level(self, subject: str) -> Level:
        """The subject's own rule, else the registry's."""
        place = f"/config/{quote(subject, safe='')}?defaultToGlobal=true"
        found = self._rest.ask("GET", place) or {}
        try:
            return Level(found.get("compatibilityLevel", Level.NONE))
        except (AttributeError, ValueError) as error:
            raise self._rest.unexpected() from error

    def set_level(self, subject: str, level: Level) -> None:
        """Give a subject a rule of its own."""
        rule = {"compatibility": level.value}
        self._rest.ask("PUT", f"/config/{quote(subject, safe='')}", json=rule)
