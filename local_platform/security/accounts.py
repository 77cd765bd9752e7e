"""Accounts of the operating system that servers run as, where root started the platform.

Each domain's Spark server has a user id of its own, the number of its port: as the port, it is no
other server's on this machine. So has Postgres. The id needs no entry in the list of users, and has
none.
"""

import os
import pwd
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path

from local_platform.errors import ServiceFailedError, UnreachableFolderError
from local_platform.files import private_folder
from local_platform.jars.unpack import build_once

# "nobody" is on every Linux
NOBODY = 65534


def runs_as_root() -> bool:
    """Tell whether this process may switch to another account."""
    return os.geteuid() == 0


def account_of(service: str, port: int) -> int | None:
    """Return the user id of a server of its own account; None where root is not the caller.

    Raises:
        ServiceFailedError: somebody on this machine has this id.
    """
    if not runs_as_root():
        return None
    try:
        found = pwd.getpwuid(port).pw_name
    except KeyError:
        return port
    raise ServiceFailedError(
        f"{service} runs as user id {port}, its port, when started by root, and {found} has this "
        "id here: choose other ports with SDM_PORT_BASE"
    )


def own_folder(path: Path, account: int | None) -> Path:
    """Make `path` a folder that only `account` can enter, and return it.

    What another account left there is removed with it.
    """
    if account is not None and path.is_dir() and path.stat().st_uid != account:
        shutil.rmtree(path)
    private_folder(path)
    if account is not None:
        os.chown(path, account, account)
    return path


def give(folder: Path, account: int) -> None:
    """Let a folder and all that is in it belong to an account; what links lead to stays as it is.

    Files of several names stay, too. The folder itself comes last: it tells whether all was given.
    """
    for _, folders, files, here in os.fwalk(folder, topdown=False, follow_symlinks=False):
        # by the folder that is open: its path may lead elsewhere by now
        for name in (*folders, *files):
            found = os.stat(name, dir_fd=here, follow_symlinks=False)
            # no server of ours makes a second name of a file; it might be one of somebody else's
            if stat.S_ISDIR(found.st_mode) or found.st_nlink == 1:
                os.chown(name, account, account, dir_fd=here, follow_symlinks=False)
    os.chown(folder, account, account, follow_symlinks=False)


def share(path: Path, group: int, mode: int) -> None:
    """Let a group read a file of root's."""
    os.chown(path, -1, group)
    path.chmod(mode)


def blocked(path: Path) -> Path | None:
    """Return the first folder on the way to `path` that other accounts cannot enter."""
    resolved = path.resolve()
    for folder in (*reversed(resolved.parents), resolved):
        if not folder.stat().st_mode & stat.S_IXOTH:
            return folder
    return None


def require_reachable(path: Path, service: str) -> None:
    """Raise `UnreachableFolderError` where the account of a service cannot enter `path`."""
    if closed := blocked(path):
        raise UnreachableFolderError(
            f"{service} runs as another user when started by root, and {closed} is closed to it: "
            "set SDM_HOME and SDM_CACHE to folders that others may enter, as /var/lib/sdm"
        )


def require_readable(files: Iterable[Path], service: str) -> None:
    """Raise `UnreachableFolderError` where the account of a service cannot read a file."""
    for file in files:
        require_reachable(file.parent, service)
        if not file.stat().st_mode & stat.S_IROTH:
            raise UnreachableFolderError(
                f"{service} runs as another user when started by root, and may not read {file}: "
                f"`chmod o+r {file}`"
            )


def reachable(folder: Path, cache: Path, name: str) -> Path:
    """Return a folder of programs that any account can read: itself, or a copy in the cache.

    Args:
        folder: as it was installed, perhaps in a folder of root's alone.
        cache: where the copy is made, once for each `name`.
        name: of the copy, with a version.
    """
    if not runs_as_root() or blocked(folder) is None:
        return folder

    def build(work: Path) -> None:
        shutil.copytree(folder, work, symlinks=True, dirs_exist_ok=True)

    return build_once(cache / "unpacked" / name, build)
