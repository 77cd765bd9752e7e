"""`sdm key`: the keys that may speak for a domain."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mesh_events.decisions import MeshRole
from mesh_events.errors import ConfigurationError, InvalidValueError
from mesh_events.intents import KeyRegistered, KeyRevoked
from mesh_events.meta import MESH_DOMAIN
from mesh_events.settings import key_path, profile_path
from self_service.cli.framework import completion
from self_service.cli.framework.exits import UsageError
from self_service.cli.framework.options import (
    Actor,
    OfDomain,
    Reading,
    Reason,
    Shown,
    SubmitOptions,
    command,
    noun,
)
from self_service.cli.framework.output import Detail, Listing, note, show
from self_service.cli.mesh.context import Mesh

app = noun("Keys that sign a domain's intents. The log records which are valid.")


class Changeable(StrEnum):
    """Whose key can be changed; the root's cannot."""

    OPERATOR = "OPERATOR"
    GOVERNOR = "GOVERNOR"
    CONTROLLER = "CONTROLLER"


For = Annotated[
    str | None,
    typer.Option(
        "--for",
        metavar="DOMAIN",
        help="Domain that the key acts as; default: the acting domain.",
        autocompletion=completion.domains,
    ),
]


@command(
    app,
    "register",
    "sdm key register --file ~/laptop.key",
    "sdm key register --public-key 3q2-7w... --proof mZ4x... --for east --domain mesh",
)
def register(
    options: SubmitOptions,
    file: Annotated[
        Path | None, typer.Option("--file", help="Key file; created (0600) if it is missing.")
    ] = None,
    public_key: Annotated[
        str | None, typer.Option("--public-key", help="Or a public key that was created elsewhere.")
    ] = None,
    proof: Annotated[
        str | None, typer.Option("--proof", help="Proof that `sdm key prove` prints there.")
    ] = None,
    for_domain: For = None,
) -> None:
    """Register another key that may act as a domain.

    A key that was created elsewhere needs a proof of possession: see `sdm key prove`.
    """
    from mesh_events.signing import SigningKey, is_proven, is_public_key
    from self_service.cli.mesh.submitting import submit

    if (file is None) == (public_key is None):
        raise UsageError("give either --file or --public-key")
    if public_key is not None and not is_public_key(public_key):
        raise InvalidValueError(f"--public-key {public_key[:60]!r}: {_why_no_key(public_key)}")
    if (public_key is None) != (proof is None):
        raise UsageError("--public-key and --proof go together: `sdm key prove` prints both")
    mesh = Mesh()
    who = mesh.acting_as(options.domain)
    domain = _of(for_domain, who.domain)
    if public_key is None or proof is None:
        key = SigningKey.load_or_generate(_in_folder(file or Path()))
        public_key, proof = key.public, key.prove(mesh.profile.root_key, domain)
    elif not is_proven(mesh.profile.root_key, domain, public_key, proof):
        raise InvalidValueError(f"--proof does not fit this key, the domain {domain} and this mesh")
    fields = {"domain": domain, "public_key": public_key, "proof": proof}
    submitted = submit(
        mesh,
        who,
        options,
        lambda meta: KeyRegistered.model_validate({"meta": meta, **fields}),
    )
    show(Detail({**submitted.fields(), "public_key": public_key}), options.output)


@command(
    app,
    "prove",
    "sdm key prove --file ~/laptop.key --for east",
    "sdm key prove --file /media/new.key --for east -o json",
)
def prove(
    shown: Shown,
    file: Annotated[
        Path, typer.Option("--file", help="Key file; created (0600) if it is missing.")
    ],
    for_domain: Annotated[
        str,
        typer.Option("--for", metavar="DOMAIN", help="Domain that the key is to act as."),
    ],
) -> None:
    """Prove that you hold a key, so that another user can register it.

    Nothing is sent. The proof is valid for this mesh and this domain only.
    """
    from mesh_events.signing import SigningKey
    from self_service.cli.mesh.callers import judge

    judge(for_domain)
    root, key = Mesh().profile.root_key, SigningKey.load_or_generate(_in_folder(file))
    fields = {
        "domain": for_domain,
        "public_key": key.public,
        "proof": key.prove(root, for_domain),
    }
    show(Detail(fields), shown.output)


