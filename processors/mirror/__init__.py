"""MirrorMaker 2 as an engine of links: each link is a connector on its domain's Connect worker.

What lives here: the engine, a link's copy as a connector's config, and the Scala source of the
transformation that marks each record with where it came from, as Spark's copies are marked. By
that mark one controller resumes, checks and hands over the copies of both engines.
What does not: when a link runs (`processors.controllers`), how the source is compiled and put on
the workers' class path (`local_platform`).
"""

from pathlib import Path

SOURCE = Path(__file__).parent / "Provenance.scala"
TRANSFORMATION = "mesh.Provenance"
"""The transformation's class."""
