"""The config of a Debezium connector that captures tables of PostgreSQL for a domain.

With which login it writes, and to which cluster, is told by `connect_login`.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mesh_events.errors import InvalidValueError
from self_service.cli import connector_secrets

if TYPE_CHECKING:
    from self_service.cli.context import Mesh

TYPE = "debezium-postgres"
_PORT = 5432
_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)?")


@dataclass(frozen=True, slots=True)
class Database:
    """Where the tables are; `password` is a reference that Connect resolves, `${dir:...}`."""

    host: str
    port: int
    user: str
    password: str
    name: str


def database(
    mesh: "Mesh",
    connector: str,
    host: str | None,
    user: str | None,
    password: str | None,
    name: str | None,
) -> Database:
    """The database that the options name; each default is the local platform's Postgres.

    `password` may be `file:PATH`, which `connector_secrets.store` copies to where the connector
    may read it; or the reference to such a copy.
    """
    ends = mesh.endpoints
    own = host is None
    if own:
        reference = connector_secrets.local(ends.connect_secrets)
    address, port = _address(host or f"{ends.postgres_host}:{ends.postgres_port}")
    if not own and (user is None or password is None or name is None):
        raise InvalidValueError("another database needs --user, --password and --database")
    if password is not None:
        reference = _reference(ends.connect_secrets, connector, password)
    return Database(
        address,
        port,
        user or ends.postgres_user,
        reference,
        name or ends.postgres_database,
    )


def _address(text: str) -> tuple[str, int]:
    """(host, port) of `host` or `host:port`; raises InvalidValueError."""
    host, colon, port = text.partition(":")
    number = int(port) if port.isdecimal() and len(port) < 6 else 0
    if not host or (colon and not 0 < number < 2**16):
        raise InvalidValueError(f"--host {text!r}: write it as host or host:port, port 1 to 65535")
    return host, number or _PORT


def _reference(folder: Path, connector: str, password: str) -> str:
    if password.startswith("${"):
        return password
    if not password.startswith("file:"):
        raise InvalidValueError("--password is a reference, file:/path or ${dir:...}, never itself")
    return connector_secrets.own(folder, connector)


def config(connector: str, domain: str, tables: list[str], source: Database) -> dict[str, str]:
    """The connector's config: each table becomes the topic `<domain>.<table>`.

    Args:
        connector: its name; also names its slot and publication in the database.
        domain: owner of the topics.
        tables: `schema.table`, or `table` in schema public.
        source: where they are.
    """
    legal(connector)
    slot = "sdm_" + re.sub(r"[^a-z0-9_]", "_", connector)
    return {
        "connector.class": connector_secrets.POSTGRES,
        "tasks.max": "1",
        "database.hostname": source.host,
        "database.port": str(source.port),
        "database.user": source.user,
        "database.password": source.password,
        "database.dbname": source.name,
        "plugin.name": "pgoutput",
        "slot.name": slot,
        "publication.name": slot,
        # only the captured tables, so that no other right is needed in the database
        "publication.autocreate.mode": "filtered",
        "table.include.list": ",".join(_qualified(table) for table in tables),
        # one name per connector: two with the same prefix in one worker wait for each other's
        # metrics for a minute before they capture anything
        "topic.prefix": f"{domain}.{connector}",
        "schema.name.adjustment.mode": "avro",
        # Debezium names topics prefix.schema.table; a product's topic is <domain>.<table>
        "transforms": "route",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": rf"{re.escape(domain)}\.{re.escape(connector)}\.[^.]+\.(.+)",
        "transforms.route.replacement": f"{domain}.$1",
        "topic.creation.default.replication.factor": "-1",
        "topic.creation.default.partitions": "1",
        "exactly.once.support": "required",
        "poll.interval.ms": "50",
    }


def legal(connector: str) -> str:
    """The name; raises InvalidValueError for one that leaves the folder of secrets or the URL."""
    if not _NAME.fullmatch(connector):
        raise InvalidValueError(
            f"{connector!r} cannot be a connector: use a-z, 0-9 and '-', begin with a letter"
        )
    return connector


def _qualified(table: str) -> str:
    if not _TABLE.fullmatch(table):
        raise InvalidValueError(f"{table!r} is not a table: write it as schema.table")
    return table if "." in table else f"public.{table}"
