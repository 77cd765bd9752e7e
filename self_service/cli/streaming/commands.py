"""`sdm streaming`: its commands come from several modules, each of which fills the groups."""

from self_service.cli.streaming import explain, life, view
from self_service.cli.streaming.app import app

__all__ = ["app", "explain", "life", "view"]
