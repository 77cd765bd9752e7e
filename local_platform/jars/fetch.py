"""Fetch the pinned jars: parallel, verified, atomic, resumed after an interruption.

A file in the store is a complete one: bytes land in a `.part` file beside the target, which
takes the target's name only after its SHA-256 is the lock file's. A record of verified
sizes makes the second run a look at their sizes; `verify=True` hashes every file again.
"""

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from local_platform.errors import FetchFailedError, UnreachableFolderError
from local_platform.jars.lock import Jar, JarStore
from mesh_events.files import write_atomically

WORKERS = 16
# small, so that a slow line does not delay the answer to Ctrl-C
_BLOCK = 64 * 1024
_TIMEOUT_S = (10, 20)
_RETRIES = 5
_PASSING_FAULTS = (429, 500, 502, 503, 504)

Bytes = Callable[[int, int], None]
"""Called with (bytes done, bytes in all), from several threads but one at a time."""


def central() -> str:
    """Return the address of Maven Central."""
    from jgo.constants import MAVEN_CENTRAL_URL

    return str(MAVEN_CENTRAL_URL)


class Fetcher:
    """Brings a store up to its lock file.

    base: address of a Maven repository; None means Maven Central
    retries: per file, with growing pauses, when the line or the server has a passing fault
    """

    def __init__(self, store: JarStore, base: str | None = None, retries: int = _RETRIES) -> None:
        self._retries = Retry(total=retries, backoff_factor=0.5, status_forcelist=_PASSING_FAULTS)
        self._store = store
        self._base = (base or central()).rstrip("/")
        self._record = store.folder / "verified.json"
        self._stopped = threading.Event()

    def missing(self, *, verify: bool = False) -> list[Jar]:
        """Return the jars that are absent or not what the lock file says."""
        verified = {} if verify else self._verified()
        return [jar for jar in self._store.jars if not self._is_good(jar, verified)]

    def fetch(self, report: Bytes | None = None, *, verify: bool = False) -> list[Jar]:
        """Fetch what is missing and return it.

        Raises:
            FetchFailedError: names the artifact, the reason and the next step; whatever arrived
                whole before is kept.
        """
        wanted = self.missing(verify=verify)
        if wanted:
            self._fetch_all(sorted(wanted, key=lambda jar: -jar.size), _Counter(wanted, report))
        self._write_record()
        return wanted

    def _fetch_all(self, wanted: list[Jar], counter: "_Counter") -> None:
        with requests.Session() as session, ThreadPoolExecutor(WORKERS) as pool:
            for scheme in ("https://", "http://"):
                session.mount(scheme, HTTPAdapter(pool_maxsize=WORKERS, max_retries=self._retries))
            running = [pool.submit(self._fetch_one, session, jar, counter) for jar in wanted]
            try:
                done, _ = wait(running, return_when=FIRST_EXCEPTION)
                _raise_first(done)
            finally:
                # an interruption must not wait for the queue, nor for a large file's end
                self._stopped.set()
                pool.shutdown(wait=True, cancel_futures=True)
                self._stopped.clear()

    def _fetch_one(self, session: requests.Session, jar: Jar, counter: "_Counter") -> None:
        target = self._store.path(jar)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            raise UnreachableFolderError(
                f"{target.parent} cannot be made ({fault.strerror}): set SDM_CACHE to a folder of "
                "yours"
            ) from fault
        part = target.with_name(f"{target.name}.{os.getpid()}.part")
        try:
            found = self._download(session, jar, part, counter)
            if found != jar.sha256:
                raise FetchFailedError(
                    f"{jar.coordinate}: sha256 is {found}, the lock file says {jar.sha256}; "
                    "nothing was kept. Check the address in SDM_MAVEN_URL, or reinstall"
                )
            part.chmod(0o644)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)

    def _download(
        self, session: requests.Session, jar: Jar, part: Path, counter: "_Counter"
    ) -> str:
        """Write a jar's bytes to `part` and return their SHA-256."""
        digest = hashlib.sha256()
        url = f"{self._base}/{jar.path}"
        try:
            with (
                session.get(url, stream=True, timeout=_TIMEOUT_S) as answer,
                part.open("wb") as file,
            ):
                answer.raise_for_status()
                for block in answer.iter_content(_BLOCK):
                    if self._stopped.is_set():
                        raise FetchFailedError("the fetch was interrupted: run it again to resume")
                    file.write(block)
                    digest.update(block)
                    counter.add(len(block))
        except requests.RequestException as fault:
            raise FetchFailedError(
                f"{jar.coordinate} could not be fetched from {self._base} ({_reason(fault)}): "
                "check the network or SDM_MAVEN_URL and run again; what arrived is kept"
            ) from fault
        return digest.hexdigest()

    def _is_good(self, jar: Jar, verified: dict[str, str]) -> bool:
        path = self._store.path(jar)
        if not path.is_file() or path.stat().st_size != jar.size:
            return False
        return verified.get(jar.path) == jar.sha256 or sha256(path) == jar.sha256

    def _verified(self) -> dict[str, str]:
        """Return path -> SHA-256 of the jars that an earlier run found good."""
        try:
            found = json.loads(self._record.read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _write_record(self) -> None:
        record = {jar.path: jar.sha256 for jar in self._store.jars}
        if record != self._verified():
            write_atomically(self._record, json.dumps(record, indent=0, sort_keys=True))


class _Counter:
    """Adds up the bytes of all threads and reports them one at a time."""

    def __init__(self, wanted: Iterable[Jar], report: Bytes | None) -> None:
        self._total = sum(jar.size for jar in wanted)
        self._done = 0
        self._report = report
        self._guard = threading.Lock()

    def add(self, count: int) -> None:
        with self._guard:
            self._done += count
            if self._report:
                self._report(self._done, self._total)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _raise_first(done: Iterable[Future[None]]) -> None:
    for future in done:
        future.result()


def _reason(fault: requests.RequestException) -> str:
    if fault.response is not None:
        return f"HTTP {fault.response.status_code}"
    return type(fault).__name__
