"""Writes one record whose header has a name that is not UTF-8; prints its offset.

    python -m tests.integration.governance.odd_header SERVERS USER TOPIC [CA CERTIFICATE] < password

Kafka allows it and no Python client offers it: here aiokafka's plain Python encoder is given a
text that encodes itself as it likes.
"""

import asyncio
import os
import sys

os.environ["AIOKAFKA_NO_EXTENSIONS"] = "1"

from pathlib import Path

from aiokafka import AIOKafkaProducer

from mesh_events.kafka.transport import Tls, protocol


class Odd(str):
    """A name with bytes that are no text."""

    __slots__ = ()

    def encode(self, *_: object, **__: object) -> bytes:
        return b"\xff\xfe\xfd"


async def write(password: str, servers: str, user: str, topic: str, *files: str) -> int:
    tls = Tls(*map(Path, files)) if files else None
    producer = AIOKafkaProducer(
        bootstrap_servers=servers,
        security_protocol=protocol(tls),
        ssl_context=tls.context() if tls else None,
        sasl_mechanism="SCRAM-SHA-512",
        sasl_plain_username=user,
        sasl_plain_password=password,
    )
    await producer.start()
    try:
        done = await producer.send_and_wait(
            topic, b"poison", partition=0, headers=[(Odd("odd"), b"x")]
        )
        return int(done.offset)
    finally:
        await producer.stop()


if __name__ == "__main__":
    sys.stdout.write(str(asyncio.run(write(sys.stdin.read().strip(), *sys.argv[1:]))))
