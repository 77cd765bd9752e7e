"""`sdm generator`: the generators of made-up records that the local mesh keeps running."""

import time
from typing import Annotated, Any

import typer

from local_platform import LocalPlatform, ServiceStatus, generators
from local_platform.generators import Generator, Progress
from local_platform.layout import Layout
from local_platform.settings import PlatformSettings, read_settings
from local_platform.site import Site
from local_platform.supervision import on_demand
from local_platform.supervision.state import State
from mesh_events.errors import MeshError, RefusedError
from self_service.cli.framework.options import Shown, command, noun
from self_service.cli.framework.output import Detail, Listing, show
from self_service.cli.framework.times import stamp
from self_service.cli.mesh.home import mesh_home

app = noun("Record generators that run in the local mesh.")
COLUMNS = ("generator", "kind", "topic", "rate", "written", "state", "since", "error")


def _names(incomplete: str) -> list[str]:
    try:
        known = generators.known(_layout())
    except MeshError:
        # the shell asks: what is wrong is told once the command runs
        return []
    return [one for one in known if one.startswith(incomplete)]


Name = Annotated[str, typer.Argument(help="Name of the generator.", autocompletion=_names)]


@command(app, "list", "sdm generator list", "sdm generator list -o json")
def list_generators(shown: Shown) -> None:
    """List the generators with their topics, progress and states."""
    statuses = _statuses(read_settings())
    items = [_row(name, statuses.get(name)) for name in generators.known(_layout())]
    empty = "no generators: `sdm generate TOPIC --kind clickstream --background`"
    show(Listing(COLUMNS, items, empty), shown.output)


@command(app, "describe", "sdm generator describe east.clickstream")
def describe(shown: Shown, name: Name) -> None:
    """Describe a generator: its topic and settings, its progress, and its last error."""
    found, reached = generators.read(_layout(), name), generators.progress(_layout(), name)
    told = fields(found, reached, _statuses(read_settings()).get(name))
    more = {
        "domain": found.domain,
        "made": _time(found.made),
        "first": found.first,
        "next": reached.next,
        **found.recipe,
        "start": stamp(found.recipe.get("start")),
        "kind": found.kind,
        "last_error": reached.error,
        "last_failed": _time(reached.failed),
        "log": str(_layout().log(generators.service_name(name))),
    }
    show(Detail({**told, **more}), shown.output)


@command(app, "stop", "sdm generator stop east.clickstream")
def stop(shown: Shown, name: Name) -> None:
    """Stop a generator. `sdm generator start` resumes after its last record."""
    found = generators.read(_layout(), name)
    generators.write(_layout(), found.model_copy(update={"wanted": False}))
    on_demand.dismiss(read_settings(), generators.service_name(name))
    show(Detail(_row(name, None)), shown.output)


@command(app, "start", "sdm generator start east.clickstream")
def start(shown: Shown, name: Name) -> None:
    """Start a stopped or failed generator. It resumes after its last record."""
    found, settings = generators.read(_layout(), name), read_settings()
    if generators.progress(_layout(), name).is_done(found):
        raise RefusedError(
            "generator_done",
            f"{name} has written all of its {found.count} records: delete it, and start another "
            "with `sdm generate --background`",
        )
    on_demand.require_mesh(Site.of(settings))
    generators.write(_layout(), found.model_copy(update={"wanted": True}))
    keep(settings, name)
    show(Detail(_row(name, _statuses(settings).get(name))), shown.output)


@command(app, "delete", "sdm generator delete east.clickstream", alias="drop")
def delete(shown: Shown, name: Name) -> None:
    """Stop and delete a generator; its records stay on the topic."""
    layout = _layout()
    if not generators.exists(layout, generators.legal(name)):
        generators.read(layout, name)  # tells that there is none
    on_demand.dismiss(read_settings(), generators.service_name(name))
    generators.forget(layout, name)
    show(Detail({"generator": name, "deleted": True}), shown.output)


def keep(settings: PlatformSettings, name: str) -> None:
    """Let the mesh run a generator, until it writes.

    Raises:
        RefusedError: it does not begin; in its own words, where it has said why.
        PlatformError: it does not begin, and has not said why.
    """
    asked = time.time()
    try:
        on_demand.keep(settings, generators.service_name(name))
    except MeshError as error:
        reached = generators.progress(Site.of(settings).layout, name)
        if reached.failed is None or reached.failed < asked:
            raise
        raise RefusedError("generator_failed", f"{name}: {reached.error}") from error


def fields(generator: Generator, reached: Progress, status: ServiceStatus | None) -> dict[str, Any]:
    """A generator as lists show it; `status` is None where the mesh does not run it."""
    state = state_of(generator, reached, status)
    ails = status is not None and state in (State.FAILED, State.RESTARTING)
    return {
        "generator": generator.name,
        "kind": generator.kind,
        "topic": generator.topic,
        "rate": generator.rate,
        "count": generator.count,
        "written": reached.written(generator),
        "state": state,
        "wanted": generator.wanted,
        "since": _time(status.since) if status else None,
        "pid": status.pid if status else None,
        "restarts": status.restarts if status else 0,
        "error": _error(reached, status) if ails else "",
    }


def state_of(generator: Generator, reached: Progress, status: ServiceStatus | None) -> str:
    """writing, done, stopped, or the service's own state where it is starting, dying or dead."""
    if reached.is_done(generator):
        return "done"
    if status is None or status.state is State.STOPPED:
        return "stopped"
    return "writing" if status.state is State.READY else status.state.value


def _error(reached: Progress, status: ServiceStatus | None) -> str:
    """Why it is not writing: its own words about this failure, else what was seen of its end."""
    if status is None or (reached.failed is not None and reached.failed >= status.since - 5):
        return reached.error
    return status.detail


def _row(name: str, status: ServiceStatus | None) -> dict[str, Any]:
    try:
        found = generators.read(_layout(), name)
    except MeshError as error:
        return {"generator": name, "state": State.FAILED.value, "error": str(error)}
    return fields(found, generators.progress(_layout(), name), status)


def _statuses(settings: PlatformSettings) -> dict[str, ServiceStatus]:
    """Generator -> how its service is, for those that the mesh runs."""
    return {
        one.name.removeprefix(generators.PREFIX): one
        for one in LocalPlatform(settings).status()
        if one.name.startswith(generators.PREFIX)
    }


def _layout() -> Layout:
    return Layout(mesh_home())


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else stamp(round(seconds * 1000))
