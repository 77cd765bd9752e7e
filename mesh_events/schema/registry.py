"""The schema registry: ids of our schemas, and schemas of ids, whatever language they are in."""

import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from mesh_events import avro
from mesh_events.errors import (
    ConfigurationError,
    InfrastructureError,
    InvalidValueError,
    MeshError,
    RefusedError,
)
from mesh_events.schema.compatibility import Level, breaks, misread
from mesh_events.schema.definition import Definition, Kind, Reference, Version, encodable
from mesh_events.schema.inlining import inlined
from mesh_events.schema.known_ids import FILE as KNOWN_IDS
from mesh_events.schema.known_ids import KnownIds
from mesh_events.schema.size import (
    MOST_CHARACTERS,
    MOST_TOGETHER,
    MOST_VERSIONS,
    TOO_MANY_VERSIONS,
    SchemaTooLargeError,
)

if TYPE_CHECKING:
    from mesh_events.settings import Profile

MOST_IMPORTS = 100
"""Schemas that one refers to, directly or through others."""
MOST_IMPORTED = 500
"""Versions that the versions of one subject refer to together: each is asked for."""
MOST_KEPT = 2000
"""Schemas that are remembered."""


def registry_client(
    url: str, user: str | None = None, password: str | None = None
) -> SchemaRegistryClient:
    """The library's client of the registry at a base address, for a login or for nobody."""
    config: dict[str, Any] = {"url": url, "timeout": 10}
    if user is not None:
        config["basic.auth.user.info"] = f"{user}:{password}"
    if url.startswith("http://"):
        # nobody shows a certificate: reading those of all authorities took most of a client's start
        config["ssl.ca.location"] = False
    return SchemaRegistryClient(config)


