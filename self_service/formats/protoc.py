"""From the text of .proto files to descriptors, by Google's own compiler."""

import base64
import binascii
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from confluent_kafka.schema_registry.confluent import meta_pb2
from confluent_kafka.schema_registry.confluent.type import decimal_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from mesh_events.schema.json_size import require_short
from mesh_events.schema.size import SchemaTooLargeError
from self_service.formats.schema import SchemaError

_TIMEOUT_S = 30
_LONGEST = 1_000
"""Characters of the compiler's errors."""
_BESIDE = re.compile(r": warning: |^WARNING: |^[IW]\d{4} ")
"""Lines of the compiler that tell of no error."""
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]++(?:=[=\s]*+)?")
_BUILT_IN = (meta_pb2, decimal_pb2)
"""What a registry knows without being told, beside Google's own types."""


def compiled(name: str, text: str, imports: Mapping[str, str]) -> FileDescriptorSet:
    """Descriptors of a schema and of everything that it imports, each behind what it needs.

    Args:
        name: what the schema is called in the result and in errors.
        text: a .proto file, or its descriptor in base64, as some clients register it.
        imports: name -> text of what it imports, directly or not, likewise.

    Raises:
        SchemaError: the compiler's own words, with line and column.
    """
    try:
        require_short("".join((text, *imports.values())), "the schema")
    except SchemaTooLargeError as error:
        raise SchemaError(str(error)) from error
    given = FileDescriptorSet()
    for known in _BUILT_IN:
        if known.DESCRIPTOR.name not in imports:
            given.file.add().ParseFromString(known.DESCRIPTOR.serialized_pb)
    with tempfile.TemporaryDirectory(prefix="mesh-protoc-") as folder:
        # a schema's own words come from strangers: it is compiled in a process of its own
        place = Path(folder)
        (place / "src").mkdir()
        for one, words in {**imports, name: text}.items():
            descriptor = _descriptor(words)
            if descriptor is None:
                _write(place / "src", one, words)
            else:
                descriptor.name = one
                given.file.append(descriptor)
        (place / "given").write_bytes(given.SerializeToString())
        _run(place, name)
        found = FileDescriptorSet()
        found.ParseFromString((place / "out").read_bytes())
        return found


def _run(place: Path, name: str) -> None:
    # Google's common types lie beside the library itself; the compiler brings the well-known ones
    import google.type

    common = Path(next(iter(google.type.__path__))).parent.parent
    command = [
        *(sys.executable, "-P", "-m", "grpc_tools.protoc"),
        *(f"--proto_path={place / 'src'}", f"--proto_path={common}"),
        f"--descriptor_set_in={place / 'given'}",
        *("--include_imports", "--include_source_info"),
        *(f"--descriptor_set_out={place / 'out'}", name),
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise SchemaError(f"it was not compiled within {_TIMEOUT_S} s") from error
    if done.returncode:
        raise SchemaError(_told(done.stderr.replace(f"{place / 'src'}/", ""), name))


def _told(output: str, name: str) -> str:
    """The compiler's errors in one line, without what it warns of."""
    errors = [
        re.sub(rf"^{re.escape(name)}:(\d+):(\d+):", r"line \1, column \2:", one)
        for one in output.splitlines()
        if one and not _BESIDE.search(one)
    ]
    return "; ".join(errors)[:_LONGEST] or "the compiler refused it without a word"


def _write(root: Path, name: str, text: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise SchemaError(f"it imports {name!r}, which is no path below the schema's own")
    target = root / path
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    except (OSError, ValueError) as error:
        raise SchemaError(f"it imports {name!r}, which cannot be a file") from error


def _descriptor(text: str) -> FileDescriptorProto | None:
    """A file's descriptor in base64; None for any other text."""
    if not _BASE64.fullmatch(text):
        return None
    try:
        found = FileDescriptorProto()
        found.ParseFromString(base64.b64decode(text))
    except (binascii.Error, DecodeError):
        return None
    return found
