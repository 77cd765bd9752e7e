"""A generator that the mesh keeps running, from the options of `sdm generate`."""

import time
import uuid
from typing import TYPE_CHECKING, Any

from mesh_events.errors import RefusedError
from self_service.cli.framework.exits import UsageError

if TYPE_CHECKING:
    from local_platform.generators import Generator
    from mesh_events.kafka.connection import Connection
    from self_service.cli.generate.generating import Wanted
    from self_service.cli.mesh.logins import Login
    from self_service.generator.recipe import Recipe


def require_fit(login: "Login", wanted: "Wanted") -> None:
    """Raise UsageError for options that are of the foreground only."""
    if login.cluster or login.application or login.client:
        # only a domain at home may have transactions, without which a record could come twice
        raise UsageError(
            "--background writes with the domain's own login at its home cluster: leave out "
            "--cluster, --application and --client"
        )
    if wanted.seconds is not None:
        raise UsageError("--for is for the foreground: with --background give --count")


def require_new(name: str) -> None:
    """Raise for a name that cannot be or is taken, and where no local mesh runs."""
    from local_platform import generators
    from local_platform.settings import read_settings
    from local_platform.site import Site
    from local_platform.supervision import on_demand

    site = Site.of(read_settings())
    generators.legal(name)
    on_demand.require_mesh(site)
    if generators.exists(site.layout, name):
        raise _taken(name)


def begin(
    connection: "Connection",
    domain: str,
    topic: str,
    name: str,
    wanted: "Wanted",
    recipe: "Recipe",
) -> dict[str, Any]:
    """Let the mesh run it; returns what is shown of it once it writes.

    Raises:
        RefusedError: the name is taken.
        PlatformError: it did not begin to write; nothing is left of it.
    """
    from local_platform.generators import Generator
    from self_service.cli.framework.exits import NotFoundError
    from self_service.cli.mesh import brokers

    found = brokers.admin(connection).topic(topic)
    if found is None:
        raise NotFoundError(f"there is no topic {topic} any more: `sdm topic create {topic}`")
    generator = Generator(
        name=name,
        domain=domain,
        topic=topic,
        topic_id=found.id,
        run=uuid.uuid4().hex[:8],
        kind=recipe.name(),
        recipe=recipe.model_dump(exclude_none=True),
        first=wanted.first,
        count=wanted.count,
        rate=wanted.pace,
        made=time.time(),
    )
    _run(generator)
    return {
        "generator": name,
        "topic": topic,
        "kind": generator.kind,
        "rate": generator.rate,
        "count": generator.count,
        "first": generator.first,
    }


def _run(generator: "Generator") -> None:
    from local_platform import generators
    from local_platform.settings import read_settings
    from local_platform.site import Site
    from local_platform.supervision import on_demand
    from local_platform.supervision.launch import one_at_a_time
    from self_service.cli.generate.generator import keep

    settings = read_settings()
    layout = Site.of(settings).layout
    with one_at_a_time(Site.of(settings)):
        if generators.exists(layout, generator.name):
            raise _taken(generator.name)
        generators.write(layout, generator)
    try:
        keep(settings, generator.name)
    except BaseException:
        on_demand.dismiss(settings, generators.service_name(generator.name))
        generators.forget(layout, generator.name)
        raise


def _taken(name: str) -> RefusedError:
    return RefusedError(
        "generator_exists",
        f"the generator {name} exists already: see `sdm generator describe {name}`, give another "
        "--name, or delete it",
    )
