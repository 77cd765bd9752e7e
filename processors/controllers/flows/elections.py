"""Refuses a topic whose leader may be a replica that lacks records. Pure.

Where a link or a statement goes on is told by offsets alone. After such an election records that
were read are gone, and later ones have their offsets: nothing shows that once there are as many.
"""

from processors.clusters.kafka import Topic
from spark_streams.errors import CopyError

UNCLEAN = "source_unclean"
_SETTING = "unclean.leader.election.enable"


def require_clean(topic: Topic, cluster: str, nothing: str, restart: str) -> None:
    """Raise CopyError `source_unclean` where the topic or its cluster allows unclean elections.

    nothing, restart: how what reads it begins with nothing that it wrote, and how it goes on, in
        the words of a refusal.
    """
    if topic.config.get(_SETTING, "false") != "false":
        raise CopyError(
            UNCLEAN,
            f"the topic {topic.name} on cluster {cluster} has {_SETTING}="
            f"{topic.config[_SETTING]}: after such an election its offsets may mean other records, "
            f"which nothing shows. Set it to false; then {restart}, or, where such an election "
            f"took place, {nothing}",
        )