class Registry:
    """A registry with the Confluent API.

    Args:
        url: base address.
        user, password: needed only to register.
        known: where ids of the mesh's own schemas are kept, if anywhere.
    """

    def __init__(
        self,
        url: str,
        user: str | None = None,
        password: str | None = None,
        known: KnownIds | None = None,
    ) -> None:
        self.url, self._known = url, known
        self._client = registry_client(url, user, password)
        self.schema_id = lru_cache(maxsize=None)(self._schema_id)
        self.definition = lru_cache(maxsize=MOST_KEPT)(self._definition)
        self._whole = lru_cache(maxsize=MOST_KEPT)(self._inlined)
        # of each thread, subject and number of what is counted together
        self._together = threading.local()

    @classmethod
    def at_home(cls, home: Path, profile: "Profile") -> Self:
        """The registry of a home's mesh, for reading; the home keeps ids of its own schemas."""
        url = profile.registry_url
        return cls(url, known=KnownIds(home / KNOWN_IDS, profile.root_key, url))

    def register(self, name: str) -> int:
        """Register today's schema of an event or row; the same schema gives the same id."""
        subject, schema = avro.subject(name), Schema(avro.text_of(name), Kind.AVRO.value)
        try:
            return int(self._client.register_schema(subject, schema))
        except Exception as error:
            raise self._fault(f"registering the schema of {name}", error) from error

    def latest(self, subject: str) -> tuple[int, int] | None:
        """(schema id, version) of a subject's latest schema, None if there is no such subject."""
        try:
            # the client remembers what `get_latest_version` found
            found = self._client.get_version(subject, "latest")
            return int(found.schema_id), int(found.version)
        except SchemaRegistryError as error:
            if error.http_status_code == 404:
                return None
            raise self._fault(f"looking up {subject}", error) from error
        except Exception as error:
            raise self._fault(f"looking up {subject}", error) from error

    def schema_text(self, schema_id: int) -> str:
        """The text of the schema with an id; raises InfrastructureError if there is none.

        An Avro schema comes whole: what it refers to is written out in it.
        """
        found = self.definition(schema_id)
        if found.kind != Kind.AVRO:
            return found.text
        try:
            return self._whole(found)
        except InvalidValueError as error:
            raise InfrastructureError(
                f"schema {schema_id} at the registry {self.url} cannot be used: {error}",
                retriable=False,
            ) from error

    def avro_text(self, schema_id: int) -> str | None:
        """As `schema_text`; None for a schema that is not Avro."""
        found = self.definition(schema_id)
        return self.schema_text(schema_id) if found.kind == Kind.AVRO else None

    def imports(self, schema: Definition) -> dict[str, str]:
        """Name -> text of all schemas that a schema refers to, directly or through others.

        Raises InfrastructureError, not retriable where one of them is not registered, and
        InvalidValueError where one name stands for two schemas, and SchemaTooLargeError for more
        than `MOST_IMPORTS` or `MOST_CHARACTERS`.
        """
        found: dict[str, str] = {}
        meant: dict[str, Reference] = {}
        left = list(schema.references)
        while left:
            one = left.pop()
            if meant.setdefault(one.name, one) != one:
                other = meant[one.name]
                raise InvalidValueError(
                    f"{one.name} stands for version {one.version} of {one.subject} and for version "
                    f"{other.version} of {other.subject}: refer to the same one everywhere"
                )
            if one.name in found:
                continue
            self._count(one)
            try:
                named = self._client.get_version(one.subject, one.version).schema
            except Exception as error:
                doing = f"reading version {one.version} of {one.subject}, which is {one.name}"
                raise self._fault(doing, error) from error
            inner = _defined(named)
            found[one.name] = inner.text
            if len(found) > MOST_IMPORTS or sum(map(len, found.values())) > MOST_CHARACTERS:
                raise SchemaTooLargeError(
                    f"version {one.version} of {one.subject}: with it a schema refers to more than "
                    f"{MOST_IMPORTS} others, or to {MOST_CHARACTERS} characters: refer to fewer"
                )
            left.extend(inner.references)
        return found

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Within it, SchemaTooLargeError where schemas refer to more than `MOST_IMPORTED` others.

        Each schema alone is bounded by `MOST_IMPORTS`; a subject has hundreds of them.
        """
        self._together.asked = set()
        try:
            yield
        finally:
            self._together.asked = None

    def _count(self, one: Reference) -> None:
        asked: set[tuple[str, int]] | None = getattr(self._together, "asked", None)
        if asked is not None:
            asked.add((one.subject, one.version))
            if len(asked) > MOST_IMPORTED:
                raise SchemaTooLargeError(
                    f"version {one.version} of {one.subject}: with it the versions of one subject "
                    f"refer to more than {MOST_IMPORTED} others: refer to fewer, or delete versions"
                )

    def numbers(self, subject: str) -> tuple[int, ...]:
        """The versions that a subject has, the oldest first; () if there is no such subject."""
        try:
            return tuple(sorted(self._client.get_versions(subject)))
        except SchemaRegistryError as error:
            if error.http_status_code == 404:
                return ()
            raise self._fault(f"looking up {subject}", error) from error
        except Exception as error:
            raise self._fault(f"looking up {subject}", error) from error

    def version(self, subject: str, number: int) -> Version:
        """One version of a subject; raises InfrastructureError if there is none."""
        try:
            found = self._client.get_version(subject, number)
            return Version(subject, number, int(found.schema_id), _defined(found.schema))
        except Exception as error:
            raise self._fault(f"reading version {number} of {subject}", error) from error

    def history(self, subject: str) -> list[Version]:
        """Every version that a subject has now, the oldest first; [] if there is no such subject.

        Raises RefusedError `too_many_versions` for more than `MOST_VERSIONS` or `MOST_TOGETHER`:
        whoever reads the topic compares all of them.
        """
        # a version may have been deleted for good, and another one made in its place
        self._client.clear_caches()
        self._whole.cache_clear()
        numbers = self.numbers(subject)
        found: list[Version] = []
        size = 0
        for number in numbers[:MOST_VERSIONS]:
            found.append(self.version(subject, number))
            size += len(found[-1].schema.text)
            if size > MOST_TOGETHER:
                break
        if len(found) < len(numbers) or size > MOST_TOGETHER:
            raise _too_many(subject, len(numbers))
        return found

    def versions(self, subject: str) -> Mapping[int, str]:
        """Schema id -> whole Avro text of every version of a subject, the latest last; {} if none.

        Raises RefusedError `unsupported_schema` where one of them is not Avro, `schema_not_usable`
        where a type that it names is defined nowhere, `too_many_versions` as `history` does,
        `schema_too_large` where they refer to more than `MOST_IMPORTED` others.
        """
        found = self.history(subject)
        schemas = {one.schema_id: one.schema for one in found}
        others = sorted({one.kind for one in schemas.values()} - {Kind.AVRO})
        if others:
            topic, _, side = subject.rpartition("-")
            raise RefusedError(
                "unsupported_schema", f"{side}s of {topic} are {' and '.join(others)}"
            )
        whole: dict[int, str] = {}
        size = 0
        with self.counted():
            for schema_id, one in schemas.items():
                try:
                    whole[schema_id] = self._whole(one)
                except InvalidValueError as error:
                    raise RefusedError("schema_not_usable", f"{subject}: {error}") from error
                size += len(whole[schema_id])
                if size > MOST_TOGETHER:
                    raise _too_many(subject, len(found))
        return whole

    def register_text(self, subject: str, text: str) -> int:
        """Register an Avro schema under any subject; the same schema gives the same id.

        Raises:
            RefusedError: `incompatible_schema`, with earlier ones of the subject: registries let
                numbers and texts mean something else.
        """
        self._client.clear_caches()
        # what stands there already is compared with nothing: no version is read
        if (known := self._registered(subject, text)) is not None:
            return known
        return self._register(subject, text, _parsed(self._texts(subject)))

    def register_texts(self, subject: str, texts: Sequence[str]) -> None:
        """Register Avro schemas under any subject, in their order; the earlier ones if they fit.

        Each version that is there is read once. Raises as `register_text`, for the last one alone.
        """
        there = self._texts(subject)
        earlier = _parsed(there)
        for text in texts:
            if text in there:
                continue
            try:
                self._register(subject, text, earlier)
            except RefusedError:
                # what is there already may not go with an earlier one
                if text == texts[-1]:
                    raise
            else:
                earlier.append(json.loads(text))

    def _register(self, subject: str, text: str, earlier: Sequence[Any]) -> int:
        """Register a schema behind those that its subject has, parsed, the latest last."""
        if told := _misread(text, earlier):
            raise RefusedError(
                "incompatible_schema",
                f"the result means something else than the latest schema of {subject}: {told}",
            )
        try:
            return int(self._client.register_schema(subject, Schema(text, Kind.AVRO.value)))
        except SchemaRegistryError as error:
            if error.http_status_code == 409:
                if (there := len(self.numbers(subject))) >= MOST_VERSIONS:
                    raise _too_many(subject, there) from error
                raise RefusedError(
                    "incompatible_schema",
                    f"the schema of the result is incompatible with the earlier ones of {subject}"
                    f"{_broken(text, earlier)}",
                ) from error
            if error.http_status_code == 422:
                raise RefusedError(
                    "schema_not_usable", f"the registry refuses the schema of {subject}: {error}"
                ) from error
            raise self._fault(f"registering {subject}", error) from error
        except Exception as error:
            raise self._fault(f"registering {subject}", error) from error

    def _registered(self, subject: str, text: str) -> int | None:
        """The id of a schema under a subject, None if it is not there."""
        try:
            schema = Schema(text, Kind.AVRO.value)
            return int(self._client.lookup_schema(subject, schema).schema_id)
        except SchemaRegistryError as error:
            # what is wrong with a schema is told where it is registered
            if error.http_status_code in (404, 422):
                return None
            raise self._fault(f"looking up {subject}", error) from error
        except Exception as error:
            raise self._fault(f"looking up {subject}", error) from error

    def _texts(self, subject: str) -> list[str]:
        """The versions of a subject, the latest last; [] where one is of another language."""
        try:
            return list(self.versions(subject).values())
        except RefusedError as error:
            if error.code == TOO_MANY_VERSIONS:
                raise
            # the registry judges
            return []

    def _schema_id(self, name: str) -> int:
        """Id of today's schema of an event or row, which the mesh must have introduced."""
        subject, text = avro.subject(name), avro.text_of(name)
        if self._known is not None and (known := self._known.find(subject, text)) is not None:
            return known
        found = self._looked_up(name, subject, Schema(text, Kind.AVRO.value))
        if self._known is not None:
            self._known.add(subject, text, found)
        return found

    def _looked_up(self, name: str, subject: str, schema: Schema) -> int:
        try:
            return int(self._client.lookup_schema(subject, schema).schema_id)
        except SchemaRegistryError as error:
            if error.http_status_code == 404:
                raise ConfigurationError(
                    f"the registry at {self.url} does not know this version's schema of {name}: "
                    "bring the governor to this version first"
                ) from error
            raise self._fault(f"looking up the schema of {name}", error) from error
        except Exception as error:
            raise self._fault(f"looking up the schema of {name}", error) from error

    def _definition(self, schema_id: int) -> Definition:
        """The schema with an id; raises InfrastructureError if there is none."""
        try:
            return _defined(self._client.get_schema(schema_id))
        except Exception as error:
            raise self._fault(f"reading schema {schema_id}", error) from error

    def _inlined(self, schema: Definition) -> str:
        return inlined(schema.text, self.imports(schema))

    def _fault(self, doing: str, error: Exception) -> InfrastructureError:
        known = isinstance(error, SchemaRegistryError)
        # a registry that answers has made up its mind; one that does not may come back
        return InfrastructureError(
            f"{doing} at the registry {self.url}: {error}", retriable=not known
        )


