"""Start, stop and look at the local platform: what `sdm up`, `down` and `status` call."""

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime
from typing import Any

from local_platform.domain_servers import CONNECT, SPARK, Kind, remember
from local_platform.endpoints import Endpoints
from local_platform.errors import (
    NotReadyError,
    ServiceFailedError,
    UnknownServiceError,
    UnusableSettingError,
)
from local_platform.files import last_lines, sync
from local_platform.jars.fetch import Fetcher
from local_platform.jars.plugins import connect_plugins
from local_platform.jars.registry_folder import registry_folder
from local_platform.jars.scala_jars import compile_transformations, transformations_jar
from local_platform.ports import HOST
from local_platform.security import accounts, certificates
from local_platform.security.transport import Transport, record, recorded, require_same
from local_platform.services import catalogue, chosen, wanted_generators
from local_platform.services.base import Service
from local_platform.services.connect import Connect
from local_platform.services.domain_spark import DomainSpark
from local_platform.services.mesh import readiness
from local_platform.settings import PlatformSettings
from local_platform.site import Site
from local_platform.supervision.launch import extend, launch, one_at_a_time, starting_or_living
from local_platform.supervision.launch import wanted as wanted_now
from local_platform.supervision.orphans import living, stop_living
from local_platform.supervision.process import Identity, rss, stop_group
from local_platform.supervision.state import PlatformState, Progress, ServiceStatus, State

Report = Callable[[Progress], None]

# Connect may take 15 s, the others less; then the supervisor has killed what did not stop.
_STOP_TIMEOUT_S = 60.0
_POLL_S = 0.05


