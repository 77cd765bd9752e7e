"""Kafka's protocol by hand: requests that no ordinary client sends."""

import base64
import hashlib
import hmac
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from mesh_events.kafka.connection import SCRAM, Connection

_PRODUCE, _FETCH, _LIST_OFFSETS, _METADATA, _JOIN_GROUP = 0, 1, 2, 3, 11
_OFFSET_COMMIT, _FIND_COORDINATOR, _HANDSHAKE, _CREATE_TOPICS = 8, 10, 17, 19
_INIT_PRODUCER_ID, _LEADER_EPOCHS, _DESCRIBE_CONFIGS, _AUTHENTICATE = 22, 23, 32, 36
_CREATE_PARTITIONS, _INCREMENTAL_ALTER_CONFIGS, _API_VERSIONS, _ALTER_CONFIGS = 37, 44, 18, 33
_SHARE_GROUP_HEARTBEAT, _SHARE_FETCH = 76, 78
_OFFSET_FETCH, _DESCRIBE_SHARE_GROUP_OFFSETS = 9, 90
_DESCRIBE_GROUPS, _ALTER_CLIENT_QUOTAS, _DESCRIBE_USER_SCRAM_CREDENTIALS = 15, 49, 50
_ADD_PARTITIONS_TO_TXN, _END_TXN, _WRITE_TXN_MARKERS = 24, 26, 27
_LIST_TRANSACTIONS, _CONSUMER_GROUP_HEARTBEAT = 66, 68
_TELEMETRY_SUBSCRIPTIONS, _PUSH_TELEMETRY = 71, 72
_STREAMS_GROUP_HEARTBEAT = 88
_LOADING, _LOADED_S = (14, 15, 16), 30.0
"""A coordinator that is loading, is not there yet, or is another one."""


class Stream(Protocol):
    """What bytes go by: a socket, or one with something around it."""

    def sendall(self, data: bytes, /) -> None: ...

    def recv(self, size: int, /) -> bytes: ...

    def settimeout(self, seconds: float, /) -> None: ...

    def fileno(self) -> int: ...

    def close(self) -> None: ...


