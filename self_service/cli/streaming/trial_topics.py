"""The topics of a statement's trial: which of them trials made, so that they may be removed.

Others may have a topic or a statement of the same name. What the log says a trial's statement
filled is the trial's, by Kafka's id; nothing else is touched.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mesh_events.errors import MeshError, RefusedError
from processors.clusters.kafka import ClusterAdmin
from projections.image import Image
from projections.statements import DEAD_LETTERS, Statement
from self_service.cli.framework.output import note
from self_service.cli.mesh.context import Mesh
from self_service.cli.schema import subjects
from self_service.cli.topic.readers import users

_SUBJECTS = ("-value", "-key")
_ALONE = ": `--no-compare` switches without a comparison run"
_OR = "; `--no-compare` switches without a comparison run"


def description_of(tried: str) -> str:
    """What a trial's statement says it is for: by it the log's one is known as a trial's."""
    return f"tries a text of {tried}"


@dataclass(frozen=True, slots=True)
class TrialTopics:
    """What one statement of a trial fills: the topic, its dead letters, and their schemas.

    name: the statement's id; tried: of the statement that is tried; topic: the destination.
    """

    mesh: Mesh
    admin: ClusterAdmin
    name: str
    tried: str
    topic: str

    def statement(self, image: Image) -> Statement | None:
        """The trial's statement as the log has it; None if there is none, or another's."""
        found = image.statements.get(self.name)
        if found is None or found.destination != self.topic:
            return None
        return found if found.description == description_of(self.tried) else None

    def require_ours(self, image: Image) -> None:
        """Raise RefusedError where what would be removed is not known to be a trial's.

        `statement_exists` for another statement, `target_taken` for a topic or a schema,
        `topic_in_use` where a product or somebody else relies on it.
        """
        other, found = image.statements.get(self.name), self.statement(image)
        if other is not None and other.stands and found is None:
            raise RefusedError(
                "statement_exists",
                f"{self.name} exists, and a comparison run of {self.tried} needs this name: "
                f"delete it with `sdm streaming sql delete {self.name}`{_OR}",
            )
        self._require_unused(image)
        first = self.admin.topic(self.topic)
        if first is not None and found is not None and first.id == found.destination_topic_id:
            return
        for topic in (self.topic, self.topic + DEAD_LETTERS):
            if self.admin.topic(topic) is not None:
                stands = found is not None and found.stands
                delete = f"`sdm streaming sql delete {self.name}` and " if stands else ""
                raise RefusedError(
                    "target_taken",
                    f"the topic {topic} exists, and no comparison run of {self.tried} is known to "
                    f"have created it: if nobody needs it, {delete}`sdm topic delete {topic}`{_OR}",
                )
        for subject in self._subjects():
            raise RefusedError(
                "target_taken",
                f"the registry has a schema of {subject}, and no comparison run of {self.tried} is "
                f"known to have registered it, which a comparison run would change{_ALONE}",
            )

    def remove(self, image: Image, since: int) -> None:
        """Remove the topics that the trial's statement made, once it is deleted.

        What a person cannot be asked about is left and noted: a topic on which somebody relies by
        now, or whose schema cannot be removed. The topic itself goes last: by it alone the rest is
        known as a trial's.

        Args:
            image: the state after the drop.
            since: offset behind which an added statement is of this run, which found no topics.
        """
        found = self.statement(image)
        if found is None:
            return
        first = self.admin.topic(self.topic)
        made = found.created_generation > since and found.destination_topic_id is None
        if not (made or (first is not None and first.id == found.destination_topic_id)):
            return
        try:
            self._require_unused(image)
            dead = self.topic + DEAD_LETTERS
            if self.admin.topic(dead) is not None:
                self.admin.delete_topic(dead)
            for subject in self._subjects():
                subjects.remove(self.mesh, subject)
        except MeshError as error:
            note(f"{self.topic} was not removed: {error}")
            return
        if first is not None:
            self.admin.delete_topic(self.topic)

    def _require_unused(self, image: Image) -> None:
        for topic in (self.topic, self.topic + DEAD_LETTERS):
            if product := image.carried.get(topic):
                raise RefusedError(
                    "topic_in_use",
                    f"{topic} carries the product {product}, and a comparison run of {self.tried} "
                    f"would fill it{_ALONE}",
                )
            used = [one for one in users(image, topic) if one != f"statement {self.name}"]
            if used:
                raise RefusedError(
                    "topic_in_use",
                    f"{topic} is read or filled by {', '.join(used)}, and a comparison run of "
                    f"{self.tried} would remove it: delete that first{_OR}",
                )

    def _subjects(self) -> Sequence[str]:
        """Those that have a schema."""
        names = [self.topic + side for side in _SUBJECTS]
        return [one for one in names if self.mesh.registry.latest(one) is not None]
