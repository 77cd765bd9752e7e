"""`sdm up`, `sdm down`, `sdm status`: the local mesh on this machine."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from mesh_events.errors import MeshError, RefusedError
from self_service.cli.framework.exits import ExitCode, UsageError, sentence
from self_service.cli.framework.finding import Finding
from self_service.cli.framework.interruption import became
from self_service.cli.framework.options import Shown, command, noun
from self_service.cli.framework.output import Detail, Listing, note, show
from self_service.cli.framework.times import present, stamp
from self_service.cli.mesh.context import Mesh
from self_service.cli.mesh.failures import COLUMNS as FAILURES
from self_service.cli.mesh.failures import EMERGENCIES, emergencies, failures

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from local_platform import LocalPlatform, Progress, ServiceStatus
    from local_platform.security.transport import Transport
    from projections.image import Image

app = noun("The local mesh.")
_MIB = 1 << 20
_LONGEST_START_S = 180
"""Seconds within which a domain's Spark server becomes ready; one that needs more is hung."""
_CLOCK_FINDING = ("code", "mesh_clock", "broker_clock", "worker_clock", "text", "next")
_FINDING = ("code", "first", "last", *_CLOCK_FINDING[1:])
OWN_ACCOUNTS = "users of their own"
VERIFY = "run `sdm audit verify` to see what was altered; docs/how-to/audit.md shows what to do"
ONE_ACCOUNT = "the user of this home, whose files their Spark servers can read: start as root"


@command(app, "up", "sdm up", "sdm up --fresh --yes", "sdm up --mtls", "SDM_PORT_BASE=23000 sdm up")
def up(
    shown: Shown,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh", help="Start empty: first remove everything except logs and certificates."
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask for confirmation of --fresh.")
    ] = False,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", metavar="SECONDS", min=1, help="Timeout for the mesh to become ready."
        ),
    ] = 300.0,
    tls: Annotated[
        bool | None,
        typer.Option("--tls/--no-tls", help="Run the brokers with TLS; default: as before."),
    ] = None,
    mtls: Annotated[
        bool,
        typer.Option("--mtls", help="Use TLS, and require client certificates of the mesh."),
    ] = False,
    west_registry: Annotated[
        bool,
        typer.Option(
            "--west-registry",
            help="Give the cluster west its own schema registry, permanently.",
        ),
    ] = False,
) -> None:
    """Start the local mesh and wait until it is ready; running services are not restarted.

    The first start downloads the servers' jars, with a progress bar; Ctrl-C leaves nothing running.

    If --fresh is interrupted while it removes files, the next start removes the rest.
    """
    asked: dict[str, Any] = {"tls": _transport(tls=tls, mtls=mtls), "west_registry": west_registry}
    platform = _platform({name: value for name, value in asked.items() if value})
    if fresh and not yes:
        _confirm_loss(Mesh().home)
    became(
        "services started for a new mesh are stopped again; a mesh that ran before keeps running"
    )
    with _Meter() as meter:
        endpoints = platform.up(fresh=fresh, report=meter, timeout_s=timeout)
    fields = {
        "home": str(Mesh().home),
        "tls": platform.transport.value,
        **{
            f"kafka_{name}": cluster.bootstrap_servers
            for name, cluster in endpoints.clusters.items()
        },
        "registry": endpoints.registry_url,
        **{
            f"registry_{name}": cluster.registry_url
            for name, cluster in endpoints.clusters.items()
            if cluster.registry_url is not None
        },
        "postgres": f"{endpoints.postgres_host}:{endpoints.postgres_port}",
    }
    show(Detail(fields), shown.output)
    note(
        "next: `sdm domain register NAME --cluster east --owner OWNER`; `sdm down` stops the mesh "
        "and keeps its data"
    )


@command(app, "down", "sdm down")
def down(shown: Shown) -> None:
    """Stop the local mesh and keep its data for the next `sdm up`."""
    became("some services may still run: `sdm status` shows which, `sdm down` stops them")
    stopped = _platform().down()
    items = [{"service": name, "state": "stopped"} for name in stopped]
    show(Listing(("service", "state"), items, "nothing was running"), shown.output)


