"""A record as a leaf of the tree over the log: the bytes that are hashed, and their hash.

The form is fixed for ever and stands in docs/reference/wire-format.md, so that any language can
compute it. It holds everything that a reader is told about a record and nothing that depends on
who reads it: of two headers with one name the last counts, and headers have no order.
"""

from functools import lru_cache
from hashlib import sha256
from struct import Struct

from mesh_events.record import Record

CONTEXT = b"streaming-data-mesh leaf v1\x00"
"""Stands in front, so that these bytes can never be taken for anything else."""
_PLACE = Struct(">qq")
_LENGTH = Struct(">i")
_ABSENT = _LENGTH.pack(-1)
_LEAF = b"\x00"
"""RFC 9162, section 2.1.1: a leaf's hash begins with this byte, a node's with another."""


def canonical(record: Record) -> bytes:
    """The bytes of a record, one part after the other.

    context; offset and append time (ms) as 8 bytes each; key; value; the number of headers as 4
    bytes; for each header, by name in the order of their UTF-8 bytes, name and value. Key, value,
    name: 4 bytes of length, then the bytes; a length of -1 stands for null. Numbers are signed
    and big-endian.
    """
    length = _LENGTH.pack
    parts = [CONTEXT, _PLACE.pack(record.offset, record.time)]
    for part in (record.key, record.value):
        if part is None:
            parts.append(_ABSENT)
        else:
            parts += (length(len(part)), part)
    headers = record.headers
    parts.append(length(len(headers)))
    # names in the order of code points: the same as that of their UTF-8 bytes
    for name in sorted(headers):
        value = headers[name]
        parts.append(_name(name))
        if value is None:
            parts.append(_ABSENT)
        else:
            parts += (length(len(value)), value)
    return b"".join(parts)


@lru_cache(maxsize=1024)
def _name(text: str) -> bytes:
    """A header's name as a part; the same few stand in every record."""
    raw = text.encode()
    return _LENGTH.pack(len(raw)) + raw


def leaf_hash(record: Record) -> bytes:
    """32 bytes: SHA-256 over a zero byte and the record's canonical bytes (RFC 9162, 2.1.1)."""
    return sha256(_LEAF + canonical(record)).digest()
