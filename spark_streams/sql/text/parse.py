"""A statement's text as it is understood: destination, stream, tables, and expressions as trees.

Pure, bounded in time, and without knowledge of any topic. What comes out is small to pickle: plain
frozen objects. The words are read in `words`, expressions in `grammar`.
"""

from collections.abc import Iterator

from spark_streams.sql.errors import Place, SqlError
from spark_streams.sql.functions import calls
from spark_streams.sql.text import clauses
from spark_streams.sql.text.grammar import QUERIES, SUBQUERY, Expressions
from spark_streams.sql.text.statement import Joined, Source, Statement
from spark_streams.sql.text.syntax import Words
from spark_streams.sql.text.tree import Name, Node, Selected, Star
from spark_streams.sql.text.words import LONGEST, Kind, words_of

__all__ = ["LONGEST", "Joined", "Source", "Statement", "parse"]
MOST_JOINS = 32
"""Each holds a whole table in memory, and each name is looked up in all of them."""
_FORM = "write INSERT INTO topic SELECT ... FROM topic"


def parse(text: str) -> Statement:
    """Understand a statement.

    Raises:
        SqlError: `sql_syntax`, `sql_not_supported` or `unknown_function`.
    """
    return _Reader(text).statement()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._words = Words(text, words_of(text))
        self._expressions = Expressions(self._words)

    def statement(self) -> Statement:
        words = self._words
        if words.at_end or words.sees(";"):
            raise SqlError("sql_not_supported", "one statement is expected, not an empty text")
        destination = self._destination()
        if not words.sees("SELECT"):
            if why := clauses.instead_of_select(words.current.upper, _FORM):
                raise words.refused(why)
            if words.at_end:
                raise SqlError("sql_syntax", f"there is no SELECT: {_FORM}")
            raise words.unexpected()
        words.next()
        self._refuse_clause(clauses.BEHIND_SELECT)
        select = tuple(self._list())
        self._refuse_clause(clauses.BEHIND_LIST)
        if not words.sees("FROM"):
            if words.at_end:
                raise SqlError("sql_syntax", "there is no FROM: name the topic to read")
            raise words.unexpected()
        words.next()
        stream, of_rows = self._from()
        joined = tuple(self._joins())
        where = None
        if words.takes("WHERE"):
            where = self._sound(self._expressions.expression())
        self._end()
        self._require_different(stream, joined)
        if of_rows and joined:
            raise SqlError(
                "sql_not_supported",
                "TABLE(...) with JOIN: a row of the result would not follow a change of the joined "
                "row",
                joined[0].source.place,
            )
        return Statement(self._text, destination, stream, joined, select, where, of_rows)

    def _sound(self, node: Node) -> Node:
        """The expression; raises where it may become too large, or reads a clock."""
        calls.require_sound(
            node,
            lambda why, at: SqlError("sql_not_supported", why, Place.of(self._text, at.start)),
        )
        return node

    def _refuse_clause(self, known: object) -> None:
        if why := clauses.refusal(self._words, known):
            raise self._words.refused(why)

    def _destination(self) -> Source | None:
        words = self._words
        if words.sees("INSERT", "OVERWRITE"):
            raise words.refused(
                "INSERT OVERWRITE: a topic is only ever appended to, use INTO", words.ahead(1)
            )
        if not words.takes("INSERT"):
            return None
        words.expect("INTO")
        words.takes("TABLE")
        found = self._named()
        if words.sees("(") and words.ahead(1).upper not in QUERIES:
            words.next()
            raise words.refused(
                "a list of columns behind the destination: name them in the SELECT, with AS"
            )
        return found

    def _named(self) -> Source:
        """A topic's or product's name, with dots."""
        words, first = self._words, self._words.current
        parts = [self._expressions.identifier().text]
        while words.takes("."):
            parts.append(self._expressions.identifier().text)
        short = parts[-1].rpartition(".")[2]
        return Source(".".join(parts), short, words.place(first))

    def _from(self) -> tuple[Source, bool]:
        words = self._words
        if not words.sees("TABLE", "("):
            return self._source(), False
        words.next()
        words.next()
        why = "TABLE(...): name one topic or product in it"
        if words.current.kind not in (Kind.NAME, Kind.QUOTED):
            raise words.refused(why)
        first, named = words.current, self._named()
        if words.sees("("):
            raise words.refused(clauses.of_source(named.name.upper()), first)
        if not words.sees(")"):
            raise words.refused(why, first)
        words.next()
        return self._aliased(named), True

    def _source(self) -> Source:
        words, word = self._words, self._words.current
        if words.sees("(") or words.sees("LATERAL"):
            raise words.refused(SUBQUERY)
        if word.upper in ("VALUES", "UNNEST"):
            raise words.refused(clauses.of_source(word.upper))
        if word.upper in clauses.STOPS:
            raise words.unexpected()
        named = self._named()
        if words.sees("("):
            raise words.refused(clauses.of_source(named.name.upper()), word)
        return self._aliased(named)

    def _aliased(self, source: Source) -> Source:
        words = self._words
        self._refuse_clause(clauses.BEHIND_SOURCE)
        if words.takes("AS") or self._is_alias():
            alias = self._expressions.identifier().text
            source = Source(source.name, alias, source.place)
        self._refuse_clause(clauses.BEHIND_SOURCE)
        if words.sees("("):
            raise words.refused("a source is a name, and AS another one")
        return source

    def _is_alias(self) -> bool:
        word = self._words.current
        if word.kind is Kind.QUOTED:
            return True
        return word.kind is Kind.NAME and word.upper not in clauses.STOPS

    def _joins(self) -> Iterator[Joined]:
        words, joins = self._words, 0
        while True:
            if words.sees(","):
                raise words.refused(clauses.join("CROSS"), words.ahead(1))
            kinds: list[str] = []
            while words.current.upper in clauses.JOIN_KINDS:
                kinds.append(words.next().upper)
            if not kinds and not words.sees("JOIN"):
                return
            words.expect("JOIN")
            joins += 1
            if joins > MOST_JOINS:
                raise words.refused(
                    f"more than {MOST_JOINS} joins: join some in a statement before", words.before
                )
            kind = " ".join(kinds)
            if kind not in ("", "INNER", "LEFT", "LEFT OUTER"):
                raise words.refused(clauses.join(kind))
            if words.sees("TABLE", "("):
                raise words.refused(
                    "JOIN TABLE(...): what is joined is a table, name it alone", words.ahead(2)
                )
            source = self._source()
            if words.sees("USING"):
                raise words.refused("USING: write ON stream.key = table.key")
            # without ON no key is named: that is told where keys are known
            on = self._sound(self._expressions.expression()) if words.takes("ON") else None
            yield Joined(source, kind.startswith("LEFT"), on)

    def _list(self) -> Iterator[Selected]:
        words = self._words
        while True:
            yield self._item()
            if not words.takes(","):
                return

    def _item(self) -> Selected:
        words, start = self._words, self._words.current.start
        star = self._star()
        if star is not None:
            return Selected(star, start=star.start, end=star.end)
        this = self._sound(self._expressions.expression())
        name = None
        if words.takes("AS") or self._is_alias():
            if words.sees("("):
                raise words.refused("several names behind AS: a column has one")
            name = self._expressions.identifier().text
        return Selected(this, name, start=start, end=words.before.end)

    def _star(self) -> Star | None:
        """`*` or `alias.*`; None for anything else."""
        words, start = self._words, self._words.current.start
        alias = None
        if words.current.kind in (Kind.NAME, Kind.QUOTED) and words.ahead(1).upper == ".":
            if words.ahead(2).upper != "*":
                return None
            alias = words.next().text
            words.next()
        if not words.takes("*"):
            return None
        end = words.before.end
        if words.sees("REPLACE") or words.sees("RENAME"):
            raise words.refused("* REPLACE: name the columns, with AS")
        if not words.takes("EXCEPT"):
            return Star(alias, start=start, end=end)
        words.expect("(")
        excepted = [self._excepted()]
        while words.takes(","):
            excepted.append(self._excepted())
        return Star(alias, tuple(excepted), start=start, end=words.expect(")").end)

    def _excepted(self) -> Name:
        word = self._expressions.identifier()
        return Name((word.text,), start=word.start, end=word.end)

    def _end(self) -> None:
        words = self._words
        self._refuse_clause(clauses.AT_END)
        more = words.takes(";")
        while words.takes(";"):
            pass
        if words.at_end:
            return
        if more:
            raise words.refused("one statement is expected, not 2 statements")
        raise words.unexpected()

    def _require_different(self, stream: Source, joined: tuple[Joined, ...]) -> None:
        seen = {stream.alias.lower()}
        for source in (one.source for one in joined):
            if source.alias.lower() in seen:
                raise SqlError(
                    "sql_not_supported",
                    f"two sources are called {source.alias}: give one another name, with AS",
                    source.place,
                )
            seen.add(source.alias.lower())
