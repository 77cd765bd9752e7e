"""What of the mesh runs inside the registry: a bound for what bodies of requests may cost it.

What lives here: the Scala sources, and the jar of the registry whose class asks for them.
What does not: how they are compiled (`local_platform.own_jars`) and put there
(`local_platform.unpack`), and the registry's own bounds (`local_platform.services.registry`).
"""

from pathlib import Path

from processors.connect import PATCHED_CLASS

SOURCES = (
    *(Path(__file__).parent / name for name in ("PatchRegistry.scala", "WholeBodies.scala")),
    PATCHED_CLASS,
)
PATCH = "mesh.PatchRegistry"
"""The main class that writes the registry's class below a folder."""
PATCHED = "lib/main/io.quarkus.quarkus-undertow-*.jar"
"""The jar that has this class, below the registry's folder."""
CLASSES = "io/quarkus/undertow/runtime/"
"""The folder of what it is given: the registry knows those that its jars had when it was built."""
