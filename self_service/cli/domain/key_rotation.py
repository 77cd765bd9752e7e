"""Changing a key of the mesh itself: bring a new one in, let the worker take it, end the old one.

Every step looks first whether it was done: a rotation that was cut off goes on when asked again.
One of a key that was seen elsewhere always makes a new key, since the one in use is to end.
Files beside `<role>.key`: `<role>.next.key` until the new key is in its place, and
`<role>.previous.key` until the old one is revoked.
"""

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mesh_events.decisions import MeshKeyIntroduced, MeshKeyRevoked, MeshRole
from mesh_events.emit import LogWriter, mesh_meta
from mesh_events.errors import ConfigurationError, RefusedError
from mesh_events.meta import Event, new_id
from mesh_events.settings import Profile, key_path
from mesh_events.signing import SigningKey
from projections.deciding.named_keys import owner
from projections.identity import Identity, Role


@dataclass(frozen=True, slots=True)
class Rotated:
    """The keys that were, and the one that is now."""

    role: MeshRole
    old: tuple[str, ...]
    new: str


class Rotation:
    """One rotation of the key of `role` in the home of a mesh.

    Args:
        home: where the keys lie.
        role: whose key is changed.
        writer: appends to the log; what it says is signed with `root`.
        root: the mesh's root key.
        identity: asks the log anew who has which key.
        actor: who does it, for the audit.
    """

    def __init__(
        self,
        home: Path,
        role: MeshRole,
        writer: LogWriter,
        root: SigningKey,
        identity: Callable[[], Identity],
        actor: str,
    ) -> None:
        self._home, self._role, self._writer, self._root = home, role, writer, root
        self._identity, self._actor = identity, actor
        self._current = key_path(home, role.lower())
        self._next = self._current.with_name(f"{role.lower()}.next.key")
        self._previous = self._current.with_name(f"{role.lower()}.previous.key")

    @property
    def was_cut_off(self) -> bool:
        """Whether an earlier rotation of the key did not come to its end."""
        return self._next.exists() or self._previous.exists()

    def run(self, reason: str, restart: Callable[[], None], *, compromised: bool) -> Rotated:
        """Change the key.

        Args:
            reason: why the old one ends.
            restart: makes the worker use the new one; returns once it governs.
            compromised: the key in use now ends, whatever was cut off before, and does so before
                the worker is restarted, not after.

        Raises:
            RefusedError: the root key is not the one that founded this mesh; another command
                changes the key.
        """
        with self._alone():
            return self._run(reason, restart, compromised=compromised)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._current.with_name(f"{self._role.lower()}.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RefusedError(
                    "rotation_runs",
                    f"another command is rotating the {self._role.lower()}'s key: wait for its end",
                ) from None
            yield

    def _run(self, reason: str, restart: Callable[[], None], *, compromised: bool) -> Rotated:
        identity = self._identity()
        if identity.root != self._root.public:
            raise RefusedError(
                "foreign_root",
                f"this key ({self._root.public}) is not the root key of the mesh: that is "
                f"{identity.root}; give it with --root-key",
            )
        if compromised:
            # who has the key in use may have one that waits beside it, too
            self._next.unlink(missing_ok=True)
        if compromised or not self._previous.exists() or self._next.exists():
            self._replace(identity)
        new = SigningKey.load(self._current).public
        old = self._old(new)
        if compromised:
            self._revoke(old, reason)
        if self._role is MeshRole.GOVERNOR:
            profile = Profile.load(self._home)
            profile.model_copy(update={"governor_key": new}).save(self._home)
        if self._role is not MeshRole.OPERATOR:
            restart()
        self._revoke(old, reason)
        self._previous.unlink()
        return Rotated(self._role, old, new)

    def _replace(self, identity: Identity) -> None:
        """Put a key that the log knows in the place of the old one, and keep that for a while."""
        made = SigningKey.load_or_generate(self._next)
        if made.public not in identity.keys:
            self._submit(
                MeshKeyIntroduced(
                    meta=mesh_meta(new_id(), self._actor),
                    role=self._role,
                    public_key=made.public,
                    proof=made.prove(self._root.public, owner(self._role)),
                )
            )
        if self._current.exists() and not self._previous.exists():
            os.link(self._current, self._previous)
        # without a file of the old key this one tells that there is still something to do
        self._previous.touch(mode=0o600)
        self._next.replace(self._current)

    def _old(self, new: str) -> tuple[str, ...]:
        """Every other key that has the role now, also one whose file is lost."""
        keys, role = self._identity().keys.values(), Role(self._role.lower())
        return tuple(
            key.public
            for key in keys
            if key.role is role and key.revoked is None and key.public != new
        )

    def _revoke(self, old: Iterable[str], reason: str) -> None:
        identity, role = self._identity(), Role(self._role.lower())
        for public in old:
            if identity.has_role(public, role):
                self._submit(
                    MeshKeyRevoked(
                        meta=mesh_meta(new_id(), self._actor), public_key=public, reason=reason
                    )
                )

    def _submit(self, event: Event) -> None:
        self._writer.append(event, self._root)


def root_key(home: Path, given: Path | None) -> SigningKey:
    """The root key from its usual place or the given one."""
    path = given or key_path(home, "root")
    if not path.exists():
        raise ConfigurationError(
            f"no root key at {path}: restore it from where it is kept, and name it with "
            "--root-key FILE"
        )
    return SigningKey.load(path)