class LocalPlatform:
    """The platform at one home.

    services: names to run, all where None (see `services.catalogue`)
    """

    def __init__(self, settings: PlatformSettings, services: Sequence[str] | None = None) -> None:
        self._site = Site.of(settings)
        self._layout = self._site.layout
        self._services = chosen(self._every, services)
        self._is_whole = services is None

    @property
    def _every(self) -> tuple[Service, ...]:
        """Every service of the home, by now: others may have added one since this was made."""
        return catalogue(self._site)

    def up(
        self, *, fresh: bool = False, report: Report | None = None, timeout_s: float = 300
    ) -> Endpoints:
        """Start what does not run and return where it answers; nothing to do is no error.

        Args:
            fresh: stop, and remove all data and secrets of this home first. A removal that was
                cut off is finished by the next call, fresh or not.
            report: called with each step, from this thread or a fetching one.
            timeout_s: for the services to become ready, seconds; fetching is not counted.

        Raises:
            PlatformError: its text names the thing and the next step. Where no mesh ran
                before, none is left running; services added to a running one are left as
                they are.
        """
        with one_at_a_time(self._site):
            # a new log under the old root's key would count the old log's intents again
            if fresh or self._layout.emptying.exists():
                self._empty()
            self._up(report or _silent, timeout_s)
        return Endpoints.load(self._layout.home)

    def _up(self, report: Report, timeout_s: float) -> None:
        if self._supervisor() is not None:
            require_same(self._layout, self._site.settings.tls)
            self._require_registry()
        if self._all_ready():
            report(Progress("running", services=tuple(self.status())))
            return
        self.fetch(report)
        supervisor = self._supervisor()
        if supervisor is not None:
            asked = self._extend(supervisor)
            if asked is not None:
                self._follow(report, timeout_s, asked)
            return
        self.down()  # what an earlier supervisor left
        record(self._layout, self._site.transport)
        if self._site.transport is not Transport.OFF:
            certificates.ensure(self._layout)
        try:
            # nobody waits for a generator, whose topic may be gone
            self._follow(
                report, timeout_s, launch(self._site, [*self._services, *self._generators()])
            )
        except BaseException:
            # also on Ctrl-C: better nothing than half a mesh
            self.down()
            raise

    def domain_server(
        self,
        domain: str,
        timeout_s: float = 240,
        announce: Callable[[str, str], None] = lambda *_: None,
    ) -> tuple[str, str]:
        """Start a domain's own Spark Connect server unless it runs.

        Servers of several domains start side by side.

        Args:
            domain: whose.
            timeout_s: for it to become ready, seconds.
            announce: called with what is returned, before the server is waited for.

        Returns:
            Where it answers, and a reference to the token of who may use it.

        Raises:
            PlatformError: as `up`; also if no mesh runs here.
        """
        wait = self._ask_for(SPARK, domain)
        server = DomainSpark(self._site, domain)
        # the mesh may run at another port base than this command was told
        port = self._port_of(server.name)
        remote = server.remote if port is None else f"sc://localhost:{port}"
        announce(remote, server.token_reference())
        wait(timeout_s)
        return remote, server.token_reference()

    def connect_worker(
        self,
        domain: str,
        timeout_s: float = 240,
        announce: Callable[[str, str, str], None] = lambda *_: None,
    ) -> tuple[str, str, str]:
        """Start a domain's own Kafka Connect worker unless it runs; see `domain_server`.

        Returns:
            Where it answers, who may use it, and a reference to the password of that.
        """
        wait = self._ask_for(CONNECT, domain)
        worker = Connect(self._site, domain)
        port = self._port_of(worker.name)
        url = worker.url if port is None else f"http://{HOST}:{port}"
        announce(url, worker.user, worker.password_reference())
        wait(timeout_s)
        return url, worker.user, worker.password_reference()

    def _ask_for(self, kind: Kind, domain: str) -> Callable[[float], None]:
        """Let the mesh keep a domain's server; what waits for it, so many seconds."""
        name = f"{kind.prefix}{domain}"
        with one_at_a_time(self._site):
            supervisor = self._supervisor()
            if supervisor is None:
                raise ServiceFailedError(f"no mesh runs at {self._layout.home}: run `sdm up`")
            status = self.status()
            given_up = {one.name for one in status if one.state == State.FAILED}
            running = {*wanted_now(self._site), *(one.name for one in status)} - given_up
            if kind is CONNECT:
                self._require_memory(domain, running - {name})
            remember(self._layout, domain, kind, running)
            self._layout.asked(name).touch(mode=0o600)
            asking = LocalPlatform(self._site.settings, [name])
            asked = asking._extend(supervisor)

        def wait(timeout_s: float) -> None:
            if asked is not None:
                asking._follow(_silent, timeout_s, asked)

        return wait

    def _require_memory(self, domain: str, others: AbstractSet[str]) -> None:
        most = self._site.settings.connect_workers
        if sum(one.startswith(CONNECT.prefix) for one in others) >= most:
            raise ServiceFailedError(
                f"{most} domains have a {CONNECT.what} now, which is what the memory has room for "
                f"(SDM_CONNECT_WORKERS): {domain} gets one when one of them has no connector to run"
            )

    def _port_of(self, name: str) -> int | None:
        return next((one.port for one in self.status() if one.name == name), None)

    def fetch(self, report: Report | None = None, *, verify: bool = False) -> None:
        """Fetch and unpack what servers run from; the next call finds nothing to do.

        Args:
            report: called with stage "fetch" and the bytes done and in all.
            verify: hash every file again instead of trusting the record.

        Raises:
            FetchFailedError: resumed by the next call.
        """
        say = report or _silent
        fetcher = Fetcher(self._site.jars, self._site.settings.maven_url)
        fetcher.fetch(lambda done, total: say(Progress("fetch", done, total)), verify=verify)
        registry_folder(self._site.jars, self._site.cache)
        connect_plugins(self._site.jars, self._site.cache)
        kafka = self._site.jars.class_path("kafka")
        # at the first start of a worker somebody would wait for it
        compile_transformations(transformations_jar(self._site.cache, kafka), kafka)

    def down(self) -> list[str]:
        """Stop all services in order and keep their data; return the names that ran."""
        state = starting_or_living(self._site)
        running = [name for name, _ in living(self._layout.home, state)]
        if state is not None and state.supervisor.alive:
            stop_group(state.supervisor, signal.SIGTERM, _STOP_TIMEOUT_S)
        stop_living(self._layout.home, PlatformState.load(self._layout.state), self._every)
        self._layout.endpoints.unlink(missing_ok=True)
        return running

    def status(self, *, memory: bool = False) -> list[ServiceStatus]:
        """Return every service as it is now, in start order; [] where none ever ran.

        Args:
            memory: measure how much each uses, which takes some milliseconds for each.
        """
        state = PlatformState.load(self._layout.state)
        if state is None:
            return []
        supervised = state.supervisor.alive
        found = [_as_is(status, supervised=supervised) for status in state.services]
        if not memory:
            return found
        return [one.model_copy(update={"rss_bytes": rss(one.identity)}) for one in found]

    def readiness(self) -> dict[str, Any]:
        """What this home's worker tells of itself; {} where none runs, or none answers."""
        worker = next((one for one in self.status() if one.name == "governor"), None)
        # another server may have taken the port of one that is gone
        if worker is None or worker.identity is None or not worker.identity.alive:
            return {}
        try:
            return readiness(f"{HOST}:{worker.port}")
        except NotReadyError:
            return {}

    @property
    def transport(self) -> Transport:
        """How the brokers of this home are reached, by its record."""
        return recorded(self._layout)

    @property
    def separates_domains(self) -> bool:
        """Whether each domain's Spark server runs as an account of its own, as by root's start."""
        home = self._layout.home
        return accounts.runs_as_root() if not home.exists() else home.stat().st_uid == 0

    def certified_until(self) -> datetime | None:
        """When the first certificate of the brokers' TLS ends; None without TLS."""
        return None if self.transport is Transport.OFF else certificates.first_end(self._layout)

    def protocols(self) -> dict[str, str | None]:
        """Service -> what its port speaks; None where it has no port."""
        site = replace(self._site, transport=self.transport)
        return {service.name: service.protocol for service in catalogue(site)}

    def kill(self, service: str, sign: signal.Signals) -> ServiceStatus:
        """Send a signal to a service's process; return its status before that."""
        status = self._status_of(service)
        if status.identity is None or not status.identity.alive:
            raise ServiceFailedError(f"{service} has no process now ({status.state}): `sdm status`")
        os.kill(status.identity.pid, sign)
        return status

    def restart(self, service: str, timeout_s: float = 60) -> ServiceStatus:
        """Stop a service cleanly, wait until it is ready again, and return its status."""
        before = self._status_of(service)
        description = chosen(self._every, [service])[0]
        if before.identity is not None:
            stop_group(before.identity, description.stop_signal, description.stop_timeout)
        return self.wait_ready(service, after=before, timeout_s=timeout_s)

    def wait_ready(
        self, service: str, *, after: ServiceStatus | None = None, timeout_s: float = 60
    ) -> ServiceStatus:
        """Wait until a service is ready, in another process than `after` had.

        Raises:
            ServiceFailedError: not within `timeout_s` seconds, or given up.
        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            status = self._status_of(service)
            if status.state == State.FAILED:
                break
            new = after is None or (status.pid, status.started) != (after.pid, after.started)
            if status.state == State.READY and new:
                return status
            time.sleep(_POLL_S)
        raise ServiceFailedError(self._explain(self._status_of(service), timeout_s))

    def _require_registry(self) -> None:
        """Refuse to add a registry to a cluster that is registered without."""
        if self._site.settings.west_registry and not self._layout.west_registry.is_dir():
            raise UnusableSettingError(
                f"the mesh at {self._layout.home} runs without a registry of the cluster west: "
                "stop it with `sdm down`, then start it so"
            )

    def _generators(self) -> list[Service]:
        """The generators that run whenever the whole mesh does."""
        return wanted_generators(self._site) if self._is_whole else []

    def _supervisor(self) -> Identity | None:
        """Return the living supervisor of this home, None where there is none."""
        state = PlatformState.load(self._layout.state)
        if state is None or not state.supervisor.alive or not self._layout.endpoints.exists():
            return None
        return state.supervisor

    def _all_ready(self) -> bool:
        states = {one.name: one.state for one in self.status()}
        ready = all(states.get(service.name) == State.READY for service in self._services)
        return ready and self._supervisor() is not None and self._are_wanted()

    def _are_wanted(self) -> bool:
        """Whether the supervisor is to keep all of these: it may be about to stop one."""
        return {service.name for service in self._services} <= set(wanted_now(self._site))

    def _extend(self, supervisor: Identity) -> float | None:
        """Let a living supervisor keep these services as well; when, None if all are ready."""
        if self._all_ready():
            return None
        return extend(self._site, supervisor, self.status(), self._every, self._services)

    def _follow(self, report: Report, timeout_s: float, asked: float) -> None:
        """Report the services' states until all are ready.

        asked: a failure before this time (seconds since the epoch) is an old one
        """
        wanted = {service.name for service in self._services}
        seen: tuple[ServiceStatus, ...] = ()
        for state in self._states(timeout_s):
            services = tuple(one for one in state.services if one.name in wanted)
            ready = sum(one.state == State.READY for one in services)
            if services != seen:
                report(Progress("start", ready, len(wanted), services))
                seen = services
            if ready == len(wanted):
                return
            self._require_wanted(wanted)
            for one in services:
                if one.state == State.FAILED and one.since >= asked:
                    raise ServiceFailedError(self._explain(one))
        late = next((one for one in seen if one.state != State.READY), None)
        if late is None:
            log, living = self._layout.log("supervisor"), self._supervisor() is not None
            how = f"took up nothing new within {timeout_s:g} s" if living else "ended"
            raise ServiceFailedError(f"the supervisor {how}; its log {log}:\n{last_lines(log)}")
        raise ServiceFailedError(self._explain(late, timeout_s))

    def _require_wanted(self, names: AbstractSet[str]) -> None:
        """Refuse to wait for what the supervisor is not to keep any more."""
        if gone := sorted(names - set(wanted_now(self._site))):
            raise ServiceFailedError(
                f"{', '.join(gone)} was stopped while it was started: try again"
            )

    def _states(self, timeout_s: float) -> Iterator[PlatformState]:
        """Yield the supervisor's state until the time is over or the supervisor has ended."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            state = PlatformState.load(self._layout.state)
            if state is not None:
                alive = state.supervisor.alive
                services = tuple(_as_is(one, supervised=True) for one in state.services)
                yield state.model_copy(update={"services": services})
                if not alive:
                    return
            time.sleep(_POLL_S)

    def _explain(self, status: ServiceStatus, timeout_s: float | None = None) -> str:
        waited = f" within {timeout_s:g} s" if timeout_s else ""
        why = f": {status.detail}" if status.detail else ""
        return (
            f"{status.name} did not become ready{waited} ({status.state}){why}\n"
            f"{last_lines(status.log)}\n"
            f"Read {status.log}, mend the cause, then run `sdm up` again."
        )

    def _status_of(self, service: str) -> ServiceStatus:
        for status in self.status():
            if status.name == service:
                return status
        raise UnknownServiceError(f"no service {service!r} runs at {self._layout.home}: `sdm up`")

    def _empty(self) -> None:
        self.down()
        self._layout.emptying.touch()
        sync(self._layout.home)
        for path in self._layout.of_one_life:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                with contextlib.suppress(FileNotFoundError):
                    path.unlink()
        sync(self._layout.home)
        self._layout.emptying.unlink()


def _as_is(status: ServiceStatus, *, supervised: bool) -> ServiceStatus:
    """Correct a recorded status by what lives now."""
    identity = status.identity
    is_alive = identity is not None and identity.alive
    change: dict[str, object] = {"pid": None, "started": None}
    if supervised:
        if is_alive or identity is None or status.state not in (State.READY, State.NOT_ANSWERING):
            return status
        # a supervisor whose disk is full cannot write that a process has ended
        change |= {"state": State.RESTARTING, "detail": "its process has ended"}
    elif is_alive:
        change = {"detail": "runs without its supervisor: run `sdm up`"}
    else:
        change["state"] = State.STOPPED
    return status.model_copy(update=change)


def _silent(_: Progress) -> None:
    return
