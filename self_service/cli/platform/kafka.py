"""`sdm kafka`: Kafka's own command line tools, logged in as a cluster's administrator."""

import subprocess
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from mesh_events.files import write_atomically
from self_service.cli.domain.credentials import properties
from self_service.cli.framework import completion
from self_service.cli.framework.exits import UsageError
from self_service.cli.framework.options import command, noun
from self_service.cli.mesh.callers import OPERATOR
from self_service.cli.mesh.context import Mesh

app = noun("Kafka's own tools.")


@command(
    app,
    "kafka",
    "sdm kafka topics --cluster west --describe --topic east.users",
    "sdm kafka acls --list --principal User:mallory",
    "sdm kafka transactions --cluster west list",
    passing_on=True,
)
def kafka(
    context: typer.Context,
    tool: Annotated[str, typer.Argument(help="Tool: the name of its script without `kafka-`.")],
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            help="Cluster; default: the log's cluster.",
            autocompletion=completion.clusters,
        ),
    ] = None,
) -> None:
    """Run one of Kafka's tools on a cluster as its administrator, with the remaining arguments.

    The tool gets address and login. Its changes bypass the mesh: `sdm drift` reports ACLs and
    topics that the log does not explain. The exit code is the tool's.
    """
    from local_platform import kafka_tools
    from local_platform.files import private_folder
    from local_platform.settings import read_settings
    from local_platform.site import Site

    if tool not in kafka_tools.TOOLS:
        raise UsageError(f"there is no tool {tool}: known are {', '.join(kafka_tools.TOOLS)}")
    mesh = Mesh()
    image = mesh.image()
    login = mesh.login(image, cluster or image.identity.governance_cluster, OPERATOR.principal)
    site = Site.of(read_settings())
    private_folder(site.layout.conf)
    # where the brokers' own settings lie: should this process be killed, nothing is left elsewhere
    with tempfile.TemporaryDirectory(prefix=".kafka-", dir=site.layout.conf) as folder:
        file = Path(folder) / "admin.properties"
        write_atomically(file, properties(login.java()), mode=0o600)
        argv = kafka_tools.command(site, tool, login.bootstrap_servers, file, context.args)
        done = subprocess.run(argv, check=False, cwd=mesh.home)
    raise typer.Exit(done.returncode)