class RawConnection:
    """One connection to a broker; `login` is None for a client that does not authenticate."""

    def __init__(
        self,
        address: str,
        login: Connection | None = None,
        timeout_s: float = 20,
        around: Callable[[socket.socket], Stream] = lambda plain: plain,
    ) -> None:
        host, port = address.split(":")
        self.socket = around(socket.create_connection((host, int(port)), timeout_s))
        if login is not None:
            self._authenticate(login.user, login.password)

    def announce(self, size: int) -> None:
        """Send the size of a request, in bytes, and nothing of the request."""
        self.socket.sendall(struct.pack(">i", size))

    def is_closed(self, within_s: float) -> bool:
        """Whether the broker closes the connection."""
        self.socket.settimeout(within_s)
        try:
            return self.socket.recv(1) == b""
        except TimeoutError:
            return False
        except OSError:
            return True

    def produce(self, topic: str, partitions: Mapping[int, bytes]) -> set[int]:
        """Have partitions take a batch each; returns the error codes."""
        answer = self._call(_PRODUCE, 7, _appending(topic, partitions))
        places = answer[4 + 2 + len(topic) + 4 : -4]
        return {code for _, code, *_ in struct.iter_unpack(">ihqqq", places)}

    def ask_to_append(self, topic: str, partitions: Mapping[int, bytes]) -> None:
        """The same, and its answer is not waited for."""
        self._send(_PRODUCE, 7, _appending(topic, partitions))

    def append_in_transaction(
        self, transactional_id: str, topic: str, partitions: Mapping[int, bytes]
    ) -> None:
        """The same in a transaction to which the partitions were added."""
        self._send(_PRODUCE, 7, _appending(topic, partitions, _text(transactional_id)))

    def fetch(
        self,
        topic: str,
        wait_ms: int,
        offset: int = 0,
        *,
        partition: int = 0,
        committed: bool = False,
    ) -> int:
        """Wait for a record at an offset of a partition; returns the error code."""
        self.ask_to_fetch([topic], wait_ms, partition=partition, offset=offset, committed=committed)
        answer = self._answer()
        place = 4 + 4 + 2 + len(topic) + 4 + 4
        [code] = struct.unpack(">h", answer[place : place + 2])
        return int(code)

    def topics_of_fetch(self) -> int:
        """How many topics the answer to a fetch has."""
        # behind a time
        [count] = struct.unpack_from(">i", self._answer(), 4)
        return int(count)

    def ask_to_fetch(
        self,
        topics: Iterable[str],
        wait_ms: int,
        least: int = 1,
        *,
        partition: int = 0,
        offset: int = 0,
        committed: bool = False,
    ) -> None:
        """Wait for so many bytes at a partition of topics; do not wait for the answer."""
        places = _list(struct.pack(">iqi", partition, offset, 1 << 20))
        shape = struct.pack(">iiiib", -1, wait_ms, least, 1 << 20, committed)
        self._send(_FETCH, 4, shape + _list(*(_text(one) + places for one in topics)))

    def name_coordinators(self, count: int) -> None:
        """Request the coordinators of so many groups without a name; wait for no answer."""
        body = b"\0" + _count(count) + b"\1" * count + b"\0"
        message = struct.pack(">hhi", _FIND_COORDINATOR, 4, 1) + _text("test") + b"\0" + body
        self.socket.sendall(_bytes(message))

    def name_epochs(self, topics: Iterable[str]) -> None:
        """Request the epochs of no partition of these topics; wait for no answer."""
        body = _list(*(_text(one) + _list() for one in topics))
        message = struct.pack(">hhi", _LEADER_EPOCHS, 2, 1) + _text("test") + body
        self.socket.sendall(_bytes(message))

    def describe_topics(self, names: Collection[str]) -> int:
        """Request what the broker knows of topics; returns the error code of the first one."""
        body = _list(*map(_text, names)) + b"\0"
        answer = self._call(_METADATA, 4, body)
        # throttle time, brokers (id, host, port, no rack), cluster's id, controller, topics
        at = 4 + 4
        for _ in range(struct.unpack_from(">i", answer, 4)[0]):
            at += 4
            at += 2 + struct.unpack_from(">h", answer, at)[0] + 4
            at += 2 + max(0, struct.unpack_from(">h", answer, at)[0])
        at += 2 + max(0, struct.unpack_from(">h", answer, at)[0]) + 4 + 4
        return int(struct.unpack_from(">h", answer, at)[0])

    def describe_settings(self, topics: Collection[str]) -> int:
        """Request the settings of topics; returns the error code of the first one."""
        self.request_settings(topics)
        [size] = struct.unpack(">i", self._exactly(4))
        # number of the request, throttle time, how many
        [code] = struct.unpack_from(">h", self._exactly(size), 4 + 4 + 4)
        return int(code)

    def request_settings(self, topics: Collection[str]) -> None:
        """Request the settings of topics, with synonyms; wait for no answer."""
        named = (b"\2" + _text(one) + struct.pack(">i", -1) for one in topics)
        message = struct.pack(">hhi", _DESCRIBE_CONFIGS, 1, 1) + _text("test")
        self.socket.sendall(_bytes(message + _list(*named) + b"\1"))

    def list_offsets(self, topic: str, partitions: Collection[int], time_ms: int) -> list[int]:
        """Look for a time in partitions; returns the error codes."""
        places = (struct.pack(">iq", one, time_ms) for one in partitions)
        answer = self._call(
            _LIST_OFFSETS, 1, struct.pack(">i", -1) + _list(_text(topic) + _list(*places))
        )
        found = struct.iter_unpack(">ihqq", answer[4 + 2 + len(topic) + 4 :])
        return [code for _, code, *_ in found]

    def list_transactions(self, pattern: str) -> int:
        """List those whose transactional ids match; returns the error code."""
        # neither states nor producers
        body = _count(0) * 2 + struct.pack(">q", -1) + _compact(pattern) + b"\0"
        answer = self._call(_LIST_TRANSACTIONS, 2, body, flexible=True)
        [code] = struct.unpack(">h", answer[5:7])
        return int(code)

    def join_by_pattern(self, group: str, pattern: str) -> int:
        """Join a group of consumers of the topics whose names match; returns the error code."""
        return self._join_consumers(group, _count(0) + _compact(pattern))

    def join_by_names(self, group: str, topics: Collection[str]) -> int:
        """The same of the topics that are named."""
        return self._join_consumers(group, _items(map(_compact, topics)) + b"\0")

    def _join_consumers(self, group: str, subscription: bytes) -> int:
        body = _compact(group) + _compact(new_member()) + struct.pack(">i", 0) + b"\0\0"
        body += struct.pack(">i", 300_000) + subscription + b"\0" + _count(0) + b"\0"
        return self._settled(
            lambda: self._call(_CONSUMER_GROUP_HEARTBEAT, 1, body, flexible=True)[5:7]
        )

    def name_internal_topics(self, group: str, source: str, topics: Mapping[str, int]) -> int:
        """Join a group of Streams that repartitions by topics with so many partitions.

        Returns the error code.
        """
        names = _items(map(_compact, topics))
        shapes = _items(
            _compact(name) + struct.pack(">ih", count, 1) + _items([]) + b"\0"
            for name, count in topics.items()
        )
        one = _compact("0") + _items([_compact(source)]) + _items([]) + _items([])
        one += names + shapes + _items([]) + b"\0"
        topology = b"\1" + struct.pack(">i", 1) + _items([one]) + b"\0"
        body = _compact(group) + _compact(new_member()) + struct.pack(">ii", 0, 0) + b"\0\0"
        body += struct.pack(">i", 60_000) + topology + _items([]) * 3 + _compact("process")
        body += b"\xff" + _items([]) + b"\0\0\0\0"
        return self._settled(
            lambda: self._call(_STREAMS_GROUP_HEARTBEAT, 0, body, flexible=True)[5:7]
        )

    def log_in_as(self, name: str) -> None:
        """Begin to log in under a name; wait for no answer of it."""
        self._send(_HANDSHAKE, 1, _text(SCRAM))
        self._answer()
        self._send(_AUTHENTICATE, 1, _bytes(f"n,,n={name},r=abc".encode()))

    def ask_for_transaction(self, transactional_id: str, topic: str, partitions: int) -> None:
        """Add partitions to a transaction, 256 of them again and again; wait for no answer."""
        numbers = (one % 256 for one in range(partitions))
        body = _adding(transactional_id, (1, 0), {topic: numbers})
        self._send(_ADD_PARTITIONS_TO_TXN, 3, body, flexible=True)

    def add_to_transaction(
        self,
        transactional_id: str,
        topic: str,
        partitions: range,
        producer: tuple[int, int] = (1, 0),
    ) -> int:
        """Add partitions, which need not be there; returns the first one's error code.

        Args:
            transactional_id: of the transaction.
            topic: whose partitions.
            partitions: their numbers.
            producer: its id and epoch.
        """
        body = _adding(transactional_id, producer, {topic: partitions})
        answer = self._call(_ADD_PARTITIONS_TO_TXN, 3, body, flexible=True)
        # behind tags, a time, one topic with its name: how many partitions, and the first one
        start = 1 + 4 + 1 + len(_compact(topic)) + len(_count(len(partitions))) + 4
        [code] = struct.unpack_from(">h", answer, start)
        return int(code)

    def add_topics_to_transaction(
        self, transactional_id: str, topics: Iterable[str], producer: tuple[int, int]
    ) -> None:
        """Add partition 0 of each topic, and ignore the error codes."""
        body = _adding(transactional_id, producer, dict.fromkeys(topics, (0,)))
        self._call(_ADD_PARTITIONS_TO_TXN, 3, body, flexible=True)

    def ask_to_commit(self, transactional_id: str, producer: tuple[int, int]) -> None:
        """Commit a transaction, and do not wait for the answer."""
        body = _text(transactional_id) + struct.pack(">qh?", *producer, True)
        self._send(_END_TXN, 1, body)

    def write_markers(self, topic: str, partitions: int) -> int:
        """End a transaction over partitions of a topic that is not there; the first one's code."""
        places = _items(struct.pack(">i", one) for one in range(partitions))
        marker = struct.pack(">qh?", 1, 0, True) + _items([_compact(topic) + places + b"\0"])
        body = _items([marker + struct.pack(">i", 0) + b"\0"]) + b"\0"
        answer = self._call(_WRITE_TXN_MARKERS, 1, body, flexible=True)
        # behind tags: one marker of a producer, one topic, how many partitions, and the first one
        start = 1 + 1 + 8 + 1 + len(_compact(topic)) + len(_count(partitions)) + 4
        [code] = struct.unpack_from(">h", answer, start)
        return int(code)

    def is_settled(self) -> bool:
        """Whether something has come by now: an answer, or the end of the connection."""
        return bool(select.select([self.socket], [], [], 0)[0])

    def fetch_session(self, topic: str, partitions: int) -> int:
        """Ask for a session of fetches; returns its id, 0 for none."""
        place = struct.pack(">qqi", 0, -1, 1)
        places = (struct.pack(">i", one) + place for one in range(partitions))
        shape = struct.pack(">iiiibii", -1, 0, 0, 1 << 20, 0, 0, 0)
        answer = self._call(_FETCH, 7, shape + _list(_text(topic) + _list(*places)) + _list())
        code, session = struct.unpack(">hi", answer[4:10])
        assert code == 0, code
        return int(session)

    def share_fetch(
        self, member: tuple[str, str], epoch: int, topic: bytes, partitions: Collection[int]
    ) -> int:
        """Fetch as a member of a group from more partitions of a topic; returns the error code.

        Args:
            member: the group, and the member's id.
            epoch: 0 for a new session, then counted.
            topic: its id.
            partitions: they need not be there.
        """
        # neither acknowledgements nor tags
        places = b"".join(struct.pack(">i", one) + b"\1\0" for one in partitions)
        named = topic + _count(len(partitions)) + places + b"\0"
        body = b"".join(map(_compact, member))
        body += struct.pack(">iiiiii", epoch, 0, 0, 1 << 20, 500, 500)
        body += _count(1) + named + _count(0) + b"\0"
        answer = self._call(_SHARE_FETCH, 1, body, flexible=True)
        [code] = struct.unpack(">h", answer[5:7])
        return int(code)

    def join_group(self, group: str, metadata: bytes) -> int:
        """Ask for an id of a member of a group of consumers; returns the error code."""
        shape = _text(group) + struct.pack(">ii", 30_000, 30_000) + _text("") + _text("consumer")
        body = shape + _list(_text("range") + _bytes(metadata))
        return self._settled(lambda: self._call(_JOIN_GROUP, 4, body)[4:6])

    def join_owning(self, group: str, topics: Collection[str]) -> int:
        """The same of a member that has no partition of each of these topics."""
        owned = (_text(one) + _list() for one in topics)
        said = struct.pack(">h", 1) + _list() + struct.pack(">i", -1) + _list(*owned)
        return self.join_group(group, said)

    def describe_groups(self, groups: Collection[str]) -> int:
        """Describe groups; returns the error code of the first one."""
        self.ask_for_groups(groups)
        [code] = struct.unpack_from(">h", self._answer(), 8)
        return int(code)

    def ask_for_groups(self, groups: Collection[str]) -> None:
        """Describe groups; do not wait for the answer."""
        self._send(_DESCRIBE_GROUPS, 1, _list(*map(_text, groups)))

    def fetch_offsets(self, groups: Collection[str]) -> int:
        """Ask for all offsets of groups that have none; returns the error code of the first one."""
        self.ask_for_offsets(groups)
        answer = self._answer()
        # behind tags, a time, how many groups, the name and no topics
        start = 1 + 4 + len(_count(len(groups))) + len(_compact(next(iter(groups)))) + 1
        [code] = struct.unpack_from(">h", answer, start)
        return int(code)

    def ask_for_offsets(self, groups: Collection[str]) -> None:
        """Send the same, and do not wait for the answer."""
        body = _items(_compact(one) + b"\0\0" for one in groups) + b"\0\0"
        self._send(_OFFSET_FETCH, 8, body, flexible=True)

    def ask_for_offsets_of(self, group: str) -> None:
        """Ask for all offsets of one group, as before version 8; do not wait for the answer."""
        self._send(_OFFSET_FETCH, 7, _compact(group) + b"\0\0\0", flexible=True)

    def is_answered(self) -> bool:
        """Whether an answer comes, and the connection is not closed instead."""
        try:
            return bool(self._answer())
        except (AssertionError, ConnectionError):
            return False

    def describe_share_offsets(self, groups: Collection[str]) -> int:
        """The same of groups that share; returns the error code of the first one."""
        body = _items(_compact(one) + b"\0\0" for one in groups) + b"\0"
        answer = self._call(_DESCRIBE_SHARE_GROUP_OFFSETS, 0, body, flexible=True)
        start = 1 + 4 + len(_count(len(groups))) + len(_compact(next(iter(groups)))) + 1
        [code] = struct.unpack_from(">h", answer, start)
        return int(code)

    def alter(
        self, settings: Mapping[str, str], topic: str | None = None, operation: int = 0
    ) -> tuple[int, str]:
        """Try settings of a topic, or of all brokers; returns the error code and what is said."""
        how = struct.pack(">b", operation)
        changes = (_text(name) + how + _text(value) for name, value in settings.items())
        thing = struct.pack(">b", 4 if topic is None else 2) + _text(topic or "")
        body = _list(thing + _list(*changes)) + b"\1"
        answer = self._call(_INCREMENTAL_ALTER_CONFIGS, 0, body)
        code, length = struct.unpack_from(">hh", answer, 8)
        return int(code), answer[12 : 12 + max(0, length)].decode()

    def replace_twice(self, topic: str) -> None:
        """Replace a topic's settings by none, twice in a request; wait for no answer."""
        thing = b"\2" + _text(topic) + _list()
        self._send(_ALTER_CONFIGS, 0, _list(thing, thing) + b"\1")

    def produce_nothing(self, topic: str) -> None:
        """Have a partition take null in place of records; wait for no answer."""
        place = struct.pack(">ii", 0, -1)
        body = struct.pack(">hhi", -1, 1, 30_000) + _list(_text(topic) + _list(place))
        self._send(_PRODUCE, 7, body)

    def name_fields(self, count: int) -> None:
        """Request a topic under a header with so many fields more; wait for no answer."""
        header = struct.pack(">hhi", _METADATA, 9, 1) + _text("test") + _count(count - 1)
        fields = b"".join(_count(9 + one) + b"\0" for one in range(count))
        self.socket.sendall(_bytes(header + fields + b"\1\0\0\0\0"))

    def ask_for_versions(self, version: int) -> int:
        """Ask what the broker serves, in a version of the question; returns the error code."""
        [code] = struct.unpack_from(">h", self._call(_API_VERSIONS, version, b"\0\0\0"))
        return int(code)

    def alter_quotas(self, user: str) -> int:
        """Change none of a user's quotas; returns the error code."""
        entry = _list(_text("user") + _text(user)) + _list()
        [code] = struct.unpack_from(
            ">h", self._call(_ALTER_CLIENT_QUOTAS, 0, _list(entry) + b"\0"), 8
        )
        return int(code)

    def describe_logins(self) -> None:
        """Ask for all logins by null, from which Kafka cannot make an answer with an error."""
        self._call(_DESCRIBE_USER_SCRAM_CREDENTIALS, 0, _count(-1) + b"\0", flexible=True)

    def commit(
        self, group: str, topic: str, metadata: str = "", partitions: Iterable[int] = (0,)
    ) -> int:
        """Commit offset 0 for a group without members; returns the last partition's error code."""
        offsets = (struct.pack(">iq", one, 0) + _text(metadata) for one in partitions)
        member = struct.pack(">i", -1) + _text("")
        body = _text(group) + member + _list(_text(topic) + _list(*offsets))
        return self._settled(lambda: self._call(_OFFSET_COMMIT, 5, body)[-2:])

    def find_coordinator(self, group: str) -> int:
        """Find a group's coordinator, which makes the topic of offsets; returns the error code."""
        [code] = struct.unpack(">h", self._call(_FIND_COORDINATOR, 1, _text(group) + b"\0")[4:6])
        return int(code)

    def find_transaction_coordinator(self, transactional_id: str) -> int:
        """Find an id's coordinator, which makes the topic of ids; returns the error code."""
        answer = self._call(_FIND_COORDINATOR, 1, _text(transactional_id) + b"\1")
        [code] = struct.unpack(">h", answer[4:6])
        return int(code)

    def init_producer_id(self, transactional_id: str) -> int:
        """Begin with a transactional id; returns the error code."""
        body = _text(transactional_id) + struct.pack(">i", 60_000)
        return self._settled(lambda: self._call(_INIT_PRODUCER_ID, 1, body)[4:6])

    def producer_of(self, transactional_id: str) -> tuple[int, int]:
        """Begin with a transactional id that is known; returns its producer's id and epoch."""
        body = _text(transactional_id) + struct.pack(">i", 60_000)
        found = struct.unpack(">ihqh", self._call(_INIT_PRODUCER_ID, 1, body)[:16])
        _, code, producer, epoch = found
        assert code == 0, code
        return int(producer), int(epoch)

    def join_share_group(self, group: str, topic: str, member: str = "") -> int:
        """Join a share group as a new member; returns the error code."""
        body = _compact(group) + _compact(member or new_member()) + struct.pack(">i", 0) + b"\0"
        body += b"\2" + _compact(topic) + b"\0"
        # a byte of tags, and the time to wait
        return self._settled(
            lambda: self._call(_SHARE_GROUP_HEARTBEAT, 1, body, flexible=True)[5:7]
        )

    def push_telemetry(self, codec: int, data: bytes) -> int:
        """Push metrics as a new client that ends; returns the error code."""
        answer = self._call(_TELEMETRY_SUBSCRIPTIONS, 0, bytes(16) + b"\0", flexible=True)
        # tags, the time to wait, and the error code come first
        instance, subscription = answer[7:23], answer[23:27]
        body = instance + subscription + struct.pack(">?b", True, codec)
        body += bytes([len(data) + 1]) + data + b"\0"
        [code] = struct.unpack(">h", self._call(_PUSH_TELEMETRY, 0, body, flexible=True)[5:7])
        return int(code)

    def create_topic(self, topic: str, partitions: int) -> int:
        """Create a topic by an old version of the request; returns the error code.

        Kafka applies the quota of partitions to version 6 and later only.
        """
        self.ask_for_topics([topic], partitions)
        answer = self._answer()
        place = 4 + 4 + 2 + len(topic)
        [code] = struct.unpack(">h", answer[place : place + 2])
        return int(code)

    def ask_for_topics(self, topics: Iterable[str], partitions: int = 1) -> None:
        """Create topics by the same; do not wait for the answer."""
        shape = struct.pack(">ih", partitions, 1) + _list() + _list()
        body = _list(*(_text(one) + shape for one in topics)) + struct.pack(">i?", 30_000, False)
        self._send(_CREATE_TOPICS, 2, body)

    def create_partitions(self, topics: Mapping[str, int]) -> dict[str, int]:
        """Widen topics to so many partitions; topic -> error code."""
        named = (_text(one) + struct.pack(">ii", count, -1) for one, count in topics.items())
        body = _list(*named) + struct.pack(">i?", 30_000, False)
        answer, found = self._call(_CREATE_PARTITIONS, 0, body), dict[str, int]()
        at = 4 + 4
        for _ in topics:
            name, at = _read_text(answer, at)
            [found[name]] = struct.unpack_from(">h", answer, at)
            _, at = _read_text(answer, at + 2)
        return found

    def _settled(self, ask: Callable[[], bytes]) -> int:
        """The error code of a coordinator, once it has loaded what it keeps."""
        deadline = time.monotonic() + _LOADED_S
        while True:
            [code] = struct.unpack(">h", ask())
            if code not in _LOADING or time.monotonic() > deadline:
                return int(code)
            # for a broker that takes up a partition
            time.sleep(0.05)

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def _authenticate(self, user: str, password: str) -> None:
        self._call(_HANDSHAKE, 1, _text(SCRAM))
        mine = base64.b64encode(os.urandom(18)).decode()
        first = f"n={user},r={mine}"
        server = self._token(f"n,,{first}")
        parts = dict(part.split("=", 1) for part in server.split(","))
        salt, rounds = base64.b64decode(parts["s"]), int(parts["i"])
        salted = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, rounds)
        key = hmac.new(salted, b"Client Key", "sha512").digest()
        last = f"c=biws,r={parts['r']}"
        signed = f"{first},{server},{last}".encode()
        signature = hmac.new(hashlib.sha512(key).digest(), signed, "sha512").digest()
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        self._token(f"{last},p={base64.b64encode(proof).decode()}")

    def _token(self, text: str) -> str:
        answer = self._call(_AUTHENTICATE, 1, _bytes(text.encode()))
        code, length = struct.unpack(">hh", answer[:4])
        assert code == 0, answer
        start = 4 + max(length, 0)
        [size] = struct.unpack(">i", answer[start : start + 4])
        return answer[start + 4 : start + 4 + size].decode()

    def _call(self, api: int, version: int, body: bytes, *, flexible: bool = False) -> bytes:
        self._send(api, version, body, flexible=flexible)
        return self._answer()

    def _send(self, api: int, version: int, body: bytes, *, flexible: bool = False) -> None:
        tags = b"\0" if flexible else b""
        message = struct.pack(">hhi", api, version, 1) + _text("test") + tags + body
        self.socket.sendall(_bytes(message))

    def _answer(self) -> bytes:
        [size] = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)[4:]

    def _exactly(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            part = self.socket.recv(size - len(found))
            assert part, "the broker closed the connection"
            found += part
        return bytes(found)


def new_member() -> str:
    """An id for a member of a group, as clients make them."""
    return base64.urlsafe_b64encode(os.urandom(16)).decode()


_NO_TRANSACTION = struct.pack(">h", -1)


def _appending(
    topic: str, partitions: Mapping[int, bytes], transaction: bytes = _NO_TRANSACTION
) -> bytes:
    batches = (struct.pack(">i", one) + _bytes(data) for one, data in partitions.items())
    return transaction + struct.pack(">hi", -1, 30_000) + _list(_text(topic) + _list(*batches))


def _adding(
    transactional_id: str, producer: tuple[int, int], topics: Mapping[str, Iterable[int]]
) -> bytes:
    """What adds partitions of topics to a transaction."""
    added = (
        _compact(topic) + _items(struct.pack(">i", one) for one in partitions) + b"\0"
        for topic, partitions in topics.items()
    )
    return _compact(transactional_id) + struct.pack(">qh", *producer) + _items(added) + b"\0"


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value.encode())) + value.encode()


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    """A text, empty for null, and where it ends."""
    length = max(0, struct.unpack_from(">h", data, at)[0])
    return data[at + 2 : at + 2 + length].decode(), at + 2 + length


def _compact(value: str) -> bytes:
    encoded = value.encode()
    return _count(len(encoded)) + encoded


def _count(value: int) -> bytes:
    """How long something is, in the compact form; 0 is null."""
    length, found = value + 1, bytearray()
    while length > 0x7F:
        found.append((length & 0x7F) | 0x80)
        length >>= 7
    return bytes([*found, length])


def _items(items: Iterable[bytes]) -> bytes:
    """A list in the compact form."""
    found = list(items)
    return _count(len(found)) + b"".join(found)


def _bytes(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def _list(*items: bytes) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)
