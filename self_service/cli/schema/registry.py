"""What the registry holds of a subject: its versions, and what it asks of the next one."""

import re
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mesh_events.errors import InfrastructureError, InvalidValueError
from mesh_events.schema.compatibility import Field, Level
from mesh_events.schema.definition import Definition, Kind, Reference, Version
from mesh_events.schema.inlining import inlined
from self_service.cli.schema.subjects import read_schema, subject_of, usable

if TYPE_CHECKING:
    from requests import Response

    from self_service.cli.mesh.context import Mesh

_TIMEOUT_S = 10


class NotJudgedError(InvalidValueError):
    """The registry cannot say whether a schema may follow, before it is registered."""


class Subjects:
    """The subjects of the mesh's registry, for reading; each method raises InfrastructureError."""

    def __init__(self, mesh: "Mesh") -> None:
        self._mesh = mesh
        self._url = mesh.profile.registry_url.rstrip("/")

    def subject(self, name: str, *, key: bool = False) -> str:
        """The subject that a name means: its own, its topic's, or that of a shared schema.

        Raises InvalidValueError for a name that no subject can have.
        """
        _require_subject(name)
        meant = subject_of(name, key=key)
        if key or meant == name or self.numbers(meant) or not self.numbers(name):
            return meant
        return name

    def draft(
        self,
        subject: str,
        path: Path,
        kind: Kind | None,
        references: Iterable[Reference] = (),
    ) -> Definition:
        """The schema in a file; raises InvalidValueError, see `read_schema`."""
        before = self.version(subject)
        follows = before.schema if before else None
        return read_schema(path, kind, self._mesh.registry, follows, references)

    def known(self, subject: str, schema: Definition) -> Version | None:
        """The latest version of a subject that is the schema, however it is laid out."""
        versions = (self.version(subject, one) for one in reversed(self.numbers(subject)))
        return next((one for one in versions if one and one.schema.is_like(schema)), None)

    def of_id(self, subject: str, schema_id: int) -> Version | None:
        """The latest version of a subject that has an id."""
        versions = (self.version(subject, one) for one in reversed(self.numbers(subject)))
        return next((one for one in versions if one and one.schema_id == schema_id), None)

    def users(self, subject: str, number: int) -> list[str]:
        """`subject:version` of each that refers to a version; [] if the registry does not tell."""
        path = f"/subjects/{quote(subject, safe='')}/versions/{number}/referencedby"
        try:
            places = [self._get(f"/schemas/ids/{one}/versions") for one in self._get(path) or ()]
        except (InvalidValueError, InfrastructureError):
            return []
        found = {(one["subject"], int(one["version"])) for place in places for one in place or ()}
        return [f"{name}:{version}" for name, version in sorted(found)]

    def fields(self, subject: str, schema: Definition) -> list[Field]:
        """The fields of a schema; raises InvalidValueError where it cannot be used."""
        return usable(self._mesh, subject, schema).fields()

    def whole(self, subject: str, schema: Definition) -> str:
        """An Avro schema with all that it refers to; raises InvalidValueError for what is missing.

        subject: what an error names.
        """
        try:
            return inlined(schema.text, self._mesh.registry.imports(schema))
        except InvalidValueError as error:
            raise InvalidValueError(f"the schema of {subject}: {error}") from error

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
        schema = Definition.answered(found)
        return Version(subject, int(found["version"]), int(found["id"]), schema)

    def level(self, subject: str) -> Level:
        """What the next version must keep to, by the subject's own rule or the registry's."""
        found = self._get(f"/config/{quote(subject, safe='')}?defaultToGlobal=true") or {}
        return Level(found.get("compatibilityLevel", "NONE"))

    def refusal(self, subject: str, number: int, schema: Definition) -> str | None:
        """What the registry has against a schema as the next one after a version; None: nothing.

        The registry judges by the subject's own level. "" where it does not say why.

        Raises:
            InvalidValueError: to the registry it is no schema.
            NotJudgedError: it refers to others, which a registry may not follow here.
        """
        body = {
            "schema": schema.text,
            "schemaType": schema.kind,
            "references": [asdict(one) for one in schema.references],
        }
        path = f"/compatibility/subjects/{quote(subject, safe='')}/versions/{number}?verbose=true"
        try:
            found = self._ask("POST", path, body) or {}
        except (InvalidValueError, InfrastructureError) as error:
            retriable = isinstance(error, InfrastructureError) and error.retriable
            if retriable or not schema.references:
                raise
            # Apicurio's answer is of a schema whose references are missing, though they are told
            names = ", ".join(one.name for one in schema.references)
            raise NotJudgedError(
                f"the registry does not check a schema that refers to others ({names}): {error}; "
                "`sdm schema diff` shows what changed, and registration checks it"
            ) from error
        return None if found.get("is_compatible") else "; ".join(found.get("messages") or ())

    def _get(self, path: str) -> Any:
        """The answer; None for 404."""
        return self._ask("GET", path)

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        import requests

        doing = f"the registry at {self._url}"
        try:
            answer = requests.request(method, self._url + path, json=body, timeout=_TIMEOUT_S)
        except requests.RequestException as error:
            raise InfrastructureError(
                f"{doing} does not answer ({type(error).__name__}): see `sdm status`",
                retriable=True,
            ) from error
        if answer.status_code == requests.codes.not_found:
            return None
        if answer.status_code == requests.codes.unprocessable_entity:
            raise InvalidValueError(f"{doing} refuses the schema: {_said(answer)}")
        if not answer.ok:
            said = f"{doing} answered {answer.status_code}: {_said(answer)}"
            raise InfrastructureError(said, retriable=False)
        return answer.json()


def _require_subject(name: str) -> None:
    """Refuse what a server takes for another path, however it is quoted."""
    if not name.isprintable() or not {".", ".."}.isdisjoint(re.split(r"[/\\]", name)):
        raise InvalidValueError(
            f"{name!r} cannot be a subject: name a topic or product, or a subject of "
            "`sdm schema list`"
        )


def _said(answer: "Response") -> str:
    """The registry's own words."""
    try:
        found = answer.json()
    except ValueError:
        return answer.reason
    return str(found.get("message", answer.reason)) if isinstance(found, dict) else answer.reason
