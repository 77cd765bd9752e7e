"""A cluster's own schema registry: it holds what the mesh's does, under the same ids.

Only one registry can give ids. Of two that do, each goes on behind the highest id that it was ever
handed, and sooner or later both give the same one. So this one follows: every schema comes into it
with the id that the mesh's registry gave.

Apicurio takes a given id only with the archive that its administrator may import, and answers 204
also where it passed a schema over. So it is looked at afterwards, and before: an id or a version
that is something else there is never overwritten. Tried on Apicurio 3.3.3, see decision 0017. A
registry of another kind is only looked at.
"""

import hashlib
import io
import json
import zipfile
from dataclasses import replace
from urllib.parse import quote

from mesh_events.schema.definition import Definition, Kind, Version
from processors.registries.rest import RegistryRest
from spark_streams.errors import CopyError

_APICURIO = "/apis/ccompat/"
_MEDIA_TYPES = {Kind.PROTOBUF.value: "application/x-protobuf"}
_MOST_ALIKE = 20
_ALONE = (
    "only the mesh may write there. Empty it, and the mesh fills it again; then pause and resume "
    "the links that failed"
)


class RegistryReplica:
    """A registry with the Confluent API that follows the mesh's.

    Every method raises InfrastructureError where it does not answer or refuses the login.

    Args:
        url: base address of the Confluent API.
        user, password: on Apicurio those of its administrator.
    """

    def __init__(self, url: str, user: str, password: str) -> None:
        self._rest = RegistryRest(url, user, password)
        root, found, _ = url.partition(_APICURIO)
        self._native = f"{root}/apis/registry/v3" if found else None

    def require_writable(self) -> None:
        """See that it answers, and lets the login in."""
        places = ["/subjects", *([f"{self._native}/admin/rules"] if self._native else [])]
        for place in places:
            if self._rest.ask("GET", place) is None:
                raise self._rest.unexpected()

    def bring(self, wanted: Version) -> None:
        """Have a version of a subject under its id; what it refers to must be there already.

        Raises CopyError `registry_differs` where that cannot be.
        """
        if self._has(wanted):
            return
        if self._native is None:
            raise self._differs(
                f"has no schema {wanted.schema_id} of {wanted.subject}, and only Apicurio can be "
                "given one: let your own tool export it there under this id",
            )
        self._create(wanted, self._imported(wanted))
        if not self._has(wanted):
            raise self._differs(f"did not take schema {wanted.schema_id} of {wanted.subject}")

    def _has(self, wanted: Version) -> bool:
        """Whether the subject has the id; raises CopyError where the id is another schema."""
        place = f"/schemas/ids/{wanted.schema_id}"
        found = self._rest.ask("GET", place)
        if found is None:
            return False
        there = self._rest.ask("GET", f"{place}/versions") or []
        try:
            if not _unnumbered(wanted.schema).is_like(_unnumbered(Definition.answered(found))):
                raise self._taken(wanted)
            return any(one["subject"] == wanted.subject for one in there)
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            raise self._rest.unexpected() from error

    def _imported(self, wanted: Version) -> str:
        """Have the schema under its id, of whatever subject; the text that stands there.

        A text has one id there, to the letter, and schemas that differ in white space only are
        told alike by the mesh's registry: each gets a text of its own again.
        """
        place = f"{self._native}/ids/contentIds/{wanted.schema_id}"
        found = self._text(place)
        for blanks in range(_MOST_ALIKE):
            if found is not None:
                break
            self._rest.ask(
                "POST",
                f"{self._native}/admin/import?requireEmptyRegistry=false",
                data=archive(wanted, wanted.text + " " * blanks),
                headers={
                    "Content-Type": "application/zip",
                    "X-Registry-Preserve-ContentId": "true",
                },
            )
            found = self._text(place)
        if found is None:
            raise self._differs(
                f"has the schema {wanted.schema_id} of {wanted.subject} under {_MOST_ALIKE} other "
                f"ids: {_ALONE}",
            )
        if not wanted.schema.is_like(replace(wanted.schema, text=found)):
            raise self._taken(wanted)
        return found

    def _create(self, wanted: Version, text: str) -> None:
        """Make the version; the same text, to the letter, keeps its id."""
        content = {
            "content": text,
            "contentType": _media_type(wanted.kind),
            "references": _references(wanted),
        }
        version = {"version": str(wanted.number), "content": content}
        artifact = {
            "artifactId": wanted.subject,
            "artifactType": wanted.kind,
            "firstVersion": version,
        }
        artifacts = f"{self._native}/groups/default/artifacts"
        made = self._rest.ask("POST", f"{artifacts}?ifExists=FAIL", json=artifact, conflict=True)
        subject = quote(wanted.subject, safe="")
        place = f"{artifacts}/{subject}/versions"
        if made is None and self._rest.ask("GET", f"{place}/{wanted.number}") is not None:
            if self._has(wanted):
                # another lane has brought it since
                return
            raise self._differs(
                f"has another schema as version {wanted.number} of {wanted.subject} than the "
                f"mesh's: {_ALONE}",
            )
        # what the mesh's registry has let pass is not judged once more
        self._rest.ask("PUT", f"/config/{subject}", json={"compatibility": "NONE"})
        if made is None:
            # somebody else may have made it a moment ago: it is looked at afterwards
            self._rest.ask("POST", place, json=version, conflict=True)

    def _taken(self, wanted: Version) -> CopyError:
        return self._differs(
            f"has another schema under the id {wanted.schema_id}, which is that of version "
            f"{wanted.number} of {wanted.subject}: {_ALONE}",
        )

    def _differs(self, what: str) -> CopyError:
        place = f"the cluster's own registry at {self._rest.url}"
        return CopyError("registry_differs", f"{place} {what}")

    def _text(self, place: str) -> str | None:
        answer = self._rest.call("GET", place)
        try:
            return None if answer is None else answer.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._rest.unexpected() from error


def archive(one: Version, text: str) -> bytes:
    """What Apicurio imports: a text of a schema, and the id that it is to have.

    The layout is that of an archive of `/admin/export`; the hash is of the text and of what it
    refers to, or the same text would not be found to be the same later.
    """
    references = (
        json.dumps(_references(one), separators=(",", ":")) if one.schema.references else None
    )
    digest = hashlib.sha256((text + (references or "")).encode()).hexdigest()
    entry = {
        "contentId": one.schema_id,
        "canonicalHash": digest,
        "contentHash": digest,
        "artifactType": one.kind,
        "contentType": _media_type(one.kind),
        "serializedReferences": references,
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as files:
        files.writestr("mesh.Manifest.json", json.dumps({"systemVersion": "3"}))
        files.writestr(f"content/{digest}.Content.json", json.dumps(entry))
        files.writestr(f"content/{digest}.Content.data", text)
    return packed.getvalue()


def _references(one: Version) -> list[dict[str, str | None]]:
    """As Apicurio keeps them, in its order of fields."""
    return [
        {
            "groupId": None,
            "artifactId": each.subject,
            "version": str(each.version),
            "name": each.name,
        }
        for each in one.schema.references
    ]


def _media_type(kind: str) -> str:
    return _MEDIA_TYPES.get(kind, "application/json")


def _unnumbered(schema: Definition) -> Definition:
    """Without the numbers of what it refers to, which Apicurio tells by the order of making.

    Each of those is brought under its own id, and looked at there.
    """
    references = tuple(replace(one, version=0) for one in schema.references)
    return replace(schema, references=references)
