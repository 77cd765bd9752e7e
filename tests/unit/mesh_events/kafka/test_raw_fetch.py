"""Asking a broker that answers by halves: one error, which names it."""

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from struct import pack, unpack
from types import SimpleNamespace
from typing import Any

import pytest

from mesh_events.errors import InfrastructureError
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.raw_fetch import Answer, RawPartition, RawTopics

Reply = Callable[[bytes], bytes | None]
"""A request behind its length -> bytes to send as they are; None ends the connection."""
TIMEOUT_S = 2.0


def framed(request: bytes, body: bytes, *, length: int | None = None, later: int = 0) -> bytes:
    """A response with the request's number, or one behind it."""
    (number,) = unpack(">i", request[4:8])
    whole = pack(">i", number + later) + body
    return pack(">i", len(whole) if length is None else length) + whole


def versions(request: bytes) -> bytes:
    """A broker that knows every version of every kind of request that a client may want."""
    known = b"".join(pack(">hhh", kind, 0, 20) for kind in range(60))
    return framed(request, pack(">hi", 0, 60) + known)


REPLIES: dict[str, Reply] = {
    "ends the connection": lambda _: None,
    "is cut off": lambda request: framed(request, b"\0" * 4, length=4000),
    "is shorter than it says of its parts": lambda request: framed(request, pack(">hi", 0, 900)),
    "is empty": lambda request: framed(request, b""),
    "has a length below zero": lambda request: framed(request, b"", length=-5),
    "has the number of another request": lambda request: framed(request, b"", later=7),
    "is no text": lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "never comes": lambda _: b"",
}


@contextmanager
def broker(reply: Reply) -> Iterator[int]:
    """A port of this machine that answers each request so."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError), connection.makefile("rb") as stream:
            while header := stream.read(4):
                answer = reply(stream.read(*unpack(">i", header)))
                if answer is None:
                    return
                connection.sendall(answer)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


def fault_of(reply: Reply) -> InfrastructureError:
    with broker(reply) as port:
        place = f"127.0.0.1:{port}"
        raw = RawTopics(Connection(place, "somebody", "password"), TIMEOUT_S)
        try:
            with pytest.raises(InfrastructureError) as caught:
                raw.fetch("topic", {0: 7}, 1000)
        finally:
            raw.close()
    assert caught.value.retriable
    assert place in str(caught.value)
    assert "reading topic/0 at 7" in str(caught.value)
    return caught.value


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES.keys())
def test_an_answer_by_halves_is_an_error_that_names_the_broker(reply: Reply) -> None:
    fault_of(reply)


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES.keys())
def test_so_is_one_after_a_good_beginning(reply: Reply) -> None:
    answered: list[bytes] = []

    def first_well(request: bytes) -> bytes | None:
        answered.append(request)
        return versions(request) if len(answered) == 1 else reply(request)

    fault_of(first_well)


INTERRUPTED = """
import threading
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.raw_fetch import RawTopics
def interrupted(real):
    def wait(*given):
        real(*given)
        threading.Thread.start = plain
        raise KeyboardInterrupt
    return wait
plain = threading.Thread.start
threading.Thread.start = interrupted(plain)
raw = None
try:
    raw = RawTopics(Connection("127.0.0.1:1", "somebody", "password"), 1.0)
    raw.fetch("topic", {0: 7}, 1000)
except KeyboardInterrupt as interruption:
    kept = interruption
    if raw is not None and CLOSES:
        raw.close()
"""
"""A Ctrl-C that comes while the first thread starts."""


@pytest.mark.parametrize("closes", [True, False])
def test_a_process_whose_first_thread_was_interrupted_ends_without_a_word(closes: bool) -> None:
    command = [sys.executable, "-c", INTERRUPTED.replace("CLOSES", str(closes))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    # the client says itself whom it does not reach
    said = [line for line in done.stderr.splitlines() if "Unable connect" not in line]
    assert (done.returncode, said) == (0, [])


def test_close_ends_a_request_that_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, cancelled = threading.Event(), threading.Event()

    async def long(*_: object) -> None:
        asked.set()
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 20)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    def interrupted(running: Future[Any], *_: object) -> Any:
        monkeypatch.undo()
        assert asked.wait(60)
        assert not running.done()
        raise KeyboardInterrupt

    raw = RawTopics(Connection("broker:9092", "somebody", "password"))
    monkeypatch.setattr(raw, "_fetch", long)
    monkeypatch.setattr(Future, "result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        raw.fetch("topic", {0: 7}, 1000)
    raw.close()
    assert cancelled.is_set()


class Client:
    """A client that is logged in, at one broker; `topics` are what a fetch is answered with."""

    def __init__(self, topics: Any) -> None:
        self._answers: list[Any] = [[(0, "topic", False, [(0, 0, 1), (0, 3, 1)])], topics]

    def get_random_node(self) -> int:
        return 1

    async def send(self, node: int, request: Any) -> Any:
        assert node == 1
        del request
        await asyncio.sleep(0)
        return SimpleNamespace(topics=self._answers.pop(0))

    async def close(self) -> None:
        return


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Connection]:
    """Has every client's fetches answered with these topics."""

    def given(topics: Any) -> Connection:
        async def connected(self: RawTopics) -> Client:
            self._client = Client(topics)
            return self._client

        monkeypatch.setattr(RawTopics, "_connected", connected)
        return Connection("broker:9092", "somebody", "password")

    return given


GOOD = (0, 0, 9, 9, 0, None, b"data")
"""A partition of an answer: its number, no error, ends, first offset, nothing aborted, batches."""


def test_a_whole_answer_is_taken(answering: Callable[[Any], Connection]) -> None:
    raw = RawPartition(answering([("topic", [GOOD])]), "topic", TIMEOUT_S)
    assert raw.fetch(7, 1000) == Answer(b"data", 9, 9)
    raw.close()


@pytest.mark.parametrize(
    "topics",
    [
        None,
        [],
        [("topic", None)],
        [("topic", [])],
        [("topic", [GOOD[:3]])],
        [("other", [GOOD])],
        [("topic", [(3, *GOOD[1:])])],
        [("topic", [(*GOOD[:-2], 5, b"data")])],
        [("topic", [(0, -9, *GOOD[2:])])],
    ],
)
def test_an_answer_without_what_was_asked_for_is_an_error(
    answering: Callable[[Any], Connection], topics: Any
) -> None:
    """A broker that throttles a login answers with no topics at all."""
    raw = RawPartition(answering(topics), "topic", TIMEOUT_S)
    with pytest.raises(InfrastructureError, match=r"reading topic/0 at 7 at broker:9092 as somebo"):
        raw.fetch(7, 1000)
    raw.close()


def test_of_several_partitions_those_without_an_answer_are_left_out(
    answering: Callable[[Any], Connection],
) -> None:
    raw = RawTopics(answering([("topic", [GOOD, (8, *GOOD[1:])])]), TIMEOUT_S)
    assert raw.fetch("topic", {0: 7, 3: 7}, 1000) == {0: Answer(b"data", 9, 9)}
    raw.close()
