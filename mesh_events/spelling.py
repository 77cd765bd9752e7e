"""What somebody probably meant who typed a name that is not there."""

from collections.abc import Iterable
from difflib import get_close_matches

_ALIKE = 0.6


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like `name`, None where none is.

    Of ids, `<domain>.<name>`, the same name in another domain comes first, then one that is like it
    in the same domain: the domain that they share makes no two names alike.
    """
    candidates = {one.lower(): one for one in sorted(known)}
    domain, dot, local = name.lower().rpartition(".") if "." in name else ("", "", name.lower())
    elsewhere = [one for one in candidates if one.rpartition(".")[2] == local]
    if elsewhere:
        return candidates[elsewhere[0]]
    prefix = domain + dot
    beside = {one.removeprefix(prefix): one for one in candidates if one.startswith(prefix)}
    close = get_close_matches(local, beside, 1, _ALIKE)
    return candidates[beside[close[0]]] if close else None


def asked(name: str, known: Iterable[str]) -> str:
    """`did you mean ...? Else `, the beginning of advice; "" where nothing is like it."""
    near = nearest(name, known)
    return f"did you mean {near}? Else " if near else ""
