"""The options of `sdm topic produce` and `consume`: where records come from, which are read."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from mesh_events.errors import InvalidValueError
from mesh_events.schema.definition import Kind
from self_service.cli.framework.exits import UsageError

Schema = Annotated[
    Path | None,
    typer.Option(
        "--schema", help="Schema file (.avsc, .json, .proto) to register as <topic>-value."
    ),
]
SchemaKind = Annotated[
    Kind | None,
    typer.Option(
        "--type", case_sensitive=False, help="Language of a schema file; default: by its extension."
    ),
]


@dataclass(frozen=True, kw_only=True)
class Input:
    """Where records come from, and what their keys are."""

    value: Annotated[
        list[str] | None, typer.Option("--value", help="Line of a record; repeatable.")
    ] = None
    file: Annotated[
        Path | None, typer.Option("--file", help="File of lines, in UTF-8; default: stdin.")
    ] = None
    schema: Schema = None
    kind: SchemaKind = None
    key: Annotated[str | None, typer.Option("--key", help="Key of every record.")] = None
    separator: Annotated[
        str | None, typer.Option("--separator", help="Separator between key and value.")
    ] = None
    key_field: Annotated[
        str | None, typer.Option("--key-field", help="Field of the JSON value that is the key.")
    ] = None
    raw: Annotated[bool, typer.Option("--raw", help="Write text, even if there is a schema.")] = (
        False
    )
    tombstone: Annotated[
        bool, typer.Option("--tombstone", help="Write one null value with --key.")
    ] = False

    def lines(self) -> Iterable[str]:
        """The input's lines, which end with a line feed, whatever else stands in them.

        Raises UsageError for a file that cannot be read, InvalidValueError for a line that is not
        UTF-8.
        """
        if self.value:
            return self.value
        if self.file is None:
            return decoded(sys.stdin.buffer, "stdin")
        return _of_file(self.file)

    def check(self) -> None:
        """Raise UsageError where the options contradict each other."""
        if sum(one is not None for one in (self.key, self.separator, self.key_field)) > 1:
            raise UsageError("give one of --key, --separator and --key-field")
        if self.tombstone and self.key is None:
            raise UsageError("a tombstone deletes a key: give --key")


def decoded(lines: Iterable[bytes], name: str) -> Iterator[str]:
    """Lines as text; raises InvalidValueError that names the one that is not UTF-8."""
    for number, line in enumerate(lines, 1):
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            raise InvalidValueError(
                f"{name}, line {number}: byte {error.start + 1} is not UTF-8"
            ) from error


def _of_file(path: Path) -> Iterator[str]:
    try:
        with path.open("rb") as opened:
            yield from decoded(opened, str(path))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


@dataclass(frozen=True, kw_only=True)
class Range:
    """Which records are read, and when reading stops."""

    start: Annotated[
        str,
        typer.Option(
            "--from", help="beginning, end, an offset, or -N: the last N of each partition."
        ),
    ] = "beginning"
    partition: Annotated[
        int | None,
        typer.Option("--partition", min=0, max=2**31 - 1, help="Read only this partition."),
    ] = None
    most: Annotated[
        int | None, typer.Option("--max", min=1, help="Stop after this number of records.")
    ] = None
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout", metavar="SECONDS", min=0.1, help="Stop after this time in seconds."
        ),
    ] = None
    follow: Annotated[
        bool, typer.Option("--follow", help="Continue at the end, and wait for the topic.")
    ] = False
    headers: Annotated[bool, typer.Option("--headers", help="Also show headers.")] = False
