"""The topics that captured tables fill, through the transforms of a connector's config. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from projections.connectors import patterns
from projections.connectors.own_transforms import EVENT_ROUTER
from projections.connectors.values import PATTERN, ROUTED

Config = Mapping[str, str]
_KAFKA = "org.apache.kafka.connect.transforms"
REGEX_ROUTER = f"{_KAFKA}.RegexRouter"
TOPIC_MATCHES = f"{_KAFKA}.predicates.TopicNameMatches"
MOST_ROUTERS = 3
MOST_OF_PATTERNS = 1000
"""Characters of all regular expressions of a config together."""
LONGEST_TOPIC = 249
"""Characters of a topic's name in Kafka."""
_NOT_LEGAL = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True)
class _Router:
    """A transform that gives a record another topic.

    pattern, replacement: a RegexRouter's; the pattern is None where the topic follows from the row.
    predicate: the pattern of the topics that it is for, None for all.
    negate: whether it is for all other topics.
    """

    pattern: str | None
    replacement: str
    predicate: str | None
    negate: bool

    def is_for(self, topic: str) -> bool:
        """Whether records of a topic pass it."""
        if self.predicate is None:
            return True
        return patterns.matches(self.predicate, topic) is not self.negate

    def topic(self, before: str, *, of_rows: bool) -> str | None:
        """The topic after it; None where that follows from the row."""
        if not self.is_for(before):
            return before
        if self.pattern is None:
            # an outbox's router passes on what is no change of a row
            return None if of_rows else before
        return patterns.replaced(self.pattern, self.replacement, before)


def topics(
    config: Config, sources: Iterable[tuple[str, str]], *, of_rows: bool = True
) -> list[tuple[str, str]]:
    """(source, topic) of each source whose topic follows from the config.

    That of an outbox follows from its rows. None is known where a router is not allowed.

    Args:
        config: of a Debezium connector.
        sources: (source, name), as `public.users`, `east.shop.public.users`.
        of_rows: whether their records are changes of rows.
    """
    routers = _routers(config)
    if routers is None:
        return []
    found = ((source, _routed(routers, name, of_rows=of_rows)) for source, name in sources)
    return [(source, topic) for source, topic in found if topic is not None]


def of_table(name: str) -> str:
    """The topic that Debezium makes of prefix.schema.table.

    Each character that Kafka does not allow becomes _, one of more than 16 bits becomes two, and
    what is too long is cut off.
    """
    if not _NOT_LEGAL.search(name):
        return name[:LONGEST_TOPIC]
    wide = "".join("__" if ord(one) > 0xFFFF else one for one in name)
    return _NOT_LEGAL.sub("_", wide)[:LONGEST_TOPIC]


def router_faults(config: Config) -> Iterator[str]:
    """What is wrong with the routers of a config together, a sentence each."""
    steps = list(_steps(config))
    if sum(kind == REGEX_ROUTER for _, kind in steps) > MOST_ROUTERS:
        yield f"transforms: at most {MOST_ROUTERS} of the type {REGEX_ROUTER} are allowed"
        return
    size = sum(len(value) for name, value in config.items() if _is_pattern(name))
    if size > MOST_OF_PATTERNS:
        yield (
            f"transforms: the regular expressions have {size} characters together, at most "
            f"{MOST_OF_PATTERNS} are allowed: shorten them"
        )
        return
    for of, kind in steps:
        chosen = config.get(f"{of}.predicate")
        if kind == EVENT_ROUTER:
            yield from _missing(
                f"{of}.route.topic.replacement",
                config.get(f"{of}.route.topic.regex"),
                config.get(f"{of}.route.topic.replacement", "${routedByValue}"),
            )
            continue
        regex, replacement = config.get(f"{of}.regex", ""), config.get(f"{of}.replacement", "")
        yield from _missing(f"{of}.replacement", regex, replacement)
        if chosen is not None and config.get(f"predicates.{chosen}.type") != TOPIC_MATCHES:
            yield (
                f"{of}.predicate: name one of the type {TOPIC_MATCHES}: by any other, records of "
                "one table would go to two topics"
            )


def _is_pattern(name: str) -> bool:
    of, _, setting = name.partition(".")
    return of in ("transforms", "predicates") and setting.endswith((".regex", ".pattern"))


def _missing(setting: str, pattern: str | None, replacement: str) -> Iterator[str]:
    """The groups that a replacement names and its pattern lacks."""
    missing = patterns.missing_groups(pattern, replacement)
    if missing and (pattern is None or PATTERN.fits(pattern)):
        yield f"{setting}: its regular expression has no group for {', '.join(missing)}"


def _routed(routers: list[_Router], name: str, *, of_rows: bool) -> str | None:
    topic: str | None = of_table(name) if of_rows else name
    for router in routers:
        if topic is None or len(topic) > LONGEST_TOPIC:
            break
        topic = router.topic(topic, of_rows=of_rows)
    return topic


def _routers(config: Config) -> list[_Router] | None:
    """The transforms that change topics, in order; None where one of them is not allowed."""
    if any(router_faults(config)):
        return None
    found = []
    for of, kind in _steps(config):
        chosen, predicate = config.get(f"{of}.predicate"), None
        if chosen is not None:
            if config.get(f"predicates.{chosen}.type") != TOPIC_MATCHES:
                # an outbox's, which the records of a table need not pass
                continue
            predicate = config.get(f"predicates.{chosen}.pattern", "")
        pattern = config.get(f"{of}.regex", "") if kind == REGEX_ROUTER else None
        replacement = config.get(f"{of}.replacement", "")
        if not all(one is None or PATTERN.fits(one) for one in (predicate, pattern)):
            return None
        if pattern is not None and not ROUTED.fits(replacement):
            return None
        negate = config.get(f"{of}.negate") == "true"
        found.append(_Router(pattern, replacement, predicate, negate))
    return found


def _steps(config: Config) -> Iterator[tuple[str, str]]:
    """(transforms.NAME, class) of the transforms that change topics, in order."""
    for name in config.get("transforms", "").split(","):
        kind = config.get(f"transforms.{name.strip()}.type", "")
        if kind in (REGEX_ROUTER, EVENT_ROUTER):
            yield f"transforms.{name.strip()}", kind
