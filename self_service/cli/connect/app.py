"""The nouns `sdm connect` and `sdm connect connector`, which several modules fill."""

from typing import Annotated

import typer

from self_service.cli.framework import completion
from self_service.cli.framework.options import noun

app = noun("Kafka Connect: import and export data.")
connector_app = noun("Connectors of a domain.")
app.add_typer(connector_app, name="connector")

Name = Annotated[
    str,
    typer.Argument(
        help="Connector, <domain>.<name>; the name alone is the current domain's.",
        autocompletion=completion.connectors,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Another setting; takes precedence over all others."
    ),
]
Password = Annotated[
    str | None,
    typer.Option(
        "--password",
        metavar="REFERENCE",
        help="file:/path or env:NAME; the password is stored where Connect reads it, and the "
        "config refers to it.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only validate the config; change nothing.")
]
