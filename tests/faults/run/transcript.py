"""The governance log as an outsider reads it, kept from one look to the next."""

from dataclasses import dataclass, field
from typing import Any

from tests.faults.oracle import Told, history, record_of
from tests.oracle.oracle import tell
from tests.plain_reader import Plain

LOG = "mesh.governance"


@dataclass
class Transcript:
    """All records so far; what was read once must still stand there.

    governor: public key whose decisions count.
    root: public key that names the mesh.
    """

    plain: Plain
    governor: str
    root: str
    records: list[dict[str, Any]] = field(default_factory=list)

    def read(self) -> "Transcript":
        """Go on to the end of now."""
        start = self.records[-1]["offset"] + 1 if self.records else 0
        self.records += [
            record_of(self.plain, message, self.root) for message in self.plain.messages(LOG, start)
        ]
        return self

    def history(self) -> Told:
        """Intents and the decisions that count."""
        return history(self.records, self.governor)

    def said(self) -> dict[str, Any]:
        """Products, accesses and links as the naive oracle works them out."""
        return tell(self.records)
