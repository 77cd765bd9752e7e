"""What a mesh begins with: keys, topics, its own principals, and the log's first records.

`python -m processors.bootstrap` can be run again at any time: it looks first, and does what is
missing. The root key signs the foundation and is needed afterwards only to change the mesh's
own keys; keep it offline outside a local mesh.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from mesh_events import avro, topics
from mesh_events.decisions import MeshFounded, SchemaIntroduced
from mesh_events.emit import LogWriter, mesh_meta
from mesh_events.errors import ConfigurationError, MeshError, StateFaultError
from mesh_events.intents import ClusterRegistered
from mesh_events.meta import Meta, derived_id, new_id
from mesh_events.read import LogReader
from mesh_events.schema.registry import Registry
from mesh_events.settings import Profile, key_path
from mesh_events.signing import SigningKey
from mesh_events.vocabulary import ALL
from processors.clusters import logins
from processors.clusters.kafka import ClusterAdmin, KafkaAdmin
from processors.clusters.rights import Binding, Operation, Resource
from processors.clusters.secrets import SecretStore
from processors.controllers.flows.ends import until
from processors.own_topics.described import described, verify
from processors.own_topics.wanted import TOPICS, Durability
from processors.settings import GOVERNOR, OPERATOR, WorkerSettings
from projections.identity import Cluster, Role
from projections.image import Image
from projections.replay import replay


def rights() -> frozenset[Binding]:
    """What the mesh's own principals may do on the governance cluster, and nothing more."""
    read, write, describe = Operation.READ, Operation.WRITE, Operation.DESCRIBE
    topic, group = Resource.TOPIC, Resource.GROUP
    governor = {
        Binding(GOVERNOR, read, topic, "mesh.", prefixed=True),
        Binding(GOVERNOR, read, group, GOVERNOR),
        Binding(GOVERNOR, read, group, f"{GOVERNOR}.", prefixed=True),
        # looked at each time that the worker starts
        Binding(GOVERNOR, Operation.DESCRIBE_CONFIGS, topic, "mesh.", prefixed=True),
        *(Binding(GOVERNOR, write, topic, name) for name in TOPICS),
    }
    operator = {
        Binding(OPERATOR, read, topic, "mesh.", prefixed=True),
        Binding(OPERATOR, describe, topic, "mesh.", prefixed=True),
        Binding(OPERATOR, read, group, f"{OPERATOR}.", prefixed=True),
        Binding(OPERATOR, write, topic, topics.GOVERNANCE),
    }
    return frozenset(governor | operator)


def bootstrap(settings: WorkerSettings) -> Profile:
    """Found the mesh, or complete a foundation that was cut off; returns its public profile.

    Raises:
        ConfigurationError: a topic that exists is less durable than it is to be.
    """
    home = settings.cluster(settings.governance_cluster)
    admin = KafkaAdmin(home.name, settings.administration(home.name))
    _prepare(admin, settings)
    registry = settings.registry()
    with LogReader(admin.login) as reader:
        image = replay(reader.to_end())
    keys = _keys(settings.home, image)
    _same_keys(image, keys)
    root = image.identity.root or keys["root"].public
    with LogWriter(admin.login, registry, keys.get("root", keys["governor"]), root) as writer:
        _introduce(writer, registry, image)
        if not image.identity.mesh:
            writer.append(_foundation(settings, keys))
        for name in settings.clusters:
            _register(writer, settings, name, image, keys["operator"])
    profile = Profile(
        mesh=settings.mesh,
        governance_cluster=home.name,
        bootstrap_servers=home.bootstrap_servers,
        registry_url=settings.registry_url,
        root_key=root,
        governor_key=keys["governor"].public,
        tls_ca=_beside(settings.tls_ca, settings.home),
        tls_certificate=_beside(settings.tls_certificate, settings.home),
    )
    profile.save(settings.home)
    return profile


def _beside(path: Path | None, home: Path) -> str | None:
    """A file as the profile in `home` names it: relative where it lies there, as in a copy."""
    if path is None:
        return None
    absolute, home = path.absolute(), home.absolute()
    return str(absolute.relative_to(home) if absolute.is_relative_to(home) else absolute)


def _prepare(admin: KafkaAdmin, settings: WorkerSettings) -> None:
    _make_topics(admin, settings.durability)
    for principal in (GOVERNOR, OPERATOR):
        _ensure_login(admin, principal, settings.secrets())
    admin.grant(rights())


