"""The run's mesh."""

from tests.mesh_fixtures import kit

__all__ = ["kit"]
