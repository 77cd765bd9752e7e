"""The schema registry: ids of our schemas, and schemas of ids."""

from functools import lru_cache
from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from mesh_events import avro
from mesh_events.errors import ConfigurationError, InfrastructureError, RefusedError


class Registry:
    """A registry with the Confluent API.

    Args:
        url: base address.
        user, password: needed only to register.
    """

    def __init__(self, url: str, user: str | None = None, password: str | None = None) -> None:
        config: dict[str, Any] = {"url": url, "timeout": 10}
        if user is not None:
            config["basic.auth.user.info"] = f"{user}:{password}"
        self.url = url
        self._client = SchemaRegistryClient(config)
        self.schema_id = lru_cache(maxsize=None)(self._schema_id)
        self.schema_text = lru_cache(maxsize=None)(self._schema_text)

    def register(self, name: str) -> int:
        """Register today's schema of an event or row; the same schema gives the same id."""
        subject, schema = avro.subject(name), Schema(avro.text_of(name), "AVRO")
        try:
            return int(self._client.register_schema(subject, schema))
        except Exception as error:
            raise self._fault(f"registering the schema of {name}", error) from error

    def latest(self, subject: str) -> tuple[int, int] | None:
        """(schema id, version) of a subject's latest schema, None if there is no such subject."""
        try:
            found = self._client.get_latest_version(subject)
        except SchemaRegistryError as error:
            if error.http_status_code == 404:
                return None
            raise self._fault(f"looking up {subject}", error) from error
        except Exception as error:
            raise self._fault(f"looking up {subject}", error) from error
        return int(found.schema_id), int(found.version)

    def versions(self, subject: str) -> dict[int, str]:
        """Schema id -> text of every version of a subject, the latest last; {} if it has none."""
        try:
            numbers = self._client.get_versions(subject)
            found = [self._client.get_version(subject, number) for number in numbers]
        except SchemaRegistryError as error:
            if error.http_status_code == 404:
                return {}
            raise self._fault(f"looking up {subject}", error) from error
        except Exception as error:
            raise self._fault(f"looking up {subject}", error) from error
        kinds = {one.schema.schema_type for one in found} - {"AVRO", None}
        if kinds:
            raise RefusedError(
                "schema_not_usable", f"{subject}: schemas are {', '.join(kinds)}, not Avro"
            )
        return {int(one.schema_id): str(one.schema.schema_str) for one in found}

    def register_text(self, subject: str, text: str) -> int:
        """Register an Avro schema under any subject; the same schema gives the same id.

        Raises:
            RefusedError: `incompatible_schema`, with earlier ones of the subject.
        """
        try:
            return int(self._client.register_schema(subject, Schema(text, "AVRO")))
        except SchemaRegistryError as error:
            if error.http_status_code == 409:
                raise RefusedError(
                    "incompatible_schema",
                    f"the schema of the result is incompatible with the earlier ones of {subject}",
                ) from error
            if error.http_status_code == 422:
                raise RefusedError(
                    "schema_not_usable", f"the registry refuses the schema of {subject}: {error}"
                ) from error
            raise self._fault(f"registering {subject}", error) from error
        except Exception as error:
            raise self._fault(f"registering {subject}", error) from error

    def _schema_id(self, name: str) -> int:
        """Id of today's schema of an event or row, which the mesh must have introduced."""
        try:
            schema = Schema(avro.text_of(name), "AVRO")
            return int(self._client.lookup_schema(avro.subject(name), schema).schema_id)
        except SchemaRegistryError as error:
            if error.http_status_code == 404:
                raise ConfigurationError(
                    f"the registry at {self.url} does not know this version's schema of {name}: "
                    "bring the governor to this version first"
                ) from error
            raise self._fault(f"looking up the schema of {name}", error) from error
        except Exception as error:
            raise self._fault(f"looking up the schema of {name}", error) from error

    def _schema_text(self, schema_id: int) -> str:
        """The schema with an id; raises InfrastructureError if there is none."""
        try:
            return str(self._client.get_schema(schema_id).schema_str)
        except Exception as error:
            raise self._fault(f"reading schema {schema_id}", error) from error

    def _fault(self, doing: str, error: Exception) -> InfrastructureError:
        known = isinstance(error, SchemaRegistryError)
        # a registry that answers has made up its mind; one that does not may come back
        return InfrastructureError(
            f"{doing} at the registry {self.url}: {error}", retriable=not known
        )