@command(app, "status", "sdm status", "sdm status -o json")
def status(shown: Shown) -> None:
    """Show the services, the state of the mesh, and what needs attention, with the next step.

    Attention is needed by freezes and quarantines, findings, and failures.

    The exit code is 6 if the mesh cannot be read or a service is not ready, other than a domain's
    own server that has been starting or stopping for less than three minutes; 3 if the services are
    ready but the current domain may not read the mesh; and 8 if the log is not what was signed.
    """
    platform = _platform()
    protocols = platform.protocols()
    found = platform.status(memory=True)
    worker = platform.readiness()
    services = [_service(one, protocols.get(one.name), worker) for one in found]
    of_log = _told_by(worker)
    mesh, parts, fault = _mesh(of_log)
    if (end := platform.certified_until()) is not None:
        mesh["tls_until"] = stamp(end)
    mesh["domains_run_as"] = OWN_ACCOUNTS if platform.separates_domains else ONE_ACCOUNT
    columns = ("service", "state", "pid", "port", "protocol", "memory_mib", "restarts", "detail")
    listed = Listing(columns, services, "no local services: run `sdm up`")
    parts = {"services": listed, **parts}
    show(Detail(mesh, parts), shown.output)
    if fault is not None:
        note(f"the mesh cannot be read: {sentence(fault)}")
    ready = all(_is_well(one, time.time()) for one in found)
    if ready and isinstance(fault, RefusedError):
        raise typer.Exit(ExitCode.REFUSED)
    if fault is not None or not ready:
        raise typer.Exit(ExitCode.INFRASTRUCTURE)
    if of_log:
        raise typer.Exit(ExitCode.FINDING)


def restart_governor() -> None:
    """Let the local mesh's governor start anew, as with a key that was changed.

    Where no local mesh runs, whoever runs the workers is told to restart them.
    """
    from local_platform.supervision.state import State

    platform = _platform()
    states = {one.name: one.state for one in platform.status()}
    if states.get("governor", State.STOPPED) is not State.STOPPED:
        platform.restart("governor")
    else:
        note("no governor runs here: restart the workers of this mesh with the new key")


def _platform(asked: "Mapping[str, Any] | None" = None) -> "LocalPlatform":
    """The platform of this home; what is not asked is the environment's, or as it was before."""
    from local_platform import LocalPlatform
    from local_platform.settings import read_settings

    return LocalPlatform(read_settings().model_copy(update=dict(asked or {})))


def _transport(*, tls: bool | None, mtls: bool) -> "Transport | None":
    """What the flags ask for; None where they ask for nothing."""
    from local_platform.security.transport import Transport

    if mtls and tls is False:
        raise UsageError("--mtls and --no-tls exclude each other: give one of them")
    if mtls:
        return Transport.MTLS
    return None if tls is None else Transport.TLS if tls else Transport.OFF


def _confirm_loss(home: Path) -> None:
    """Ask before data is removed.

    Raises UsageError where nobody can be asked, RefusedError where the answer is no.
    """
    from local_platform.layout import Layout

    if not any(place.exists() for place in Layout(home).of_one_life):
        return
    what = f"--fresh removes all data, keys and passwords of the mesh at {home}"
    if not sys.stdin.isatty():
        raise UsageError(f"{what}: add --yes to confirm")
    note(f"{what}.")
    if not typer.confirm("Remove them?", err=True):
        raise RefusedError("not_confirmed", f"{home} was not changed")


def _is_well(service: "ServiceStatus", now: float) -> bool:
    """Whether it is ready, or a domain's server on its way up or down; `now` in Unix seconds."""
    from local_platform.domain_servers import KINDS
    from local_platform.supervision.state import State

    of_domains = tuple(kind.prefix for kind in KINDS)
    is_on_its_way = service.state in (State.STARTING, State.STOPPED)
    if is_on_its_way and service.name.startswith(of_domains):
        return now - service.since < _LONGEST_START_S
    return service.state == State.READY


def _service(
    one: "ServiceStatus", protocol: str | None, worker: "Mapping[str, Any]"
) -> dict[str, Any]:
    """A service as it is shown; `worker` is what the governor's tells of itself."""
    from local_platform.services.mesh import stands_by

    is_standby = one.name == "governor" and stands_by(worker)
    return {
        "service": one.name,
        "state": one.state.value,
        "pid": one.pid,
        "port": one.port,
        "protocol": protocol,
        "memory_mib": round(one.rss_bytes / _MIB),
        "restarts": one.restarts,
        "detail": one.detail or ("standby" if is_standby else ""),
        "log": str(one.log),
    }


