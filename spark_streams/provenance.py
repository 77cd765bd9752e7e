"""Where a copied record came from: the header `mesh.source`.

Its value is `<cluster>/<topic id>/<partition>/<offset>` in ASCII, of the source. Cluster names
have no slash; Kafka's topic ids, in base 64, may have some.
"""

import re
from dataclasses import dataclass
from typing import Self

HEADER = "mesh.source"
_FORM = re.compile(rb"([!-.0-~]+)/([!-~]+)/([0-9]{1,10})/([0-9]{1,19})")


class NotProvenanceError(ValueError):
    """A header's value does not have the form above."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The topic that a link reads: `topic_id` changes when the topic is deleted and made again."""

    cluster: str
    topic_id: str

    @property
    def prefix(self) -> str:
        """What the header's value begins with, up to the partition."""
        return f"{self.cluster}/{self.topic_id}/"


@dataclass(frozen=True, slots=True)
class Provenance:
    """One record's place in its source."""

    origin: Origin
    partition: int
    offset: int

    def encode(self) -> bytes:
        """The header's value."""
        return f"{self.origin.prefix}{self.partition}/{self.offset}".encode("ascii")

    @classmethod
    def parse(cls, value: bytes | None) -> Self:
        """Read a header's value; raises NotProvenanceError."""
        match = _FORM.fullmatch(value or b"")
        if match is None:
            raise NotProvenanceError(
                f"{HEADER} should be <cluster>/<topic id>/<partition>/<offset>, not {value!r:.120}"
            )
        cluster, topic_id, partition, offset = (part.decode("ascii") for part in match.groups())
        return cls(Origin(cluster, topic_id), int(partition), int(offset))
