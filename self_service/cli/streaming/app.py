"""The nouns `sdm streaming` and `sdm streaming sql`, which several modules fill."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from mesh_events.errors import InvalidValueError
from mesh_events.intents import domain_of
from self_service.cli.framework import completion
from self_service.cli.framework.exits import UsageError
from self_service.cli.framework.given_files import read_text
from self_service.cli.framework.options import noun

app = noun("Streaming jobs of a domain, on its Spark Connect server.")
sql_app = noun("Streaming SQL: statements that fill a topic from other topics.")
app.add_typer(sql_app, name="sql")

Name = Annotated[
    str,
    typer.Argument(
        help="Statement, <domain>.<name>; the name alone is the current domain's.",
        autocompletion=completion.statements,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Text:
    """The text of a statement, and what its names mean."""

    sql: Annotated[
        str | None,
        typer.Argument(metavar="SQL", help="INSERT INTO topic SELECT ... FROM topic."),
    ] = None
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read the SQL from a file.")] = (
        None
    )
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            "--sources",
            metavar="NAME=TOPIC",
            help="Topic or product of a name in the SQL; repeatable.",
        ),
    ] = None
    application: Annotated[
        str | None,
        typer.Option(
            "--application",
            help="Application under whose grants other domains' topics are read.",
            autocompletion=completion.applications,
        ),
    ] = None

    def text(self) -> str:
        """The SQL; raises UsageError without one or with two."""
        if (self.sql is None) == (self.file is None):
            raise UsageError("give the SQL, or a file with --file")
        if self.file is None:
            return self.sql or ""
        try:
            return read_text(self.file)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8 text"
            raise InvalidValueError(f"{self.file}: {reason}") from error

    def sources(self) -> dict[str, str]:
        """Name in the SQL -> topic; raises UsageError."""
        pairs = [one.partition("=") for one in self.source or []]
        for name, equals, topic in pairs:
            if not (name and equals and topic):
                raise UsageError(f"--source {name}{equals}{topic}: write it as NAME=TOPIC")
        return {name: topic for name, _, topic in pairs}


def owner_of(name: str) -> str | None:
    """The domain that a name itself tells."""
    return domain_of(name) if "." in name else None
