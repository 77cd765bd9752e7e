"""Which databases connectors may reach, and of which domains, as the operator names them."""

import re
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import PlainValidator

from projections.connectors.tables import Place

_FORM = re.compile(
    r"(?P<host>(?:\*\.)?[A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\]):(?P<port>[0-9]{1,5})"
    r"(?:/(?P<database>[A-Za-z0-9_-]+))?(?:=(?P<domains>[a-z0-9-]+(?:,[a-z0-9-]+)*))?"
)


@dataclass(frozen=True, slots=True)
class Reachable:
    """One entry, `host:port[/database][=domain,...]`.

    Attributes:
        host: in lower case; `*.db.example` is every host below db.example.
        database: its name, None for every database of the server.
        domains: those whose connectors may reach it, None for all.
    """

    host: str
    port: int
    database: str | None = None
    domains: frozenset[str] | None = None

    @classmethod
    def of(cls, text: str) -> Self:
        """Raises ValueError for another form."""
        found = _FORM.fullmatch(text)
        if found is None or not 0 < int(found["port"]) < 1 << 16:
            raise ValueError(
                f"{text!r} is no database: name it as host:port, host:port/database or "
                "host:port/database=domain,domain"
            )
        domains = found["domains"]
        return cls(
            found["host"].casefold(),
            int(found["port"]),
            found["database"],
            None if domains is None else frozenset(domains.split(",")),
        )

    def admits(self, place: Place, domain: str) -> bool:
        """Whether connectors of a domain may reach that database."""
        name = place.host.casefold()
        below = self.host.startswith("*.") and name.endswith(self.host[1:])
        return (
            (below or name == self.host)
            and place.port == self.port
            and self.database in (None, place.database)
            and (self.domains is None or domain in self.domains)
        )


ReachableEntry = Annotated[Reachable, PlainValidator(Reachable.of)]
"""An entry as settings have it: another form is refused when they are read."""
