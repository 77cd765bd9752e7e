"""The nouns `sdm connect` and `sdm connect connector`, which several modules fill."""

from typing import Annotated

import typer

from self_service.cli import debezium
from self_service.cli.options import noun

app = noun("Kafka Connect: what brings data in.")
connector_app = noun("Connectors of the worker.")
app.add_typer(connector_app, name="connector")

Name = Annotated[str, typer.Argument(help="The connector.", callback=debezium.legal)]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is so.")]
Timeout = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="How long to wait.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Another setting; wins over all."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only let the connector check its config; change nothing.")
]
