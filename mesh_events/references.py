"""References to secrets: "env:NAME" or "file:/abs/path", so that no event carries a secret."""

import os
from pathlib import Path

from mesh_events.errors import ConfigurationError

_LONGEST = 65_536
"""Characters of a secret."""


class UnresolvedReferenceError(ConfigurationError):
    """A reference does not lead to a secret; the text names it and never a secret."""


def resolve(reference: str) -> str:
    """Return the secret that a reference names, without one trailing newline.

    Args:
        reference: "env:NAME" (an environment variable) or "file:/abs/path" (a file's text).

    Raises:
        UnresolvedReferenceError: unknown kind, unset variable, relative or unreadable path.
    """
    # what is no reference may be the secret itself: it is never shown
    kind, _, place = reference.partition(":")
    match kind:
        case "env":
            return _from_environment(place)
        case "file":
            return _from_file(Path(place))
        case _:
            raise UnresolvedReferenceError(
                "a secret is named by env:NAME or file:/abs/path, and what was given is neither "
                "(it is not shown here)"
            )


def _from_environment(name: str) -> str:
    try:
        text = os.environ[name].removesuffix("\n")
    except KeyError:
        raise UnresolvedReferenceError(
            f"environment variable {name} is not set: export it"
        ) from None
    return _filled(text, f"environment variable {name}")


def _from_file(path: Path) -> str:
    if not path.is_absolute():
        raise UnresolvedReferenceError(f"file:{path} is relative: give the absolute path")
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_LONGEST + 1)
    # a name with a zero byte is a ValueError as well
    except (OSError, ValueError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "is not text"
        raise UnresolvedReferenceError(f"secret file {path}: {reason}") from fault
    if len(text) > _LONGEST:
        raise UnresolvedReferenceError(f"secret file {path}: is longer than {_LONGEST} characters")
    return _filled(text.removesuffix("\n"), f"secret file {path}")


def _filled(text: str, where: str) -> str:
    """A secret; who changes one may empty its place before it fills it."""
    if not text:
        raise UnresolvedReferenceError(f"{where} is empty: put the secret there")
    return text
