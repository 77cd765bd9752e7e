"""Ports that are free, and the sentence about one that is not."""

import os
import socket
from collections.abc import Iterator

import pytest

from local_platform.errors import PortInUseError
from local_platform.ports import answers, is_free, require_free


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield int(server.getsockname()[1])


def test_a_taken_port_is_told_with_its_service_its_holder_and_the_way_out(listening: int) -> None:
    with pytest.raises(PortInUseError) as caught:
        require_free({"kafka-east": listening})

    text = str(caught.value)
    assert text.startswith(f"port {listening} (kafka-east) is in use by ")
    assert f"(pid {os.getpid()})" in text
    assert text.endswith("stop it or set SDM_PORT_BASE")


def test_a_listening_port_answers_and_is_not_free(listening: int) -> None:
    assert answers(listening)
    assert not is_free(listening)


def test_a_port_is_free_again_once_closed() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        number = int(server.getsockname()[1])

    assert is_free(number)
    assert not answers(number)
