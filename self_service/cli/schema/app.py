"""The noun `sdm schema`, which several modules fill, and what its commands share."""

from dataclasses import dataclass
from typing import Annotated

import typer

from self_service.cli.framework import completion
from self_service.cli.framework.options import noun
from self_service.cli.topic.record_options import SchemaKind

app = noun("Schemas of topics: what their records are made of.")

Name = Annotated[
    str,
    typer.Argument(
        help="Topic, product or subject (<topic>-value).", autocompletion=completion.products
    ),
]
Key = Annotated[bool, typer.Option("--key", help="The schema of the keys, not of the values.")]


@dataclass(frozen=True, kw_only=True)
class Written:
    """What a file with a schema does not tell itself."""

    kind: SchemaKind = None
    references: Annotated[
        list[str] | None,
        typer.Option(
            "--reference",
            metavar="NAME=SUBJECT[:VERSION]",
            help="What the file calls NAME is registered there, in its latest version or the given "
            "one; several times. References of the subject's latest version are known.",
        ),
    ] = None
    key: Key = False
