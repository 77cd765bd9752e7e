"""`sdm connect`: its commands come from several modules, each of which fills the groups."""

from self_service.cli.connect import about, deploy, life, view
from self_service.cli.connect.app import app

__all__ = ["about", "app", "deploy", "life", "view"]
