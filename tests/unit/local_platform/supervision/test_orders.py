"""Signals of the supervisor: none is lost, whenever it arrives."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from local_platform.supervision.supervisor import Orders

# A signal that comes while the first thread waits for the interpreter, which others keep busy.
_ROUNDS = """
import os, random, signal, sys, threading, time
from local_platform.supervision.supervisor import Orders

def busy():
    while True:
        sum(range(100))

def child(said):
    orders = Orders([signal.SIGTERM])
    for _ in range(2):
        threading.Thread(target=busy, daemon=True).start()
    os.write(said, b"r")
    orders.next(time.monotonic() + 600)
    os._exit(0)

def ended(pid, deadline):
    while time.monotonic() < deadline:
        if os.waitpid(pid, os.WNOHANG) != (0, 0):
            return True
        time.sleep(0.001)
    return False

lost = 0
for _ in range(150):
    heard, said = os.pipe()
    pid = os.fork()
    if not pid:
        child(said)
    os.read(heard, 1)
    time.sleep(random.random() * 0.02)
    os.kill(pid, signal.SIGTERM)
    if not ended(pid, time.monotonic() + 10):
        lost += 1
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    os.close(heard)
    os.close(said)
print(lost)
"""


@pytest.fixture
def orders() -> Iterator[Orders]:
    before = signal.getsignal(signal.SIGHUP), signal.getsignal(signal.SIGUSR1)
    yield Orders([signal.SIGHUP, signal.SIGUSR1])
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGHUP, before[0])
    signal.signal(signal.SIGUSR1, before[1])


def test_orders_come_in_the_order_of_the_signals(orders: Orders) -> None:
    os.kill(os.getpid(), signal.SIGUSR1)
    os.kill(os.getpid(), signal.SIGHUP)
    assert orders.next(time.monotonic() + 10) == signal.SIGUSR1
    assert orders.next(time.monotonic() + 10) == signal.SIGHUP


def test_without_a_signal_the_deadline_ends_the_wait(orders: Orders) -> None:
    assert orders.next(time.monotonic() - 1) is None


def test_more_signals_than_the_socket_holds_do_no_harm(orders: Orders) -> None:
    size = orders._written.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    for _ in range(min(size, 20_000)):
        signal.raise_signal(signal.SIGHUP)
    assert orders.next(time.monotonic() + 10) == signal.SIGHUP


def test_no_signal_is_lost_where_it_arrives_just_before_the_wait() -> None:
    argv = [sys.executable, "-c", _ROUNDS]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=300)
    assert done.stdout == "0\n"
