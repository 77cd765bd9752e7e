"""The noun `sdm schema`, which several modules fill, and what its commands share."""

from dataclasses import dataclass
from typing import Annotated

import typer

from self_service.cli.framework import completion
from self_service.cli.framework.options import noun
from self_service.cli.topic.record_options import SchemaKind

app = noun("Schemas of topics and their records.")

Name = Annotated[
    str,
    typer.Argument(
        help="Topic, product or subject (<topic>-value).", autocompletion=completion.products
    ),
]
Key = Annotated[
    bool, typer.Option("--key", help="Use the schema of the keys instead of the values.")
]


@dataclass(frozen=True, kw_only=True)
class Written:
    """What a file with a schema does not tell itself."""

    kind: SchemaKind = None
    references: Annotated[
        list[str] | None,
        typer.Option(
            "--reference",
            metavar="NAME=SUBJECT[:VERSION]",
            help="Subject of the schema that the file calls NAME, in its latest or the given "
            "version; repeatable. References of the subject's latest version are known.",
        ),
    ] = None
    key: Key = False
