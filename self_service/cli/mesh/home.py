"""The home that a command works at, `$SDM_HOME`, checked before anything is looked for in it."""

import os
from pathlib import Path

from mesh_events.settings import HomeSettings


def mesh_home() -> Path:
    """The home, absolute; raises UnusableSettingError where `SDM_HOME` can be no folder."""
    home = HomeSettings().home
    # to import the platform takes a third of a second, and a home that is there needs no word
    if os.environ.get("SDM_HOME") == "" or not _is_folder(home):
        from local_platform.settings import require_folder

        require_folder("SDM_HOME", os.environ.get("SDM_HOME", str(home)))
    return home.absolute()


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False
