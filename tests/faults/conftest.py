"""Fixtures of the run's mesh; most tests here start their own."""

from tests.mesh_fixtures import governor_pid, kit

__all__ = ["governor_pid", "kit"]
