"""Rules for clusters, domains, keys, applications and credentials."""

import re

from mesh_events.intents import (
    ApplicationRegistered,
    ClusterRegistered,
    CredentialsRequested,
    DomainRegistered,
    KeyRegistered,
    KeyRevoked,
    domain_of,
    intents_login,
)
from mesh_events.signing import is_proven, is_public_key, is_weak_key
from projections.deciding.verdict import Accepted, DecisionContext, Verdict, require
from projections.identity import Role
from projections.quotas.kinds import Kind
from projections.rules import logins, names
from projections.rules.parties import require_operator
from projections.rules.quotas import require_room
from projections.rules.registry import judge

CLUSTER_REACHABLE = "cluster_reachable"
_ADDRESS = re.compile(r"https?://[^\s/@?#]+(/[^\s@?#]*)?")
_REFERENCE = re.compile(r"(env:[A-Za-z_][A-Za-z0-9_]*|file:/.+)")


def _speaks_for(context: DecisionContext, domain: str) -> None:
    require(
        context.domain == domain or context.key.role is Role.OPERATOR,
        "not_your_domain",
        f"{context.domain} may not speak for {domain}: switch to {domain}, or ask its owner",
    )


@judge.register
def _(intent: ClusterRegistered, context: DecisionContext) -> Verdict:
    require_operator(context, "register clusters")
    if intent.cluster not in context.image.identity.clusters:
        names.cluster(intent.cluster)
    require(
        intent.bootstrap_servers.strip(),
        "missing_text",
        "bootstrap_servers is empty: give host:port",
    )
    require(intent.admin_user.strip(), "missing_text", "admin_user is empty: name a login")
    logins.no_principal_of_the_mesh(context, intent.admin_user)
    require(
        _REFERENCE.fullmatch(intent.admin_password),
        "secret_in_event",
        "admin_password must be a reference, env:NAME or file:/path, never the password",
    )
    _own_registry(intent)
    return context.after(CLUSTER_REACHABLE)


def _own_registry(intent: ClusterRegistered) -> None:
    """All that is needed to write there, or nothing."""
    given = (intent.registry_url, intent.registry_user, intent.registry_password)
    if given == (None, None, None):
        return
    require(
        all(one and one.strip() for one in given),
        "missing_text",
        "a registry of the cluster's own needs registry_url, registry_user and registry_password: "
        "give all three, or none",
    )
    require(
        _ADDRESS.fullmatch(intent.registry_url or ""),
        "invalid_address",
        f"registry_url is {intent.registry_url!r}: give http://host:port/path, without a password",
    )
    require(
        _REFERENCE.fullmatch(intent.registry_password or ""),
        "secret_in_event",
        "registry_password must be a reference, env:NAME or file:/path, never the password",
    )


@judge.register
def _(intent: DomainRegistered, context: DecisionContext) -> Verdict:
    require_operator(context, "register domains")
    names.domain(intent.domain)
    logins.not_an_administrator(context, intent.domain)
    logins.not_an_administrator(context, intents_login(intent.domain))
    names.text(intent.owner, "the owner")
    names.note(intent.description, "the description")
    require(
        intent.domain not in context.image.identity.domains,
        "domain_exists",
        f"the domain {intent.domain} is registered already",
    )
    known = context.image.identity.clusters
    require(
        intent.cluster in known,
        "unknown_cluster",
        f"there is no cluster {intent.cluster}: known are "
        f"{', '.join(sorted(known)) or 'none yet: is it still starting?'}",
    )
    _new_key(context, intent)
    return Accepted()


@judge.register
def _(intent: KeyRegistered, context: DecisionContext) -> Verdict:
    _speaks_for(context, intent.domain)
    _known_domain(context, intent.domain)
    _new_key(context, intent)
    require_room(context, Kind.KEYS, intent.domain)
    return Accepted()


@judge.register
def _(intent: KeyRevoked, context: DecisionContext) -> Verdict:
    _speaks_for(context, intent.domain)
    _known_domain(context, intent.domain)
    names.text(intent.reason, "the reason")
    key = context.image.identity.keys.get(intent.public_key)
    require(
        key is not None and key.domain == intent.domain and key.revoked is None,
        "unknown_key",
        f"{intent.domain} has no valid key {intent.public_key}",
    )
    return Accepted()


@judge.register
def _(intent: ApplicationRegistered, context: DecisionContext) -> Verdict:
    names.application(intent.application)
    _speaks_for(context, domain_of(intent.application))
    _known_domain(context, domain_of(intent.application))
    logins.not_an_administrator(context, intent.application)
    names.note(intent.description, "the description")
    require(
        intent.application not in context.image.identity.applications,
        "application_exists",
        f"the application {intent.application} is registered already",
    )
    require_room(context, Kind.APPLICATIONS, domain_of(intent.application))
    return Accepted()


@judge.register
def _(intent: CredentialsRequested, context: DecisionContext) -> Verdict:
    _speaks_for(context, domain_of(intent.principal))
    require(
        (intent.principal, intent.cluster) in context.image.identity.credentials,
        "unknown_principal",
        f"{intent.principal} has no login on cluster {intent.cluster}: "
        "register the application first, and ask for its home cluster",
    )
    return Accepted()


def _known_domain(context: DecisionContext, domain: str) -> None:
    require(
        domain in context.image.identity.domains,
        "unknown_domain",
        f"there is no domain {domain}: list them, or register it first",
    )


def _new_key(context: DecisionContext, intent: DomainRegistered | KeyRegistered) -> None:
    public, identity = intent.public_key, context.image.identity
    require(
        not is_weak_key(public),
        "weak_key",
        "anybody can sign with this public_key: make a key, `sdm key register --file FILE` does",
    )
    require(is_public_key(public), "invalid_key", "public_key is not a base64url Ed25519 key")
    require(
        public not in identity.keys,
        "key_exists",
        "this public key is registered already; a key speaks for one domain, once",
    )
    require(
        is_proven(identity.root or "", intent.domain, public, intent.proof),
        "invalid_proof",
        f"the key has not signed that it is to speak for {intent.domain} in this mesh: who holds "
        f"it makes the proof with `sdm key prove --file FILE --for {intent.domain}`",
    )
