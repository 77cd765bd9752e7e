"""What every cluster promises to controllers; subclassed for one in memory and for real Kafka."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

from mesh_events.kafka.connection import Connection
from processors.clusters.kafka import ClusterAdmin
from processors.clusters.rights import Acl, Binding, Operation, Resource


class ClusterContract(ABC):
    """Subclasses bring a cluster, a name that nobody else uses, and a way to try a login."""

    admin: ClusterAdmin
    topic: str

    @abstractmethod
    def may_log_in(self, connection: Connection) -> bool:
        """Whether the cluster lets this login in."""

    @abstractmethod
    def logins(self) -> set[str]:
        """The names that the cluster keeps a password for."""

    @abstractmethod
    def make(self, acl: Acl) -> None:
        """Make any ACL, as an administrator does; it is gone after the test."""

    @abstractmethod
    def wait(self, condition: Callable[[], bool]) -> None:
        """Let time pass until something is so."""

    def binding(self, operation: Operation = Operation.READ) -> Binding:
        return Binding(f"reader.{self.topic}", operation, Resource.TOPIC, self.topic)

    def test_it_answers(self) -> None:
        assert self.admin.ping() >= 1

    def test_a_topic_is_as_it_was_made_and_stays_when_it_is_made_again(self) -> None:
        self.admin.create_topic(self.topic, 2, {"retention.ms": "-1"})
        self.wait(lambda: self.admin.topic(self.topic) is not None)
        made = self.admin.topic(self.topic)
        assert made is not None
        assert (made.name, made.partitions) == (self.topic, 2)
        assert made.config["retention.ms"] == "-1"
        self.admin.create_topic(self.topic, 5, {})
        assert self.admin.topic(self.topic) == made

    def test_a_topic_tells_by_what_its_records_go_also_where_that_is_kafkas_default(self) -> None:
        self.admin.create_topic(self.topic, 1, {"retention.ms": "7"})
        self.wait(lambda: self.admin.topic(self.topic) is not None)
        made = self.admin.topic(self.topic)
        assert made is not None
        found = {name: value for name, value in made.config.items() if "retention" in name}
        assert found == {
            "delete.retention.ms": "86400000",
            "retention.bytes": "-1",
            "retention.ms": "7",
        }
        assert made.config["cleanup.policy"] == "delete"

    def test_partitions_are_added_and_never_removed(self) -> None:
        self.admin.create_topic(self.topic, 2, {})
        self.wait(lambda: self.admin.topic(self.topic) is not None)
        made = self.admin.topic(self.topic)
        assert made is not None

        def has(partitions: int) -> bool:
            return self.admin.topic(self.topic) == replace(made, partitions=partitions)

        for wanted, partitions in ((4, 4), (4, 4), (3, 4), (5, 5)):
            self.admin.add_partitions(self.topic, wanted)
            self.wait(lambda expected=partitions: has(expected))

    def test_a_topic_that_is_deleted_is_gone_and_one_made_again_has_another_id(self) -> None:
        assert self.admin.topic(self.topic) is None
        self.admin.create_topic(self.topic, 1, {})
        self.wait(lambda: self.admin.topic(self.topic) is not None)
        assert self.topic in self.admin.topic_names()
        first = self.admin.topic(self.topic)
        self.admin.delete_topic(self.topic)
        self.wait(lambda: self.admin.topic(self.topic) is None)
        assert self.topic not in self.admin.topic_names()
        self.admin.delete_topic(self.topic)
        self.admin.create_topic(self.topic, 1, {})
        self.wait(lambda: self.admin.topic(self.topic) is not None)
        second = self.admin.topic(self.topic)
        assert first is not None
        assert second is not None
        assert first.id != second.id

    def test_rights_are_found_by_principal_and_by_topic_until_they_are_withdrawn(self) -> None:
        read, write = self.binding(), self.binding(Operation.WRITE)
        self.admin.grant([read, write])
        self.admin.grant([read])
        self.wait(lambda: self.admin.rights(topic=self.topic) == {read, write})
        assert self.admin.rights(principal=read.principal) == {read, write}
        assert self.admin.rights(principal=f"not.{read.principal}") == set()
        assert {read, write} <= self.admin.rights()
        self.admin.withdraw([write])
        self.admin.withdraw([write])
        self.wait(lambda: self.admin.rights(topic=self.topic) == {read})
        self.admin.withdraw([read])
        self.wait(lambda: self.admin.rights(topic=self.topic) == set())

    def test_any_acl_is_listed_and_only_what_the_mesh_may_write_is_a_right(self) -> None:
        mine = self.binding()
        self.admin.grant([mine])
        strange = {
            Acl(mine.principal, "alter-configs", "topic", self.topic),
            Acl(mine.principal, "read", "topic", self.topic[:-1], prefixed=True),
            Acl(mine.principal, "read", "topic", self.topic, host="127.0.0.9"),
            Acl(mine.principal, "read", "group", self.topic, denies=True),
            Acl("*", "write", "topic", self.topic, denies=True),
        }
        for acl in strange:
            self.make(acl)
        self.wait(lambda: strange | {Acl.of(mine)} <= self.admin.acls())
        assert self.admin.rights(principal=mine.principal) == {mine}
        self.admin.withdraw([mine])
        self.wait(lambda: Acl.of(mine) not in self.admin.acls())
        assert strange <= self.admin.acls()

    def test_an_acl_of_any_resource_and_host_is_listed_and_withdrawn(self) -> None:
        name = f"reader.{self.topic}"
        strange = {
            Acl(name, "read", "topic", self.topic, host="127.0.0.9"),
            Acl(name, "alter", "cluster", "kafka-cluster"),
            Acl(name, "read", "group", self.topic, prefixed=True),
            Acl(name, "write", "transactional-id", self.topic, host="127.0.0.9"),
            Acl(name, "describe", "delegation-token", self.topic),
            Acl(name, "create-tokens", "user", f"User:{self.topic}"),
        }
        kept = Acl(name, "read", "topic", self.topic, host="127.0.0.8")
        for acl in {*strange, kept}:
            self.make(acl)
        self.wait(lambda: self.admin.acls(principal=name) == {*strange, kept})
        assert {*strange, kept} <= self.admin.acls()
        assert self.admin.acls(principal=f"not.{name}") == set()
        self.admin.withdraw(strange)
        self.wait(lambda: self.admin.acls(principal=name) == {kept})
        self.admin.withdraw(strange)

    def test_the_latest_password_lets_in_and_no_other(self) -> None:
        name, first, second = f"app.{self.topic}", secrets.token_hex(8), secrets.token_hex(8)
        self.admin.set_password(name, first)
        self.wait(lambda: self.may_log_in(self.admin.connection(name, first)))
        self.admin.set_password(name, second)
        self.wait(lambda: self.may_log_in(self.admin.connection(name, second)))
        assert not self.may_log_in(self.admin.connection(name, first))

    def test_a_closed_login_lets_nobody_in_and_is_still_there(self) -> None:
        """Kafka may forget every other login when it replays a removal."""
        name, password = f"app.{self.topic}", secrets.token_hex(8)
        self.admin.set_password(name, password)
        self.wait(lambda: self.may_log_in(self.admin.connection(name, password)))
        self.admin.retire_login(name)
        self.admin.retire_login(name)
        self.wait(lambda: not self.may_log_in(self.admin.connection(name, password)))
        assert name in self.logins()
