"""What was said before a leadership: how much of it a worker decides before it is ready.

A domain may have thousands of undecided intents. Others have their decisions in turn meanwhile, so
one of each domain shows that its turns come.
"""

from collections.abc import Callable, Container

from projections.image import Image

MESH = "mesh/"
"""How `party_of` begins for an operator, and for any other part of the mesh."""


class Backlog:
    """What readiness waits for: all that the mesh and operators said, and the first of each domain.

    Args:
        image: holds the leadership's start, and nothing that was decided in it.
        epoch: offset of that start.
    """

    def __init__(self, image: Image, epoch: int) -> None:
        self._of_mesh: list[int] = []
        firsts: dict[str, int] = {}
        for offset, entry in sorted(image.intents.undecided.items()):
            if offset > epoch:
                break
            party = image.identity.party_of(entry.signer)
            if party.startswith(MESH):
                self._of_mesh.append(offset)
            else:
                firsts.setdefault(party, offset)
        runs = image.intents.unusable.in_order(1)
        self._firsts = [*firsts.values(), *(run.first for run in runs if run.first < epoch)]

    def is_open(self, image: Image, waiting: Callable[[], Container[int]]) -> bool:
        """Whether some of it is neither decided nor, of a domain's, waits for a check.

        A check may need what does not answer, which must not let others wait.
        """
        if any(image.intents.is_open(offset) for offset in self._of_mesh):
            return True
        left = [offset for offset in self._firsts if image.intents.is_open(offset)]
        if not left:
            return False
        judged = waiting()
        return any(offset not in judged for offset in left)