def _mesh(of_log: list[Finding]) -> tuple[dict[str, Any], dict[str, Listing], MeshError | None]:
    """Where the mesh stands, its findings and what has failed in it, or why that cannot be read.

    `of_log`: what the worker has found of the log; what is found while it is read is added.
    """
    mesh = Mesh()
    try:
        image = mesh.image()
        rows = _rows_behind(mesh, image)
    except MeshError as error:
        of_log += _news(mesh, of_log)
        found = {"findings": _listing(_of_log(of_log))} if of_log else {}
        return {"home": str(mesh.home)}, found, error
    of_log += _news(mesh, of_log)
    fields = {
        "home": str(mesh.home),
        "mesh": image.identity.mesh,
        "offset": image.offset,
        "epoch": image.epoch,
        "undecided": image.intents.open_count,
        "products": len(image.catalog),
        "rows_behind": rows,
    }
    empty = "no link, statement or connector has failed, and no product lacks its topic"
    now = image.ended_by(present(image.time))
    calm = "no domain is frozen or in quarantine"
    parts = {
        "emergencies": Listing(EMERGENCIES, emergencies(image, now), calm),
        "findings": _listing([*_of_log(of_log), *_of_clocks(image)]),
        "failed": Listing(FAILURES, failures(image), empty),
    }
    return fields, parts, None


def _news(mesh: Mesh, known: list[Finding]) -> list[Finding]:
    """What this command has found of the log beside what is known."""
    seen = {(one.code, one.offset, one.last) for one in known}
    return [
        one for one in dict.fromkeys(mesh.found) if (one.code, one.offset, one.last) not in seen
    ]


def _told_by(readiness: "Mapping[str, Any]") -> list[Finding]:
    """What the worker's readiness page says of a log that is not what was signed."""
    match readiness.get("finding"):
        case {"code": str(code), "first": int(first), "last": int(last), "text": str(text)}:
            return [Finding(first, code, text, last)]
    return []


def _of_log(found: "Iterable[Finding]") -> list[dict[str, Any]]:
    return [
        {
            "code": one.code,
            "first": one.offset,
            "last": one.offset if one.last is None else one.last,
            "text": one.text,
            "next": VERIFY,
        }
        for one in found
    ]


def _listing(found: list[dict[str, Any]]) -> Listing:
    """Findings; a table has the columns that one of them needs."""
    columns = [name for name in _FINDING if not found or any(name in one for one in found)]
    return Listing(columns, found, "no findings")


def _of_clocks(image: "Image") -> list[dict[str, Any]]:
    from projections.clocks import clock_finding

    found = clock_finding(image)
    if found is None:
        return []
    times = (stamp(time) for time in (found.mesh, found.broker, found.worker))
    return [dict(zip(_CLOCK_FINDING, (found.code, *times, found.text, found.next), strict=True))]


def _rows_behind(mesh: Mesh, image: Any) -> int:
    """How many rows differ on the topics from what the log says."""
    from self_service.cli.verification.comparison import compare

    return len(compare(mesh, image))


class _Meter:
    """Shows progress on stderr: a bar on a terminal, plain lines elsewhere."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._said: set[str] = set()

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

            columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, progress: "Progress") -> None:
        """Show one step; called from several threads while fetching."""
        if progress.stage == "fetch":
            self._fetched(progress.done, progress.total)
        for one in progress.services:
            self._say(f"{one.name} {one.state.value}")
        if progress.stage == "running":
            self._say("already running: no action needed")

    def _fetched(self, done: int, total: int) -> None:
        if self._bar is None:
            # one line for each eighth, so that a log stays short
            self._say(f"downloaded {done * 8 // max(total, 1)}/8 of {total // _MIB} MiB")
            return
        if self._task is None:
            self._task = self._bar.add_task("fetching", total=total)
        self._bar.update(self._task, completed=done, visible=done < total)

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            if self._bar is None:
                note(text)
            else:
                self._bar.console.print(text, highlight=False)
