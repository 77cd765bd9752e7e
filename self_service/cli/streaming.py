"""`sdm streaming`: its commands come from several modules, each of which fills the groups."""

from self_service.cli import streaming_explain, streaming_life, streaming_view
from self_service.cli.streaming_app import app

__all__ = ["app", "streaming_explain", "streaming_life", "streaming_view"]
