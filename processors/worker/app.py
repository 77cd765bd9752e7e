"""The Faust app: which worker owns the log, and the log's records in order.

Faust keeps no tables here. It joins the group, hands over the one partition of the log, restarts
the agent, and serves the readiness page; state is folded from the log itself.
"""

from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import urlsplit

import faust
from faust.types import TP

from mesh_events.kafka.connection import SCRAM, Connection
from mesh_events.topics import GOVERNANCE
from processors.log.consumer import log_consumer
from processors.worker.bounded_web import BoundedWeb
from processors.worker.metrics import CONTENT_TYPE


class Life(Protocol):
    """What the app drives; see `Worker`."""

    async def stand_by(self) -> None:
        """Fold along while the log is another's, until cancelled."""

    async def begin(self) -> None:
        """The log is ours."""

    async def stop(self) -> None:
        """The log is another's."""

    def given_to_another(self) -> None:
        """The group has given the log to another worker."""

    async def read_to(self, offset: int) -> None:
        """The log has come as far as this offset."""

    def describe(self) -> dict[str, Any]:
        """What the readiness page tells."""

    def metrics(self) -> bytes:
        """What the worker measures, in Prometheus' text format."""


def build(
    connection: Connection,
    life: Callable[[], Life],
    url: str,
    data: str,
    *,
    session_timeout_s: float,
    reauth_s: float,
) -> faust.App:
    """The app for one worker process.

    Args:
        connection: login of the governor.
        life: gives the worker; called once the event loop runs.
        url: where readiness and metrics are served, http://host:port.
        data: folder for Faust's own files.
        session_timeout_s: silence after which Kafka gives the log to another worker.
        reauth_s: age of a connection at which brokers ask for the login anew.
    """
    place = urlsplit(url)
    app = faust.App(
        connection.user,
        broker=f"kafka://{connection.bootstrap_servers.replace(',', ';kafka://')}",
        broker_credentials=faust.SASLCredentials(
            username=connection.user,
            password=connection.password,
            ssl_context=connection.tls.context() if connection.tls else None,
            mechanism=SCRAM,
        ),
        broker_session_timeout=session_timeout_s,
        broker_heartbeat_interval=session_timeout_s / 4,
        # the log exists; a worker has no right to make topics
        topic_allow_declare=False,
        topic_disable_leader=True,
        consumer_auto_offset_reset="earliest",
        store="memory://",
        datadir=data,
        web_bind=place.hostname or "127.0.0.1",
        web_host=place.hostname or "127.0.0.1",
        web_port=place.port or 80,
    )
    app.web = BoundedWeb(app)
    app.transport.Consumer = log_consumer(reauth_s)
    log_topic = app.topic(
        GOVERNANCE, value_type=bytes, value_serializer="raw", key_serializer="raw"
    )

    @app.agent(log_topic)
    async def govern(stream: Any) -> None:
        # it wakes the worker, which reads by itself; see `processors.log.consumer`
        async for event in stream.events():
            await life().read_to(event.message.offset)

    @app.task
    async def stand_by() -> None:
        await life().stand_by()

    @app.on_partitions_assigned.connect
    async def assigned(_: Any, assigned: set[TP], **__: Any) -> None:
        if any(partition.topic == GOVERNANCE for partition in assigned):
            # closed at once, opened again when the log is folded: no record may overtake
            await life().stop()
            app.add_future(life().begin())
        else:
            life().given_to_another()

    @app.on_partitions_revoked.connect
    async def revoked(_: Any, revoked: set[TP], **__: Any) -> None:
        if any(partition.topic == GOVERNANCE for partition in revoked):
            await life().stop()

    @app.page("/ready")
    async def ready(web: Any, request: Any) -> Any:
        del request
        found = life().describe()
        return web.json(found, status=200 if found["ready"] else 503)

    @app.page("/metrics")
    async def metrics(web: Any, request: Any) -> Any:
        del request
        return web.bytes(life().metrics(), headers={"Content-Type": CONTENT_TYPE})

    return app


def worker(app: faust.App) -> faust.Worker:
    """What runs the app in a process whose output is its log, and nothing but that."""
    found = faust.Worker(app, loglevel="warn", redirect_stdouts=False, quiet=True)
    # it writes escape sequences for a terminal, also where there is none
    found.spinner = None
    return found