def _parsed(texts: Iterable[str]) -> list[Any]:
    return [json.loads(one) for one in texts]


def _misread(text: str, earlier: Sequence[Any]) -> str:
    """What a schema would read as something else in records of the latest one before it."""
    new = json.loads(text)
    if not earlier or new in earlier:
        return ""
    return "; ".join(f"{path}: {why}" for path, why in misread(new, earlier[-1]))


def _broken(text: str, earlier: Sequence[Any]) -> str:
    """Which fields of the latest version a schema breaks, as far as our rules see it."""
    if not earlier:
        return ""
    try:
        found = breaks(json.dumps(earlier[-1]), text, Level.FULL)
    except MeshError:
        return ""
    return f": {'; '.join(map(str, found))}" if found else ""


def _too_many(subject: str, there: int) -> RefusedError:
    return RefusedError(
        TOO_MANY_VERSIONS,
        f"{subject} has {there} versions: at most {MOST_VERSIONS} are compared, with "
        f"{MOST_TOGETHER} characters together: delete those from the registry of which no record "
        "is left, or begin another topic (`sdm schema register --major`)",
    )


def _defined(schema: Schema) -> Definition:
    """What the registry's client hands out; a schema without a type is Avro."""
    references = tuple(
        Reference(str(one.name), str(one.subject), int(one.version))
        for one in schema.references or ()
    )
    text = encodable(str(schema.schema_str))
    return Definition(str(schema.schema_type or Kind.AVRO), text, references)
