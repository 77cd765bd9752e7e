"""`sdm connect`: its commands come from several modules, each of which fills the groups."""

from self_service.cli import connect_about, connector_deploy, connector_life, connector_view
from self_service.cli.connect_app import app

__all__ = ["app", "connect_about", "connector_deploy", "connector_life", "connector_view"]
