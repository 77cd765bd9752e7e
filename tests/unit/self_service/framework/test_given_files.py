"""Files that are given to a command: bounded before they are parsed."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from mesh_events.errors import InvalidValueError
from mesh_events.schema.definition import Kind
from self_service.cli.connect.config import read
from self_service.cli.framework.given_files import MOST_BYTES, read_text
from self_service.cli.product.promises import read_promise
from self_service.cli.schema.subjects import read_schema
from self_service.cli.streaming.app import Text

READERS: dict[str, Callable[[Path], object]] = {
    "product": read_promise,
    "connector": read,
    "schema": lambda path: read_schema(path, Kind.AVRO),
    "statement": lambda path: Text(file=path).text(),
}


@pytest.mark.parametrize("reads", READERS.values(), ids=READERS.keys())
def test_a_file_that_is_too_large_is_refused_with_its_size(
    reads: Callable[[Path], object], tmp_path: Path
) -> None:
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * (MOST_BYTES + 1))
    with pytest.raises(InvalidValueError) as refused:
        reads(large)
    has = f"has {MOST_BYTES + 1} bytes: the limit is {MOST_BYTES}"
    assert str(refused.value) == f"{large} {has}"


def test_a_device_without_an_end_is_refused() -> None:
    with pytest.raises(InvalidValueError, match=f"/dev/zero has more than {MOST_BYTES} bytes"):
        read_text(Path("/dev/zero"))


def test_of_a_pipe_no_more_is_read_than_shows_that_it_is_too_large(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    broken = threading.Event()

    def write() -> None:
        try:
            with pipe.open("wb", buffering=0) as opened:
                while True:
                    opened.write(b"#" * 4096)
        except BrokenPipeError:
            broken.set()

    writing = threading.Thread(target=write, daemon=True)
    writing.start()
    with pytest.raises(InvalidValueError, match=f"has more than {MOST_BYTES} bytes"):
        read_text(pipe)
    writing.join(60)
    assert broken.is_set()


def test_a_file_of_the_bound_is_read_with_newlines_as_python_has_them(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"a\r\nb\rc\n" + b"x" * (MOST_BYTES - 7))
    assert read_text(file) == "a\nb\nc\n" + "x" * (MOST_BYTES - 7)
