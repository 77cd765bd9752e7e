"""What the registry holds of a subject: its versions, and what it asks of the next one."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mesh_events.compatibility import Level
from mesh_events.errors import InfrastructureError

if TYPE_CHECKING:
    from self_service.cli.context import Mesh

_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a subject; `kind` is AVRO, JSON or PROTOBUF."""

    number: int
    schema_id: int
    kind: str
    text: str


class Subjects:
    """The subjects of the mesh's registry, for reading; each method raises InfrastructureError."""

    def __init__(self, mesh: "Mesh") -> None:
        self._url = mesh.profile.registry_url.rstrip("/")

    def names(self) -> list[str]:
        """All subjects, in order."""
        return sorted(self._get("/subjects") or [])

    def numbers(self, subject: str) -> list[int]:
        """A subject's versions, the oldest first; [] if there is no such subject."""
        return sorted(self._get(f"/subjects/{quote(subject, safe='')}/versions") or [])

    def version(self, subject: str, number: int | str = "latest") -> Version | None:
        """One version, None if there is none."""
        found = self._get(f"/subjects/{quote(subject, safe='')}/versions/{number}")
        if found is None:
            return None
        kind = str(found.get("schemaType") or "AVRO")
        return Version(int(found["version"]), int(found["id"]), kind, str(found["schema"]))

    def level(self, subject: str) -> Level:
        """What the next version must keep to, by the subject's own rule or the registry's."""
        found = self._get(f"/config/{quote(subject, safe='')}?defaultToGlobal=true") or {}
        return Level(found.get("compatibilityLevel", "NONE"))

    def _get(self, path: str) -> Any:
        """The answer; None for 404."""
        import requests

        doing = f"the registry at {self._url}"
        try:
            answer = requests.get(self._url + path, timeout=_TIMEOUT_S)
        except requests.RequestException as error:
            raise InfrastructureError(
                f"{doing} does not answer ({type(error).__name__}): see `sdm status`",
                retriable=True,
            ) from error
        if answer.status_code == requests.codes.not_found:
            return None
        if not answer.ok:
            raise InfrastructureError(f"{doing} answered {answer.status_code}", retriable=False)
        return answer.json()
