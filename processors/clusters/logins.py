"""Whose a SCRAM login is: the mesh sets the passwords of those alone that it has issued itself.

Kafka's only call sets the password of any user, an administrator's too. So a login that exists is
touched only if it is proven to be the mesh's: the log says that it was issued there, or a password
that the mesh has stored for it lets in, or the mesh has closed it. A password is stored before it
is set, so that a worker that ends in between leaves this proof behind.
"""

from collections.abc import Iterable

from mesh_events.errors import RefusedError
from processors.clusters.kafka import ClusterAdmin, Login
from projections.identity import LOGIN_TAKEN


def require_ours(
    admin: ClusterAdmin, principal: str, stored: Iterable[str], *, issued: bool = False, place: str
) -> None:
    """Raise `login_taken` unless the mesh may set the password of a principal.

    Args:
        admin: the cluster.
        principal: the SCRAM user.
        stored: passwords that the mesh has stored for it, before this call.
        issued: whether the log says that the mesh has issued credentials for it there.
        place: where the password lies that the mesh would set, for people.

    Raises:
        RefusedError: `login_taken`; nothing was changed.
        InfrastructureError: the cluster does not answer.
    """
    if issued or admin.login_of(principal) is not Login.OPEN:
        return
    if any(admin.lets_in(principal, password) for password in stored):
        return
    raise RefusedError(
        LOGIN_TAKEN,
        f"cluster {admin.name} has a login {principal} that this mesh has not issued, and its "
        "password stays as it is: use another name; or, if the login is to be the mesh's, let the "
        f"administrator of the cluster give it the password in {place}",
    )
