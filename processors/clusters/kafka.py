"""The administration of real Kafka clusters: topics, rights, logins; each call is bounded in time.

A `ClusterAdmin` is the port that controllers use; `KafkaAdmin` is the real one.
"""

import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, Protocol, TypeVar

from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AdminClient,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from mesh_events.errors import InfrastructureError
from mesh_events.kafka.connection import Connection, is_login_refused, translated, translating
from processors.acls import kafka
from processors.clusters.rights import Acl, Binding

TIMEOUT_S = 15
AT_ONCE = 1000
"""ACLs in one request: Kafka's controller compares each with all that there are, and takes no more
than ten thousand."""
_SCRAM_ITERATIONS, _CLOSED_ITERATIONS = 4096, 4097
"""Of the logins that the mesh sets, and of those that it has closed: by this both are told apart
where only the cluster can be asked."""
_LOGIN_TRY_S = 0.5
_LOST = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 - the names that the library has for them
        KafkaError._DESTROY_BROKER,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError._TRANSPORT,  # noqa: SLF001
    }
)
"""Errors of a client that did not get through to a broker."""
_SHOWN = 5
"""Topics that an error names."""
_LISTING = "listing access rights"
_EFFECTIVE = frozenset({"cleanup.policy", "delete.retention.ms", "retention.bytes", "retention.ms"})
"""Settings that a topic tells also at Kafka's defaults: they decide when its records go."""
T = TypeVar("T")
CLUSTERS_DEFAULT = -1
"""As many replicas of a new topic as the cluster makes by default."""