def _make_topics(admin: KafkaAdmin, durability: Durability) -> None:
    """Create what is missing; what is there is compared, and never changed."""
    brokers = admin.ping()
    if brokers < durability.replicas:
        raise ConfigurationError(
            f"cluster {admin.name} has {brokers} brokers, and the mesh's own topics are to have "
            f"{durability.replicas} replicas: add brokers, or set SDM_REPLICATION_FACTOR and "
            "SDM_MIN_INSYNC_REPLICAS to less where losing a broker may lose the log"
        )
    for name in TOPICS:
        admin.create_topic(name, 1, durability.config(name), durability.replicas)
    until(lambda: described(admin.login).keys() >= TOPICS.keys() or None, "the topics to appear")
    verify(admin.login, durability)


def _ensure_login(admin: ClusterAdmin, principal: str, secrets: SecretStore) -> None:
    """A login whose password this home holds; another mesh's of the same name is left alone."""
    cluster = admin.name
    for password in secrets.known(cluster, principal):
        if admin.lets_in(principal, password):
            secrets.promote(cluster, principal, password)
            return
    password, place = secrets.prepare(cluster, principal), secrets.prepared(cluster, principal)
    logins.require_ours(admin, principal, (), place=place)
    admin.set_password(principal, password)
    secrets.promote(cluster, principal, password)


def _keys(home: Path, image: Image) -> dict[str, SigningKey]:
    """The mesh's own keys; once the mesh is founded, the root's may be kept elsewhere."""
    names = ["root", "operator", "governor", "controller"]
    if image.identity.mesh and not key_path(home, "root").exists():
        names.remove("root")
    return {name: SigningKey.load_or_generate(key_path(home, name)) for name in names}


def _same_keys(image: Image, keys: Mapping[str, SigningKey]) -> None:
    """Refuse to go on with keys that the log does not know: nothing signed with them counts."""
    if image.identity.root is None:
        return
    for name, key in keys.items():
        role = Role(name)
        known = [one.public for one in image.identity.keys.values() if one.role is role]
        if known and not image.identity.has_role(key.public, role):
            raise StateFaultError(
                f"the log knows other {name} keys ({', '.join(known)}) than the one in this home "
                f"({key.public}): bring back the keys that belong to the log, or begin an empty one"
            )


def _introduce(writer: LogWriter, registry: Registry, image: Image) -> None:
    """Introduce every schema of this version; the schema of introductions comes first."""
    first = SchemaIntroduced.type_name()
    for name in (first, *(other for other in ALL if other != first)):
        schema_id = registry.register(name)
        if schema_id in image.schemas:
            continue
        text = avro.text_of(name)
        writer.append(
            SchemaIntroduced(
                meta=_meta(derived_id(avro.fingerprint(text), "introduce", schema_id)),
                schema_id=schema_id,
                name=avro.subject(name),
                fingerprint=avro.fingerprint(text),
                schema_text=text,
            )
        )


def _foundation(settings: WorkerSettings, keys: Mapping[str, SigningKey]) -> MeshFounded:
    return MeshFounded(
        meta=_meta(derived_id(keys["root"].public, "found", 0)),
        mesh=settings.mesh,
        governance_cluster=settings.governance_cluster,
        operator_key=keys["operator"].public,
        governor_key=keys["governor"].public,
        controller_key=keys["controller"].public,
    )


def _register(
    writer: LogWriter, settings: WorkerSettings, name: str, image: Image, operator: SigningKey
) -> None:
    """Register a cluster unless the log knows it so, or is about to."""
    wanted = settings.cluster(name)
    event = ClusterRegistered(
        meta=_meta(new_id()),
        cluster=name,
        bootstrap_servers=wanted.bootstrap_servers,
        admin_user=wanted.admin_user,
        admin_password=wanted.admin_password,
        registry_url=wanted.registry_url,
        registry_user=wanted.registry_user,
        registry_password=wanted.registry_password,
    )
    known = image.identity.clusters.get(name)
    waiting = [
        _place(entry.event)
        for entry in image.intents.undecided.values()
        if isinstance(entry.event, ClusterRegistered) and entry.event.cluster == name
    ]
    if _place(event) not in waiting and (known is None or _place(known) != _place(event)):
        writer.append(event, operator)


def _place(cluster: ClusterRegistered | Cluster) -> tuple[str | None, ...]:
    """What makes a cluster another one than before."""
    registry = (cluster.registry_url, cluster.registry_user, cluster.registry_password)
    return (cluster.bootstrap_servers, cluster.admin_password, *registry)


def _meta(identity: str) -> Meta:
    """`meta` of what the founder says."""
    return mesh_meta(identity, OPERATOR)


def main() -> int:
    """Entry point of `python -m processors.bootstrap`."""
    try:
        profile = bootstrap(WorkerSettings.load())
    except MeshError as error:
        sys.stderr.write(f"the mesh could not be founded: {error}\n")
        return 1
    sys.stdout.write(f"mesh {profile.mesh} on {profile.bootstrap_servers}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
