"""Which tables of databases connectors read into which topics, as Kafka Connect says now."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mesh_events.errors import MeshError
from self_service.cli.output import note

if TYPE_CHECKING:
    from self_service.cli.context import Mesh


@dataclass(frozen=True, slots=True)
class Table:
    """A table that a connector reads; `namespace` and `name` are OpenLineage's."""

    connector: str
    state: str
    namespace: str
    name: str

    def document(self) -> dict[str, Any]:
        """The step that reads it, as JSON."""
        table = {"namespace": self.namespace, "name": self.name}
        return {"job": "connector", "name": self.connector, "state": self.state, "from": [table]}


def tables(mesh: "Mesh") -> dict[str, list[Table]]:
    """Topic -> the tables that are read into it; {} with a note where Connect does not answer."""
    from self_service.cli.connectors import Connectors

    found: dict[str, list[Table]] = {}
    try:
        connectors = Connectors.of(mesh)
        for name, told in connectors.states().items():
            config = told["info"]["config"]
            for table in _included(config):
                topic = f"{_domain(config)}.{table.rpartition('.')[2]}"
                state = told["status"]["connector"]["state"]
                found.setdefault(topic, []).append(Table(name, state, *_named(config, table)))
    except MeshError as error:
        note(f"connectors are left out: {error}")
    return found


def _included(config: dict[str, str]) -> list[str]:
    """Tables as `schema.table`, of connectors that are configured as ours are."""
    if not config.get("connector.class", "").endswith("PostgresConnector"):
        return []
    return [one.strip() for one in config.get("table.include.list", "").split(",") if one.strip()]


def _domain(config: dict[str, str]) -> str:
    return config.get("topic.prefix", "").partition(".")[0]


def _named(config: dict[str, str], table: str) -> tuple[str, str]:
    """OpenLineage's namespace and name of a table in PostgreSQL."""
    place = f"{config.get('database.hostname')}:{config.get('database.port', '5432')}"
    return f"postgres://{place}", f"{config.get('database.dbname')}.{table}"
