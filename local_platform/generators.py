"""Generators of made-up records that the mesh keeps running: what each writes, how far it is.

A file for each says what it is to write (`Generator`, written by who starts it); another says where
it stands (`Progress`, written by its process). Neither holds a password, and both end with the
mesh's life. What the recipe means is its process's business: see `self_service.cli.generate.job`.
"""

import re
import shutil
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from local_platform.errors import ServiceFailedError, UnknownServiceError
from local_platform.layout import Layout
from mesh_events.errors import InvalidValueError, MeshError
from mesh_events.files import write_atomically

PREFIX = "generator-"
"""A generator is the service `generator-<name>`."""
WRITING = "writing"
"""The file in its scratch folder that tells that it has begun to write."""
STOPPED = 143
"""Exit code of a generator that was asked to stop before its last record."""
GIVEN_UP = 78
"""Exit code of a generator that would fail the same way if it were started again."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Generator(BaseModel):
    """What one generator is to write.

    domain: in whose name and with whose login it writes
    topic_id: of the topic that it began to write; another topic of that name is not its own
    run: eight hex digits that no other generator had, also none of this name
    kind: what its records are, in a word
    recipe: what makes record n, as `self_service.generator.recipe.Recipe` reads it
    first: number of its first record; count: how many it writes, None for no end
    rate: records a second, None for as fast as Kafka takes them
    made: when it was made, seconds since the epoch
    wanted: whether the mesh is to keep it running
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    domain: str
    topic: str
    topic_id: str
    run: str
    kind: str
    recipe: dict[str, Any]
    first: int
    count: int | None
    rate: float | None
    made: float
    wanted: bool = True


class Progress(BaseModel):
    """How far a generator is.

    next: number of the first record that is not on the topic yet; None before the first look
    error: what its process last failed with, "" for nothing
    failed: when that was, seconds since the epoch
    """

    model_config = ConfigDict(frozen=True)

    next: int | None = None
    error: str = ""
    failed: float | None = None

    def written(self, generator: Generator) -> int:
        """How many records stand on the topic."""
        return 0 if self.next is None else self.next - generator.first

    def is_done(self, generator: Generator) -> bool:
        """Whether the last record stands on the topic."""
        return generator.count is not None and self.written(generator) >= generator.count


def service_name(name: str) -> str:
    """The service of a generator, which is also its log file and its data folder."""
    return f"{PREFIX}{name}"


def legal(name: str) -> str:
    """The name, if a generator can have it; raises InvalidValueError."""
    if not _NAME.fullmatch(name):
        raise InvalidValueError(
            f"{name[:120]!r} cannot be a generator: use a-z, A-Z, 0-9, '.', '_' and '-', at most "
            "100, and a letter or digit first"
        )
    return name


def known(layout: Layout) -> list[str]:
    """The names of all generators."""
    return sorted(path.stem for path in layout.generators.glob("*.json"))


def read(layout: Layout, name: str) -> Generator:
    """What a generator is to write.

    Raises:
        InvalidValueError: no generator can have that name.
        UnknownServiceError: there is none of that name.
        ServiceFailedError: its file cannot be read.
    """
    path = _place(layout, legal(name))
    try:
        return Generator.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise UnknownServiceError(
            f"there is no generator {name}: `sdm generator list` shows those that there are"
        ) from None
    except ValidationError as fault:
        raise ServiceFailedError(
            f"{path} is no description of a generator ({fault.error_count()} faults): "
            f"`sdm generator delete {name}`"
        ) from fault


def is_wanted(layout: Layout, name: str) -> bool:
    """Whether the mesh is to keep it running; so it is where its file cannot be read."""
    try:
        return read(layout, name).wanted
    except MeshError:
        return True


def write(layout: Layout, generator: Generator) -> None:
    """Keep what a generator is to write."""
    write_atomically(_place(layout, generator.name), f"{generator.model_dump_json(indent=1)}\n")


def exists(layout: Layout, name: str) -> bool:
    """Whether there is a generator of that name."""
    return _place(layout, name).exists()


def forget(layout: Layout, name: str) -> None:
    """Remove all that is known of a generator; its process has ended before."""
    shutil.rmtree(_progress_place(layout, name).parent, ignore_errors=True)
    _place(layout, name).unlink(missing_ok=True)


def progress(layout: Layout, name: str) -> Progress:
    """How far a generator is; as before its first look where nothing readable tells."""
    try:
        return Progress.model_validate_json(_progress_place(layout, name).read_bytes())
    except (FileNotFoundError, ValidationError):
        return Progress()


def save_progress(layout: Layout, name: str, reached: Progress) -> None:
    """Keep how far a generator is."""
    write_atomically(_progress_place(layout, name), f"{reached.model_dump_json()}\n")


def _place(layout: Layout, name: str) -> Path:
    return layout.generators / f"{name}.json"


def _progress_place(layout: Layout, name: str) -> Path:
    return layout.data / service_name(name) / "progress.json"