@command(
    app,
    "revoke",
    "sdm key revoke 3q2-7w... --reason 'laptop lost'",
    "sdm key revoke 3q2-7w... --for east --domain mesh --reason 'left the team'",
)
def revoke(
    options: SubmitOptions,
    public_key: Annotated[
        str,
        typer.Argument(
            help="Public key, see `sdm key list`. Put `--` before a key that begins with `-`."
        ),
    ],
    reason: Reason,
    for_domain: For = None,
) -> None:
    """Revoke a key: from the decision on, records that it signs have no effect."""
    from mesh_events.signing import SigningKey
    from self_service.cli.mesh.submitting import submit

    mesh = Mesh()
    who = mesh.acting_as(options.domain)
    domain = _of(for_domain, who.domain)
    submitted = submit(
        mesh,
        who,
        options,
        lambda meta: KeyRevoked(meta=meta, domain=domain, public_key=public_key, reason=reason),
    )
    show(Detail(submitted.fields()), options.output)
    own = key_path(mesh.home, domain)
    if own.exists() and SigningKey.load(own).public == public_key:
        note(
            f"{own} is the key that was revoked, and {domain} cannot submit intents from here: "
            "replace it with the file of a valid key (`sdm key list`)"
        )


@command(
    app,
    "rotate",
    "sdm key rotate governor --reason 'once a year'",
    "sdm key rotate controller --reason 'seen elsewhere' --compromised --root-key /media/root.key",
)
def rotate(
    shown: Shown,
    role: Annotated[Changeable, typer.Argument(help="Owner of the key.", case_sensitive=False)],
    reason: Reason,
    compromised: Annotated[
        bool,
        typer.Option(
            "--compromised", help="Revoke the old key at once, before the worker restarts."
        ),
    ] = False,
    root_key: Annotated[
        Path | None,
        typer.Option("--root-key", help="The mesh's root key; default: keys/root.key at home."),
    ] = None,
    actor: Actor = None,
) -> None:
    """Rotate a key of the mesh itself: operator, governor or controller. Needs the root key.

    Restarts the worker and revokes the old key. Run it again to finish an interrupted rotation with
    the key that it created; --compromised creates another key and revokes every older one.
    """
    from mesh_events.emit import LogWriter
    from self_service.cli.domain import key_rotation
    from self_service.cli.mesh.callers import OPERATOR, actor_id
    from self_service.cli.platform.commands import restart_governor

    mesh = Mesh()
    root = key_rotation.root_key(mesh.home, root_key)
    with LogWriter(mesh.governance(OPERATOR), mesh.registry, root, root.public) as writer:
        rotation = key_rotation.Rotation(
            mesh.home, MeshRole(role), writer, root, lambda: mesh.image().identity, actor_id(actor)
        )
        if rotation.was_cut_off and not compromised:
            note(
                f"an earlier rotation of the {role.lower()}'s key was interrupted: it is finished "
                "now, and the key that it created stays; run this again to replace that key"
            )
        done = rotation.run(reason, restart_governor, compromised=compromised)
    fields = {
        "role": done.role.lower(),
        "revoked": ", ".join(done.old) or "none",
        "public_key": done.new,
    }
    show(Detail(fields), shown.output)
    if role is Changeable.GOVERNOR:
        note(
            f"hand {profile_path(mesh.home)} to the participants again: it names the governor's key"
        )


@command(app, "list", "sdm key list", "sdm key list --of east --as-of 2026-01-31")
def list_keys(
    reading: Reading,
    of: OfDomain = None,
) -> None:
    """List the keys, valid and revoked; the mesh's own keys act as 'mesh'."""
    mesh = Mesh()
    image = mesh.image(reading)
    items = [
        {
            "domain": key.domain,
            "role": key.role.value,
            "public_key": key.public,
            "since": key.since,
            "revoked": key.revoked,
        }
        for key in sorted(image.identity.keys.values(), key=lambda one: (one.domain, one.since))
        if of in (None, key.domain)
    ]
    show(Listing(("domain", "role", "public_key", "since", "revoked"), items), reading.output)


def _why_no_key(text: str) -> str:
    from mesh_events.signing import is_weak_key

    if is_weak_key(text):
        return "anybody can sign with this public key; create one with --file"
    return "not a public key: 43 characters of base64url"


def _in_folder(file: Path) -> Path:
    """The file; a mistyped path makes no folders."""
    if not file.absolute().parent.is_dir():
        raise ConfigurationError(f"there is no folder {file.absolute().parent} for {file.name}")
    return file


def _of(given: str | None, own: str) -> str:
    domain = given or own
    if domain == MESH_DOMAIN:
        raise UsageError(
            "the mesh's own keys are rotated with `sdm key rotate`: name a domain with --for"
        )
    return domain
