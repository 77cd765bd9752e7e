"""A client's settings for a login: a properties file that Kafka clients take as it is."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path

from mesh_events.errors import ConfigurationError
from mesh_events.intents import CredentialsRequested, domain_of, intents_login
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.transport import ENCRYPTED, Tls
from projections.image import Image
from self_service.cli.framework.exits import NotFoundError
from self_service.cli.framework.options import SubmitOptions, Until
from self_service.cli.framework.output import Detail, Format, note, show
from self_service.cli.mesh import lookup
from self_service.cli.mesh.context import Mesh


class Form(StrEnum):
    """Whose names for settings are used: librdkafka's (C, Python, Go ...) or Java's."""

    LIBRDKAFKA = "librdkafka"
    JAVA = "java"


def client_settings(login: Connection, form: Form) -> dict[str, str]:
    """Settings with which a client logs in and reads, under the client's own names."""
    return {
        **(login.java() if form is Form.JAVA else login.librdkafka()),
        # the principal may join any group that begins with its id and a dot
        "group.id": f"{login.user}.main",
        "auto.offset.reset": "earliest",
    }


def properties(settings: dict[str, str]) -> str:
    """The settings as lines of a properties file."""
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def read_properties(path: Path) -> dict[str, str]:
    """The settings in a properties file of the librdkafka form."""
    try:
        lines = path.read_text("utf-8").split("\n")
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: byte {error.start + 1} is not UTF-8") from error
    pairs = (line.partition("=") for line in lines if line.strip() and not line.startswith("#"))
    found = {name.strip(): value.strip() for name, _, value in pairs}
    if "sasl.username" not in found or "bootstrap.servers" not in found:
        raise ConfigurationError(
            f"{path} has no sasl.username and bootstrap.servers: write it with "
            "`sdm access credentials APPLICATION --out FILE`"
        )
    return found


def login_of(settings: dict[str, str]) -> Connection:
    """The login that a client's settings hold.

    Raises ConfigurationError where they ask for TLS and name no authority, or a file of no use.
    """
    files = (settings.get(name) for name in ("ssl.ca.location", "ssl.certificate.location"))
    ca, certificate = (Path(named) if named else None for named in files)
    if ca is None and settings.get("security.protocol") == ENCRYPTED:
        raise ConfigurationError(
            "the client settings use SASL_SSL without ssl.ca.location: name the PEM file of the "
            "certificate authority of the brokers"
        )
    return Connection(
        settings["bootstrap.servers"],
        settings["sasl.username"],
        settings.get("sasl.password", ""),
        Tls.of(ca, certificate),
    )


def hand_out(
    mesh: Mesh,
    options: SubmitOptions,
    principal: str,
    form: Form,
    out: Path | None,
    wanted: str | None,
) -> None:
    """Have a login made anew, and write its settings to `out` (0600), or show them once.

    `wanted` is the cluster, None for the principal's home.
    """
    from self_service.cli.mesh.submitting import submit

    cluster = place(mesh.image(), principal, wanted)
    # what cannot be written must be known before the old password is gone
    with private_file(out) if out else nullcontext() as write:
        submitted = submit(
            mesh,
            mesh.acting_as(options.domain),
            options,
            lambda meta: CredentialsRequested(meta=meta, principal=principal, cluster=cluster),
            default=Until.APPLIED,
        )
        if submitted.image is None:
            note(
                "the settings are available once the login exists: run this again without --no-wait"
            )
            show(Detail(submitted.fields()), options.output)
            return
        settings = client_settings(mesh.login(submitted.image, cluster, principal), form)
        own = submitted.image.identity.clusters[cluster].registry_url
        registry = own or mesh.profile.registry_url
        if write is not None:
            # a comment: Kafka's clients complain of settings that are none of theirs
            write(f"# schema registry: {registry}\n{properties(settings)}")
    if out is not None:
        note(f"wrote {out}, readable only by you (0600)")
        where = {"cluster": cluster, "registry": registry, "file": str(out.absolute())}
        show(Detail({**submitted.fields(), **where}), options.output)
    elif options.output is Format.TABLE:
        typed = properties(settings)
        print(typed, end="")  # noqa: T201 - the answer itself, asked for with --show
    else:
        show(Detail(settings), options.output)


def place(image: Image, principal: str, wanted: str | None) -> str:
    """The cluster where a principal logs in: the wanted one, else its home.

    Raises NotFoundError for an unknown principal, and where it has no login.
    """
    home = lookup.domain(image, domain_of(principal)).cluster
    if principal == intents_login(domain_of(principal)):
        home = image.identity.governance_cluster
    elif principal not in image.identity.domains:
        lookup.application(image, principal)
    places = sorted(where for who, where in image.identity.credentials if who == principal)
    cluster = wanted or home
    if cluster not in places:
        raise NotFoundError(
            f"{principal} has no login on cluster {cluster}; clusters with a login: "
            f"{', '.join(places) or 'none'}"
        )
    return cluster


@contextmanager
def private_file(path: Path) -> Iterator[Callable[[str], None]]:
    """Gives what writes a text to `path`, for its owner alone; the place is taken beforehand.

    `path` itself changes in one step, and not before the text is there; without a text it stays.
    Raises ConfigurationError where nothing can be written, before the block runs; or, should the
    last step fail, with the name of the file that holds the text.
    """
    try:
        if path.is_symlink() and path.lstat().st_uid not in (0, os.geteuid()):
            raise ConfigurationError(
                f"{path} cannot be written: it is a link that another user made; "
                "name a file in a folder of your own"
            )
        # a link of one's own stays one, and so does /dev/stdout
        path = path.resolve()
        if path.exists() and not path.is_file():
            raise ConfigurationError(f"{path} cannot be written: it is not a file")
        part = path.with_name(f".{path.name}.{os.getpid()}")
        part.unlink(missing_ok=True)
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}") from error
    with os.fdopen(handle, "w", encoding="utf-8") as file:

        def write(text: str) -> None:
            file.write(text)
            file.flush()
            try:
                part.replace(path)
            except OSError as error:
                kept = part.rename(path.parent / f"{part.name}.kept")
                raise ConfigurationError(
                    f"{path} cannot be written: {error.strerror}; {kept} has its content"
                ) from error

        try:
            yield write
        finally:
            part.unlink(missing_ok=True)
