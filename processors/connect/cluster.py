"""One Connect cluster as the mesh uses it: what it may be told, and as whom a connector works.

A connector works with a login of its own, `mesh.connect.<connector>`, at the cluster where its
domain's topics live, so that Kafka holds it to what it may, whatever its config asks for.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mesh_events.connectors import SHARED_SECRET, is_reference
from mesh_events.errors import RefusedError
from mesh_events.intents import domain_of
from mesh_events.kafka.connection import SCRAM, TOPIC_IDS, jaas, known_topics
from processors.clusters.rights import Binding, Operation, Resource, reader
from processors.connect.config_faults import LOGIN_REFUSED, without_values
from processors.connect.principals import offsets_of, principal_of
from processors.connect.reachable import Reachable
from processors.connect.rest import Connect
from processors.connect.secrets import ConnectSecrets
from projections.connectors import config as connector_config
from projections.connectors import settings, tables
from projections.connectors.own_transforms import with_own_topics

NO_CONNECT = (
    "this mesh has no Kafka Connect: set SDM_CONNECT_URL, or SDM_DOMAIN_CONNECT_COMMAND, for its "
    "worker"
)
"""Why nothing that needs Connect runs where a worker has no address of it."""
_CLIENTS = ("producer", "consumer", "admin")
_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True, eq=False)
class ConnectCluster:
    """A Connect cluster.

    Args:
        api: its REST API.
        secrets: the files that it reads secrets from.
        group: the workers' group, which begins the transactional ids of their tasks.
        shared_database: host:port of the one database whose password all domains share, or None.
        databases: the other databases that connectors may reach, and of which domains.
        classes: classes of the operator's own that domains may run -> the settings that they may
            have beside those that all connectors have in common.
    """

    api: Connect
    secrets: ConnectSecrets
    group: str
    shared_database: str | None = None
    databases: tuple[Reachable, ...] = ()
    classes: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def require_sound(self, connector: str, config: Mapping[str, str]) -> dict[str, str]:
        """What the world says of a config; the evidence that it is sound.

        Raises:
            RefusedError: why it is not.
            InfrastructureError: Connect does not answer.
        """
        plugin = self.api.plugin(connector, config)
        if plugin["type"] not in ("source", "sink"):
            raise RefusedError(
                "invalid_connector", f"{connector}: {plugin['class']} is no connector"
            )
        if (plugin["type"] == "sink") != connector_config.is_sink(config):
            raise RefusedError(
                "invalid_connector",
                f"{connector}: topics: {plugin['class']} is a {plugin['type']}: a sink names the "
                "topics that it reads, and nothing else does",
            )
        self._require_class(connector, config)
        self.require_place(connector, config)
        self._require_shared(config)
        self._require_secret(connector, config)
        faults = self.faults(connector, config)
        if faults:
            raise RefusedError("invalid_connector", f"{connector}: {_first(faults)}")
        return {"class": plugin["class"], "type": plugin["type"], "version": plugin["version"]}

    def faults(self, connector: str, config: Mapping[str, str]) -> dict[str, str]:
        """Setting -> what the connector's own definition says against it."""
        pinned = tables.pinned(connector, config)
        return self.api.faults(connector, self.secrets.resolved(connector, pinned))

    def config(
        self,
        connector: str,
        config: Mapping[str, str],
        cluster: str,
        servers: str,
        topic_ids: Mapping[str, str],
    ) -> dict[str, str]:
        """The config as Connect is to have it: with the login, and references to files.

        Args:
            connector: its id.
            config: as the log has it.
            cluster: where it reads or writes topics.
            servers: bootstrap servers of that.
            topic_ids: topic that a sink reads -> Kafka's id of it.
        """
        principal = principal_of(connector)
        # the worker's own clients know how the brokers of the mesh are reached, under TLS or not
        login = {
            "bootstrap.servers": servers,
            "sasl.mechanism": SCRAM,
            "sasl.jaas.config": jaas(principal, self.secrets.login_reference(cluster, principal)),
        }
        pinned = tables.pinned(connector, config)
        overrides = {
            f"{client}.override.{name}": value
            for client in _CLIENTS
            for name, value in login.items()
        }
        if not connector_config.is_sink(config):
            # an exactly-once source keeps its position in the transaction of its records, so at
            # the same cluster and with the same login
            overrides["offsets.storage.topic"] = offsets_of(domain_of(connector))
            pinned = with_own_topics(domain_of(connector), pinned)
        else:
            # by default Connect reads what an aborted transaction has left
            overrides["consumer.override.isolation.level"] = "read_committed"
            if topic_ids:
                overrides[f"consumer.override.{TOPIC_IDS}"] = known_topics(topic_ids)
        return {**self.secrets.resolved(connector, pinned), **overrides}

    def rights(self, connector: str, config: Mapping[str, str]) -> frozenset[Binding]:
        """What a connector may do: a source writes its domain's topics, a sink reads its own."""
        principal = principal_of(connector)
        found: set[Binding] = set()
        if connector_config.is_sink(config):
            for topic in connector_config.reads(config):
                found |= reader(principal, topic)
            group = f"connect-{connector}"
            found.add(Binding(principal, Operation.READ, Resource.GROUP, group))
            for topic in connector_config.writes(config):
                found |= {
                    Binding(principal, operation, Resource.TOPIC, topic)
                    for operation in (Operation.WRITE, Operation.CREATE)
                }
            return frozenset(found)
        own = f"{domain_of(connector)}."
        operations = (Operation.WRITE, Operation.CREATE, Operation.DESCRIBE_CONFIGS)
        found |= {
            Binding(principal, operation, Resource.TOPIC, own, prefixed=True)
            for operation in operations
        }
        offsets = offsets_of(domain_of(connector))
        found |= {
            Binding(principal, operation, Resource.TOPIC, offsets)
            for operation in (Operation.READ, *operations)
        }
        return frozenset(found) | {
            Binding(
                principal,
                Operation.ALL,
                Resource.TRANSACTIONAL_ID,
                f"{self.group}-{connector}-{task}",
            )
            for task in range(connector_config.tasks(config) or 1)
        }

    def cleared(self, connector: str, cluster: str, text: str) -> str:
        """A text for people, without the connector's secrets."""
        return self.secrets.without(connector, cluster, principal_of(connector), text)

    def require_place(self, connector: str, config: Mapping[str, str]) -> None:
        """Refuse a database that the operator has not named, before anybody calls it.

        Raises RefusedError, with words that do not depend on what there is in the network.
        """
        if config.get("connector.class") not in settings.SETTINGS:
            return
        if not self.may_reach(connector, config):
            raise RefusedError(
                "database_not_allowed",
                f"{connector}: connectors of {domain_of(connector)} may not reach that database: "
                "ask the operator to name its host:port in SDM_CONNECT_DATABASES, for this domain "
                "or for all",
            )

    def password(self, connector: str, config: Mapping[str, str]) -> str:
        """The text of the secret that a config names for its database; empty without one."""
        place = connector_config.SECRET_SETTINGS.get(config.get("connector.class", ""), "")
        return self.secrets.text(connector, config.get(place, "")) or ""

    def may_reach(self, connector: str, config: Mapping[str, str]) -> bool:
        """Whether the operator has named the database that a config leads to, for the domain."""
        place = tables.place_of(config)
        if place is None:
            return False
        shared = [Reachable.of(self.shared_database)] if self.shared_database else []
        domain = domain_of(connector)
        return any(one.admits(place, domain) for one in (*self.databases, *shared))

    def _require_class(self, connector: str, config: Mapping[str, str]) -> None:
        """Refuse a class that neither the mesh nor its operator knows the settings of."""
        kind = config.get("connector.class", "")
        if kind in settings.SETTINGS:
            return
        if kind not in self.classes:
            raise RefusedError(
                "class_not_allowed",
                f"{connector}: connector.class: domains may not run {kind}: ask the operator to "
                "name it and its settings in SDM_CONNECT_CLASSES",
            )
        wrong = [one for one in settings.left_over(config) if one not in self.classes[kind]]
        if wrong:
            raise RefusedError(
                "setting_not_allowed",
                f"{connector}: {', '.join(wrong)}: no setting of {kind} that the operator allows",
            )

    def _require_secret(self, connector: str, config: Mapping[str, str]) -> None:
        for name, value in sorted(config.items()):
            if is_reference(value) and not self.secrets.text(connector, value):
                raise RefusedError(
                    "foreign_secret",
                    f"{connector}: {name}: there is no secret {value} where Connect reads it: "
                    "store it with `--password file:PATH`",
                )

    def _require_shared(self, config: Mapping[str, str]) -> None:
        """Refuse the shared password anywhere but at its database, to read and write tables only.

        The name of a database ends up in an address, where it could name another host; a setting
        of the driver can as well, and a statement would run with all rights.
        """
        if SHARED_SECRET not in config.values():
            return
        if (wrong := connector_config.not_allowed(config, shared=True)) is not None:
            raise RefusedError(
                "foreign_secret",
                f"{wrong}: not with {SHARED_SECRET}; `--password file:PATH` stores a connector's "
                "own password",
            )
        if not is_plainly_at(config, self.shared_database):
            raise RefusedError(
                "foreign_secret",
                f"{SHARED_SECRET} is for the database at {self.shared_database or 'nowhere'} "
                "alone, without settings of the driver and statements of one's own; "
                "`--password file:PATH` stores a connector's own",
            )


def is_plainly_at(config: Mapping[str, str], place: str | None) -> bool:
    """Whether the config leads to the database at `place` (host:port) and nowhere else."""
    if place is None or connector_config.not_allowed(config, shared=True) is not None:
        return False
    match config.get("connector.class"):
        case connector_config.POSTGRES:
            there = f"{config.get('database.hostname')}:{config.get('database.port')}" == place
            name = config.get("database.dbname", "")
            return there and _NAME.fullmatch(name) is not None
        case connector_config.JDBC_SINK:
            address, slash, name = config.get("connection.url", "").rpartition("/")
            there = bool(slash) and address == f"jdbc:postgresql://{place}"
            return there and _NAME.fullmatch(name) is not None
    return False


def _first(faults: Mapping[str, str]) -> str:
    """One fault, under the settings that are at fault: Debezium tells a wrong login at its host."""
    name, fault = min(faults.items())
    reason = without_values(fault)
    if reason != LOGIN_REFUSED:
        return f"{name}: {reason}"
    stem = name.rpartition(".")[0]
    return f"{stem}.user, {stem}.password: {reason}"
