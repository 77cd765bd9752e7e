"""A lasting Spark Connect session, found again by every later process.

A session lives in the server and holds the queries. Its id follows from a seed and a counter, so
that a restarted worker reattaches; the counter moves on past ids that the server has closed.
"""

import threading
import uuid
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import structlog

from spark_streams.error_names import error_name
from spark_streams.errors import EngineError

USER = "mesh.links"
"""A session belongs to a user; another user's sessions are out of sight."""
CALL_TIMEOUT_S = 20.0
PLAN_TIMEOUT_S = 120.0
"""For a call that lets the server analyse a plan, of up to thousands of columns.

What is given up goes on in the server: asked for again too soon, it would be done twice at once.
"""
_CLOSED = ("INVALID_HANDLE.SESSION_CLOSED", "INVALID_HANDLE.SESSION_NOT_FOUND")
_TRANSPORT = {"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "UNAUTHENTICATED"}
_CHANGED = (
    "INVALID_HANDLE.SESSION_CHANGED",
    # the same, as the client notices it by itself
    "incorrect server side session identifier",
)
_LOADING = threading.Lock()
_SEEDS = uuid.UUID("0c7e51a8-34a5-5f0e-8a76-0b5a1d2a7d11")  # any fixed namespace would do
Answer = TypeVar("Answer")
log = structlog.get_logger(__name__)


class ConnectSession:
    """A session that is made when it is needed and made anew when the server forgot it.

    Args:
        remote: `sc://host:port`.
        token: bearer token of the server; without TLS, Spark sends it to `localhost` only.
        seed: what distinguishes this mesh from others on the same server.
    """

    def __init__(self, remote: str, token: str | None, seed: str) -> None:
        self._remote, self._token, self._seed = remote, token, seed
        self._counter = 0
        self._session: Any = None

    def call(
        self, doing: str, act: Callable[[Any], Answer], timeout_s: float = CALL_TIMEOUT_S
    ) -> Answer:
        """Do something with the session, within `timeout_s`.

        Raises:
            EngineError: `engine_unavailable`; `query_failed` if the server refused it.
        """
        load()
        import grpc
        from pyspark.errors import PySparkException

        for _ in range(16):
            try:
                return bounded(lambda: act(self._open()), timeout_s)
            except TimeoutError as error:
                self.close()
                raise self._unavailable(doing, f"no answer in {timeout_s:g} s") from error
            except (PySparkException, grpc.RpcError) as error:
                self._after(error, doing)
        raise self._unavailable(doing, "it has closed every session it was asked for")

    def close(self) -> None:
        """Leave the server; session and queries live on there."""
        session, self._session = self._session, None
        if session is not None:
            # an open channel can keep Python from ending
            threading.Thread(target=session.client.close, daemon=True).start()

    def _open(self) -> Any:
        if self._session is None:
            from pyspark.logger import PySparkLogger
            from pyspark.sql.connect.client import DefaultChannelBuilder
            from pyspark.sql.connect.client.retries import DefaultPolicy
            from pyspark.sql.connect.session import SparkSession

            # what the server refuses is told by whoever asked, without the JVM's stack
            PySparkLogger.getLogger("SQLQueryContextLogger").setLevel("CRITICAL")
            channel = DefaultChannelBuilder(self._remote)
            channel.set("user_id", USER)
            channel.set("session_id", str(uuid.uuid5(_SEEDS, f"{self._seed}/{self._counter}")))
            if self._token is not None:
                channel.set("token", self._token)
            session = SparkSession.Builder().channelBuilder(channel).create()
            # by default a dead server is called for ten minutes; that it is dead is then an error
            # of ours, and no warning beside it
            warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")
            session.client.set_retry_policies([DefaultPolicy(max_retries=3, max_backoff=500)])
            self._session = session
        return self._session

    def _after(self, error: Exception, doing: str) -> None:
        """Return if it is worth another try with another session, else raise what to tell."""
        text = str(error)
        if any(code in text for code in _CLOSED):
            log.warning("spark_session_closed", counter=self._counter)
            self._counter += 1
            self.close()
            return
        if any(sign in text for sign in _CHANGED):
            # another server answers at the same address: no session of ours was closed there
            log.warning("spark_server_changed", remote=self._remote)
            self._counter = 0
            self.close()
            return
        status = _status(error)
        if status in _TRANSPORT:
            self.close()
            raise self._unavailable(doing, status) from error
        raise EngineError("query_failed", f"{doing}: {error_name(text)}", text) from error

    def _unavailable(self, doing: str, why: str) -> EngineError:
        return EngineError(
            "engine_unavailable",
            f"{doing}: the Spark Connect server at {self._remote} does not answer ({why}); "
            "see `sdm status`",
        )


def load() -> None:
    """Import the client library; all that uses it comes by here first.

    Its modules import each other in circles: of two threads that begin at different ones, Python
    ends one with a deadlock error.
    """
    with _LOADING:
        import pyspark.sql.connect.avro.functions
        import pyspark.sql.connect.functions
        import pyspark.sql.connect.session
        import pyspark.sql.connect.streaming.readwriter  # noqa: F401


def bounded(act: Callable[[], Answer], seconds: float) -> Answer:
    """Run `act` in a thread; raises TimeoutError when it takes longer, and leaves it behind.

    The client library has no deadline of its own for a server that is frozen.
    """
    outcome: list[Answer] = []
    fault: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(act())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            fault.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError
    if fault:
        raise fault[0]
    return outcome[0]


def first_line(text: str) -> str:
    """A long error's first sentence: the lines below it hold plans, options and stack traces."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return lines[0][:300] if lines else "no reason given"


def _status(error: Exception) -> str:
    """The name of gRPC's status; what a server answers itself mostly comes as INTERNAL."""
    status = getattr(error, "getGrpcStatusCode", None) or getattr(error, "code", None)
    return str(status().name) if callable(status) else "UNKNOWN"
