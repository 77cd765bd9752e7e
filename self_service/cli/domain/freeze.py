"""`sdm freeze`, `thaw`, `quarantine`, `release`: what a domain says, or may do, for a while."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from mesh_events.errors import InvalidValueError
from mesh_events.intents import DomainFrozen, DomainQuarantined, DomainReleased, DomainThawed
from mesh_events.meta import MESH_DOMAIN
from self_service.cli.framework import completion
from self_service.cli.framework.options import Reason, SubmitOptions, Until, command, noun
from self_service.cli.framework.output import Detail, note, show
from self_service.cli.framework.times import parse_duration, stamp
from self_service.cli.mesh.callers import current_domain
from self_service.cli.mesh.context import Mesh

if TYPE_CHECKING:
    from self_service.cli.mesh.submitting import Make, Submitted

app = noun("Emergencies.")
Domain = Annotated[
    str | None, typer.Argument(help="The domain.", autocompletion=completion.domains)
]
All = Annotated[bool, typer.Option("--all", help="Every domain, instead of NAME.")]
One = Annotated[str, typer.Argument(help="The domain.", autocompletion=completion.domains)]


@command(
    app,
    "freeze",
    "sdm freeze west --for 2h --reason 'its key was seen elsewhere' --domain mesh",
    "sdm freeze --all --for 1d --reason 'restoring the clusters' --domain mesh",
)
def freeze(
    options: SubmitOptions,
    duration: Annotated[
        str,
        typer.Option(
            "--for", metavar="DURATION", help="Duration of the freeze, such as 90m or 2h30m."
        ),
    ],
    reason: Reason,
    name: Domain = None,
    every: All = False,
) -> None:
    """Reject a domain's intents for a limited time; earlier decisions stay in force.

    Its clients keep reading: `sdm quarantine` also revokes the domain's ACLs.
    """
    from self_service.cli.mesh.failures import ending

    domain, lasts = _whom(name, every=every), parse_duration(duration)
    try:
        end = datetime.now(UTC) + lasts
    except OverflowError:
        raise InvalidValueError(f"--for {duration[:80]}: the year has four digits") from None
    submitted = _submit(
        options,
        lambda meta: DomainFrozen(
            meta=meta,
            domain=domain,
            until=end,
            reason=reason,
            duration_ms=lasts // timedelta(milliseconds=1),
        ),
    )
    if submitted.outcome is not None and submitted.outcome.clock is not None:
        # this machine's clock may be wrong
        end = submitted.outcome.clock + lasts
    note(f"end it early with {ending('thaw', domain)}")
    show(Detail({**submitted.fields(), "domain": domain, "until": stamp(end)}), options.output)


@command(app, "thaw", "sdm thaw west --reason 'new key registered' --domain mesh")
def thaw(options: SubmitOptions, reason: Reason, name: Domain = None, every: All = False) -> None:
    """End a freeze early."""
    domain = _whom(name, every=every)
    submitted = _submit(options, lambda meta: DomainThawed(meta=meta, domain=domain, reason=reason))
    show(Detail({**submitted.fields(), "domain": domain}), options.output)


@command(app, "quarantine", "sdm quarantine west --reason 'a laptop was stolen' --domain mesh")
def quarantine(options: SubmitOptions, reason: Reason, name: One) -> None:
    """Isolate a domain until its release: reject its intents and revoke its ACLs.

    Its applications can neither read nor write on any cluster, and its connectors stop. Its grants
    remain and are applied again after the release. Other domains keep reading its products: pause
    or delete the links to stop that.
    """
    from self_service.cli.mesh.failures import ending

    submitted = _submit(
        options,
        lambda meta: DomainQuarantined(meta=meta, domain=name, reason=reason),
        Until.APPLIED,
    )
    note(f"end it with {ending('release', name)}")
    if current_domain(Mesh().home) == name:
        note(
            f"{name} can no longer read the log: run `sdm switch-domain {MESH_DOMAIN}` to continue"
        )
    show(Detail({**submitted.fields(), "domain": name}), options.output)


@command(app, "release", "sdm release west --reason 'new keys and logins' --domain mesh")
def release(options: SubmitOptions, reason: Reason, name: One) -> None:
    """Release a domain from quarantine and restore its ACLs."""
    submitted = _submit(
        options,
        lambda meta: DomainReleased(meta=meta, domain=name, reason=reason),
        Until.APPLIED,
    )
    show(Detail({**submitted.fields(), "domain": name}), options.output)


def _whom(name: str | None, *, every: bool) -> str:
    """The domain that the event names: the mesh's own stands for every one."""
    if (name is None) is not every:
        raise InvalidValueError("name one domain, or give --all for every domain")
    return name or MESH_DOMAIN


def _submit(options: SubmitOptions, make: "Make", default: Until = Until.DECIDED) -> "Submitted":
    from self_service.cli.mesh.submitting import submit

    mesh = Mesh()
    return submit(mesh, mesh.acting_as(options.domain), options, make, default=default)
