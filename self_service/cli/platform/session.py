"""`sdm switch-domain` and `sdm version`: what belongs to the person at the keyboard."""

from typing import Annotated

import typer

from mesh_events.meta import MESH_DOMAIN
from mesh_events.settings import key_path
from self_service.cli.framework import completion
from self_service.cli.framework.exits import NotFoundError
from self_service.cli.framework.options import Shown, command, noun
from self_service.cli.framework.output import Detail, Listing, note, show
from self_service.cli.mesh.callers import caller, choose_domain, current_domain, known_keys
from self_service.cli.mesh.home import mesh_home

app = noun("The session.")


@command(app, "version", "sdm version", "sdm version -o json")
def version(shown: Shown) -> None:
    """Show the versions of sdm and of the software that it uses."""
    import platform

    from mesh_events.emit import software

    fields = {"sdm": software().removeprefix("sdm/"), "python": platform.python_version()}
    show(Detail(fields), shown.output)


@command(app, "switch-domain", "sdm switch-domain east", "sdm switch-domain")
def switch_domain(
    shown: Shown,
    name: Annotated[
        str | None,
        typer.Argument(
            help="Domain to act as; 'mesh' is the operator. Default: list those with a key here.",
            autocompletion=completion.domains,
        ),
    ] = None,
) -> None:
    """Set the current domain, which later commands act as."""
    home = mesh_home()
    if name is None:
        chosen = current_domain(home)
        items = [{"domain": one, "current": one == chosen} for one in known_keys(home)]
        empty = f"no signing keys at {home / 'keys'}: register a domain with `sdm domain register`"
        show(Listing(("domain", "current"), items, empty), shown.output)
        return
    key = key_path(home, caller(name).key)
    if not key.exists():
        known = ", ".join(known_keys(home)) or "none"
        raise NotFoundError(
            f"no signing key of {name} at {key}: this home has keys of {known}; "
            f"register {name}, or copy its key file there"
        )
    choose_domain(home, name)
    who = "the operator" if name == MESH_DOMAIN else f"domain {name}"
    note(f"later commands act as {who}")
    show(Detail({"domain": name}), shown.output)
