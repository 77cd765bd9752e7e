"""The process of a generator that the mesh keeps: `python -m self_service.cli.generate.job NAME`.

What it writes is in the mesh's home, see `local_platform.generators`; where it goes on is on the
cluster, see `exact_writer`. It ends with 0 behind its last record, with `STOPPED` on SIGTERM, with
`GIVEN_UP` where another start would fail alike, and with anything else to be started again.
"""

import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

from local_platform import generators
from local_platform.generators import Generator
from local_platform.layout import Layout
from mesh_events.errors import MeshError
from self_service.cli.framework.exits import ExitCode, NotFoundError, code_of, sentence
from self_service.cli.framework.output import note
from self_service.cli.framework.watch import limited
from self_service.cli.generate.exact_writer import ExactWriter
from self_service.cli.mesh.context import Mesh
from self_service.cli.mesh.home import mesh_home

if TYPE_CHECKING:
    from mesh_events.kafka.connection import Connection
    from self_service.cli.generate import generating

_AGAIN = 75
_HANGS_S = 15
"""More than what a commit takes where Kafka says that it cannot be had."""
# a rotated password, a registry that starts: what is to be had a moment later
_LASTING = frozenset({ExitCode.USAGE, ExitCode.REFUSED, ExitCode.NOT_FOUND})


def main() -> int:
    """Write until the last record or a signal; returns the exit code."""
    layout, name, stop = Layout(mesh_home()), sys.argv[1], threading.Event()
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, lambda *_: stop.set())
    try:
        is_done = run(layout, generators.read(layout, name), stop)
    except MeshError as error:
        _keep_error(layout, name, sentence(error).removeprefix("error: "))
        return generators.GIVEN_UP if code_of(error) in _LASTING else _AGAIN
    return 0 if is_done else generators.STOPPED


def _keep_error(layout: Layout, name: str, told: str) -> None:
    note(told)
    before = generators.progress(layout, name)
    failed = before.model_copy(update={"error": told, "failed": time.time()})
    generators.save_progress(layout, name, failed)


def run(layout: Layout, generator: Generator, stop: threading.Event) -> bool:
    """Write until the last record (True) or until `stop` is set (False)."""
    from self_service.cli.generate import generating
    from self_service.cli.mesh.logins import Login
    from self_service.generator.recipe import Recipe

    mesh = Mesh(layout.home)
    connection = Login().connection(mesh, generator.domain, generator.topic)
    require_same_topic(connection, generator)
    encode = generating.encoder(
        mesh, generator.topic, Recipe.model_validate(generator.recipe).made()
    )
    known = generators.progress(layout, generator.name)
    # Kafka forgets the number of a group that was idle for a week; the home does not
    first = generator.first if known.next is None else known.next
    identity = f"{generator.domain}.generator.{generator.name}.{generator.run}"
    writer = ExactWriter(connection, generator.topic, identity, first)
    try:
        return _write(layout, generator, writer, encode, stop)
    finally:
        writer.close()


def require_same_topic(connection: "Connection", generator: Generator) -> None:
    """Raise NotFoundError where the topic is gone, or another one has its name."""
    from self_service.cli.mesh import brokers

    brokers.require_topic(connection, generator.topic)
    found = brokers.admin(connection).topic(generator.topic)
    if found is None or found.id != generator.topic_id:
        raise NotFoundError(
            f"the topic {generator.topic} was deleted and another one was created under its name: "
            f"run `sdm generator delete {generator.name}` and start a new generator"
        )


def _write(
    layout: Layout,
    generator: Generator,
    writer: ExactWriter,
    encode: "generating.Encode",
    stop: threading.Event,
) -> bool:
    from self_service.generator.pace import due

    def hangs() -> None:
        what = f"Kafka has not accepted records of {generator.topic} for {_HANGS_S} s"
        _keep_error(layout, generator.name, what)

    def commit() -> None:
        with limited(_HANGS_S, _AGAIN, hangs):
            writer.commit()
        known = generators.progress(layout, generator.name)
        reached = known.model_copy(update={"next": writer.next})
        generators.save_progress(layout, generator.name, reached)

    def sleep(seconds: float) -> None:
        if writer.is_due(seconds):
            commit()
        stop.wait(seconds)

    begun = writer.next
    left = None if generator.count is None else generator.first + generator.count - begun
    commit()
    (layout.scratch(generators.service_name(generator.name)) / generators.WRITING).touch()
    note(f"writing {generator.topic} from record {begun}")
    for number in due(left, generator.rate, None, sleep=sleep):
        if stop.is_set():
            break
        writer.write(*encode(begun + number))
        if writer.is_due():
            commit()
    commit()
    note(f"stopped before record {writer.next}")
    return generators.progress(layout, generator.name).is_done(generator)


if __name__ == "__main__":
    sys.exit(main())
