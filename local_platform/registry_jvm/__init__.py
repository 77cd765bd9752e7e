"""What of the mesh runs inside the registry: bounds for its clients, and no answer before it can.

What lives here: the Scala sources, and the jars of the registry whose classes ask for them.
What does not: how they are compiled (`local_platform.jars.scala_jars`) and put there
(`local_platform.jars.registry_folder`), and the registry's own bounds
(`local_platform.services.registry`).
"""

from collections.abc import Mapping
from pathlib import Path

from processors.connect.jvm import PATCHED_CLASS

SOURCES = (
    *(
        Path(__file__).parent / name
        for name in (
            "CrowdedConnections.scala",
            "Journal.scala",
            "PatchRegistry.scala",
            "UnreadAnswers.scala",
            "WholeBodies.scala",
        )
    ),
    PATCHED_CLASS,
)
PATCH = "mesh.PatchRegistry"
"""The main class that writes the registry's classes below a folder."""
PATCHED: Mapping[str, str] = {
    "lib/main/io.quarkus.quarkus-undertow-*.jar": "io/quarkus/undertow/runtime/",
    "lib/main/io.quarkus.quarkus-vertx-http-3*.jar": "io/quarkus/vertx/http/runtime/",
}
"""Jar that has one of these classes, below the registry's folder -> folder of what it is given.

The registry knows those folders that its jars had when it was built."""