def pieces(found: Sequence[T]) -> list[list[T]]:
    """The same in lists of `AT_ONCE` at most."""
    return [[*found[at : at + AT_ONCE]] for at in range(0, len(found), AT_ONCE)]


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the cluster has it; `id` changes when a topic is deleted and made again.

    config: what holds for it, its own and its cluster's, but for most of what is Kafka's default.
    """

    name: str
    id: str
    partitions: int
    config: Mapping[str, str]

    @property
    def mixes_keys(self) -> str:
        """Why the latest of records whose keys differ in a schema's id alone is not known, or "".

        The id is a part of a key's bytes, by which Kafka chooses the partition, and compacts.
        """
        if self.partitions > 1:
            return (
                f"with {self.partitions} partitions records of one key may stand in two of them, "
                "and which is the latest is not known"
            )
        if "compact" in self.config.get("cleanup.policy", ""):
            return (
                "the topic is compacted, so that the record that deletes a row goes, and the row "
                "with the key of the earlier schema stays"
            )
        return ""


class Login(StrEnum):
    """What a cluster has of a SCRAM user: nothing, a password, or one that the mesh closed."""

    ABSENT = "absent"
    OPEN = "open"
    CLOSED = "closed"


class ClusterAdmin(Protocol):
    """What controllers do to one cluster. Every method raises MeshError subclasses only."""

    name: str
    bootstrap_servers: str

    def ping(self) -> int:
        """Number of brokers that answer, after a login."""

    def topic(self, name: str) -> Topic | None:
        """The topic, or None."""

    def topic_ids(self, names: Iterable[str]) -> dict[str, str]:
        """Topic -> its id, of those that exist."""

    def topic_sizes(self, names: Iterable[str]) -> dict[str, tuple[str, int]]:
        """Topic -> its id and how many partitions it has, of those that exist."""

    def topic_names(self) -> set[str]:
        """The names of all topics."""

    def create_topic(
        self,
        name: str,
        partitions: int,
        config: Mapping[str, str],
        replicas: int = CLUSTERS_DEFAULT,
    ) -> None:
        """Make a topic; one that exists already is left as it is."""

    def add_partitions(self, name: str, partitions: int) -> None:
        """Add partitions up to `partitions` in all; a topic that has as many is left as it is."""

    def delete_topic(self, name: str) -> None:
        """Delete a topic; one that is gone already is fine."""

    def rights(self, principal: str | None = None, topic: str | None = None) -> set[Binding]:
        """Allowing bindings of a principal, or on the literal topic, or all."""

    def acls(self, principal: str | None = None) -> set[Acl]:
        """Every ACL of a principal, or of the cluster: of any resource, allowing and denying."""

    def grant(self, bindings: Iterable[Binding]) -> None:
        """Make bindings; those that exist are left."""

    def withdraw(self, rights: Iterable[Binding | Acl]) -> None:
        """Delete bindings, and ACLs of users; those that are gone are fine."""

    def login_of(self, principal: str) -> Login:
        """What the cluster has of a SCRAM user."""

    def lets_in(self, principal: str, password: str) -> bool:
        """Whether a principal can log in with a password."""

    def set_password(self, principal: str, password: str) -> None:
        """Make or change a SCRAM-SHA-512 login; returns once it is taken.

        Whoever calls it for a name that the log may not have issued calls `logins.require_ours`
        first: this changes the password of any user.
        """

    def retire_login(self, principal: str) -> None:
        """Close a login for good: nobody can log in with it any more, and its name stays taken."""

    def set_quotas(self, quotas: Mapping[str, Mapping[str, float]]) -> None:
        """Set client quotas: user -> quota -> value, see `mesh_events.kafka.client_quotas`."""

    def end_transactions(self, transactional_id: str) -> None:
        """Abort what a transactional id has left open; whoever used it can commit nothing more."""

    def delete_group(self, group: str) -> bool:
        """Delete a consumer group with its positions; False while it has members."""

    def connection(self, principal: str, password: str) -> Connection:
        """How a principal logs in here."""


class KafkaAdmin:
    """A real cluster, over the admin API with the operator's login."""

    def __init__(self, name: str, login: Connection) -> None:
        self.name, self.bootstrap_servers = name, login.bootstrap_servers
        self._login = login
        self._connect()

    def _connect(self) -> None:
        self._admin: Any = AdminClient(self._login.config(socket_timeout_ms=TIMEOUT_S * 1000))
        self._connected = time.monotonic()

    def _reconnect(self, error: KafkaError | None) -> None:
        """Make the client anew where it did not get through to a broker, now and then.

        One that saw its only broker leave and come back waits for Kafka's controller for ever.
        """
        lost = error is None or error.code() in _LOST
        if lost and time.monotonic() - self._connected > TIMEOUT_S:
            self._connect()

    @property
    def login(self) -> Connection:
        """The operator's own login here."""
        return self._login

    def connection(self, principal: str, password: str) -> Connection:
        """How a principal logs in here."""
        return replace(self._login, user=principal, password=password)

    def set_quotas(self, quotas: Mapping[str, Mapping[str, float]]) -> None:
        """Set client quotas: user -> quota -> value, see `mesh_events.kafka.client_quotas`."""
        # its client takes longer to import than all of this
        from mesh_events.kafka.client_quotas import set_quotas

        set_quotas(self._login, {user: quotas[user] for user in quotas})

    def end_transactions(self, transactional_id: str) -> None:
        """Abort what a transactional id has left open; whoever used it can commit nothing more."""
        doing = f"ending the transactions of {transactional_id}"
        with self._doing(doing):
            producer = Producer(self._login.config(transactional_id=transactional_id))
            # asks for the id's next epoch, as its own next user would
            producer.init_transactions(TIMEOUT_S)

    def ping(self) -> int:
        """Number of brokers that answer, after a login."""
        with self._doing("describing the cluster"):
            described = self._admin.describe_cluster(request_timeout=TIMEOUT_S)
            return len(self._result(described, "describing the cluster").nodes)

    def topic_names(self) -> set[str]:
        """The names of all topics."""
        with self._doing("listing topics"):
            try:
                return set(self._admin.list_topics(timeout=TIMEOUT_S).topics)
            except KafkaException as error:
                self._reconnect(error.args[0])
                raise

    def topic(self, name: str) -> Topic | None:
        """The topic, or None."""
        doing = f"describing topic {name}"
        with self._doing(doing):
            found = self._admin.describe_topics(TopicCollection([name]), request_timeout=TIMEOUT_S)[
                name
            ]
            described = self._result(found, doing, gone={KafkaError.UNKNOWN_TOPIC_OR_PART})
            if described is None:
                return None
            return Topic(
                name, str(described.topic_id), len(described.partitions), self._config(name)
            )

    def topic_ids(self, names: Iterable[str]) -> dict[str, str]:
        """Topic -> its id, of those that exist."""
        return {name: topic_id for name, (topic_id, _) in self.topic_sizes(names).items()}

    def topic_sizes(self, names: Iterable[str]) -> dict[str, tuple[str, int]]:
        """Topic -> its id and how many partitions it has, of those that exist."""
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return {}
        doing = f"describing topics {', '.join(wanted[:_SHOWN])}"
        with self._doing(doing):
            told = self._admin.describe_topics(TopicCollection(wanted), request_timeout=TIMEOUT_S)
            missing = {KafkaError.UNKNOWN_TOPIC_OR_PART}
            found = {name: self._result(told[name], doing, gone=missing) for name in wanted}
            return {
                name: (str(one.topic_id), len(one.partitions))
                for name, one in found.items()
                if one is not None
            }

    def delete_group(self, group: str) -> bool:
        """Delete a consumer group with its positions; False while it has members."""
        doing = f"deleting the consumer group {group}"
        with self._doing(doing):
            told = self._admin.delete_consumer_groups([group], request_timeout=TIMEOUT_S)[group]
            try:
                told.result(TIMEOUT_S + 1)
            except KafkaException as error:
                if error.args[0].code() == KafkaError.NON_EMPTY_GROUP:
                    return False
            except TimeoutError:
                pass  # told below
            self._result(told, doing, gone={KafkaError.GROUP_ID_NOT_FOUND})
            return True

    def create_topic(
        self,
        name: str,
        partitions: int,
        config: Mapping[str, str],
        replicas: int = CLUSTERS_DEFAULT,
    ) -> None:
        """Make a topic; one that exists already is left as it is."""
        doing = f"creating topic {name}"
        with self._doing(doing):
            new = NewTopic(name, partitions, replicas, config=dict(config))
            made = self._admin.create_topics([new], request_timeout=TIMEOUT_S)[name]
            self._result(made, doing, gone={KafkaError.TOPIC_ALREADY_EXISTS})

    def add_partitions(self, name: str, partitions: int) -> None:
        """Add partitions up to `partitions` in all; a topic that has as many is left as it is."""
        doing = f"adding partitions to topic {name}"
        with self._doing(doing):
            new = NewPartitions(name, partitions)
            added = self._admin.create_partitions([new], request_timeout=TIMEOUT_S)[name]
            # Kafka's answer where there are as many already, or more
            self._result(added, doing, gone={KafkaError.INVALID_PARTITIONS})

    def delete_topic(self, name: str) -> None:
        """Delete a topic; one that is gone already is fine."""
        doing = f"deleting topic {name}"
        with self._doing(doing):
            deleted = self._admin.delete_topics([name], request_timeout=TIMEOUT_S)[name]
            self._result(deleted, doing, gone={KafkaError.UNKNOWN_TOPIC_OR_PART})

    def rights(self, principal: str | None = None, topic: str | None = None) -> set[Binding]:
        """Allowing bindings of a principal, or on the literal topic, or all."""
        found = self._described(kafka.allowing(principal, topic))
        return {right for acl in found if (right := kafka.of_kafka(acl).binding()) is not None}

    def acls(self, principal: str | None = None) -> set[Acl]:
        """Every ACL of a principal, or of the cluster: of any resource, allowing and denying."""
        described = self._described(kafka.every(principal))
        if not kafka.is_unknown(described):
            return {kafka.of_kafka(acl) for acl in described}
        # its client takes longer to import than all of this
        from processors.acls import wire

        found = wire.listed(self._login, self._at(_LISTING), TIMEOUT_S)
        return {acl for acl in found if principal in (None, acl.principal)}

    def _described(self, wanted: AclBindingFilter) -> list[AclBinding]:
        with self._doing(_LISTING):
            found = self._admin.describe_acls(wanted, request_timeout=TIMEOUT_S)
            return list(self._result(found, _LISTING))

    def grant(self, bindings: Iterable[Binding]) -> None:
        """Make bindings; those that exist are left."""
        for some in pieces([kafka.granting(binding) for binding in bindings]):
            call = partial(self._admin.create_acls, some, request_timeout=TIMEOUT_S)
            self._each(call, "granting access rights")

    def withdraw(self, rights: Iterable[Binding | Acl]) -> None:
        """Delete bindings, and ACLs of users; those that are gone are fine."""
        acls = {Acl.of(one) if isinstance(one, Binding) else one for one in rights}
        named = {acl for acl in acls if kafka.is_named(acl)}
        doing = "withdrawing access rights"
        for some in pieces([kafka.deleting(acl) for acl in named]):
            call = partial(self._admin.delete_acls, some, request_timeout=TIMEOUT_S)
            self._each(call, doing)
        for others in pieces(sorted(acls - named)):
            from processors.acls import wire

            wire.delete(self._login, others, self._at(doing), TIMEOUT_S)

    def login_of(self, principal: str) -> Login:
        """What the cluster has of a SCRAM user."""
        doing = f"looking for the login {principal}"
        with self._doing(doing):
            asked = self._admin.describe_user_scram_credentials(
                [principal], request_timeout=TIMEOUT_S
            )
            found = self._result(asked[principal], doing, gone={KafkaError.RESOURCE_NOT_FOUND})
        infos = found.scram_credential_infos if found is not None else []
        if not infos:
            return Login.ABSENT
        closed = all(info.iterations == _CLOSED_ITERATIONS for info in infos)
        return Login.CLOSED if closed else Login.OPEN

    def lets_in(self, principal: str, password: str) -> bool:
        """Whether a principal can log in with a password."""
        doing, refused = f"logging in as {principal}", False

        def told(error: KafkaError) -> None:
            nonlocal refused
            refused = refused or is_login_refused(error)

        login = AdminClient({**self.connection(principal, password).config(), "error_cb": told})
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                login.list_topics(timeout=_LOGIN_TRY_S)
            except KafkaException as error:
                # the client tries a refused login again and again, and tells why besides
                login.poll(0)
                if refused or is_login_refused(error.args[0]):
                    return False
                if time.monotonic() > deadline:
                    raise translated(error.args[0], self._at(doing)) from error
            else:
                return True

    def set_password(self, principal: str, password: str) -> None:
        """Make or change a SCRAM-SHA-512 login; returns once a broker takes it."""
        self._alter_password(principal, password)
        # Kafka's controller has it, a broker learns of it a moment later
        doing = f"logging in as {principal}"
        login = AdminClient(self.connection(principal, password).config())
        with self._doing(doing):
            self._result(login.describe_cluster(request_timeout=TIMEOUT_S), doing)

    def _alter_password(
        self, principal: str, password: str, iterations: int = _SCRAM_ITERATIONS
    ) -> None:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, iterations)
        change = UserScramCredentialUpsertion(principal, info, password.encode())
        self._each(
            lambda: self._admin.alter_user_scram_credentials([change], request_timeout=TIMEOUT_S),
            f"setting the password of {principal}",
        )

    def retire_login(self, principal: str) -> None:
        """Close a login for good: nobody can log in with it any more, and its name stays taken."""
        # not deleted: a Kafka that replays the removal of a login from its metadata log may forget
        # all the others (ScramDelta.apply, up to 4.4.0 at least); see docs/decisions/0006
        # a login that never was is not made in order to be closed
        if self.login_of(principal) is Login.OPEN:
            self._alter_password(principal, secrets.token_urlsafe(32), _CLOSED_ITERATIONS)

    def _config(self, topic: str) -> dict[str, str]:
        doing = f"reading the settings of topic {topic}"
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        described = self._admin.describe_configs([resource], request_timeout=TIMEOUT_S)[resource]
        return {
            name: entry.value
            for name, entry in (self._result(described, doing) or {}).items()
            if name in _EFFECTIVE or not entry.is_default
        }

    def _each(
        self, call: Callable[[], Mapping[Any, Any]], doing: str, gone: Iterable[int] = ()
    ) -> None:
        with self._doing(doing):
            for answer in call().values():
                self._result(answer, doing, gone=set(gone))

    def _result(self, answer: "Future[Any]", doing: str, gone: set[int] | None = None) -> Any:
        """The answer's value; None for an error code in `gone`."""
        try:
            return answer.result(TIMEOUT_S + 1)
        except KafkaException as error:
            if error.args[0].code() in (gone or ()):
                return None
            self._reconnect(error.args[0])
            raise translated(error.args[0], self._at(doing)) from error
        except TimeoutError as error:
            self._reconnect(None)
            raise InfrastructureError(f"{self._at(doing)}: no answer", retriable=True) from error

    def _doing(self, doing: str) -> Any:
        return translating(self._at(doing))

    def _at(self, doing: str) -> str:
        return f"{doing} on cluster {self.name} ({self.bootstrap_servers})"
