"""Unpacking the records of a batch up to a bound, whatever they would unpack to.

Brokers and quotas count a compressed batch as it was sent: a thousandth of what is in it, or less.
"""

from collections.abc import Iterator

from mesh_events.errors import MeshError

MOST_UNPACKED = 32 * 1024 * 1024
"""Bytes of a batch that is read: twice the largest record that is copied."""
_NONE, _GZIP, _SNAPPY, _LZ4, _ZSTD = range(5)
_STREAMS = {_GZIP: "gzip", _LZ4: "lz4", _ZSTD: "zstd"}
_STEP = 1024 * 1024
_FRAMED, _FRAME_HEADER = b"\x82SNAPPY\0", 16
"""What the Java library puts before blocks of Snappy, each behind its length in four bytes."""


class UnreadError(MeshError):
    """The records of a batch are not read; the message says why, as the end of a sentence."""


def unpacked(kind: int, packed: memoryview, most: int = MOST_UNPACKED) -> bytes | memoryview:
    """The records of a batch.

    Args:
        kind: the number of its compression in Kafka's protocol.
        packed: its records as they were sent.
        most: bytes that they may unpack to.

    Raises:
        UnreadError: they unpack to more, or to nothing.
    """
    if kind == _NONE:
        return packed
    try:
        if kind == _SNAPPY:
            return b"".join(_snappy(packed, most))
        if kind in _STREAMS:
            return b"".join(_stream(_STREAMS[kind], packed, most))
    except (OSError, ValueError, IndexError) as error:
        raise UnreadError(f"cannot be unpacked ({error})") from error
    raise UnreadError(f"is compressed in a way that is not known ({kind})")


def _stream(name: str, packed: memoryview, most: int) -> Iterator[bytes]:
    # takes a quarter of a second to import, and is needed for compressed topics alone
    import pyarrow as pa

    with pa.CompressedInputStream(pa.BufferReader(packed), name) as stream:
        total = 0
        while found := stream.read(_STEP):
            total += len(found)
            _require(total, most)
            yield found


def _snappy(packed: memoryview, most: int) -> Iterator[bytes]:
    import pyarrow as pa

    codec, total = pa.Codec("snappy"), 0
    for block in _blocks(packed):
        size = _announced(block)
        total += size
        _require(total, most)
        yield codec.decompress(block, size, asbytes=True)


def _blocks(packed: memoryview) -> Iterator[memoryview]:
    if packed[: len(_FRAMED)] != _FRAMED:
        yield packed
        return
    at = _FRAME_HEADER
    while at < len(packed):
        begin = at + 4
        at = begin + int.from_bytes(packed[at:begin])
        if at > len(packed):
            raise ValueError("a block is cut off")
        yield packed[begin:at]


def _announced(block: memoryview) -> int:
    """Bytes that a block of Snappy unpacks to, which it begins with."""
    found = 0
    for place in range(5):
        found |= (block[place] & 0x7F) << 7 * place
        if not block[place] & 0x80:
            return found
    raise ValueError("its length has more than five bytes")


def _require(total: int, most: int) -> None:
    if total > most:
        raise UnreadError(f"unpacks to more than {most // _STEP} MiB")
