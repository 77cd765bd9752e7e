"""Upper bounds as polynomials in the sizes of what a record holds. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

MOST_TERMS = 400
"""Terms of a bound; one with more is replaced by a coarser one."""


class Measure(Enum):
    """What is counted of a value."""

    BYTES = "bytes"
    ELEMENTS = "elements"
    """Of arrays and maps, at all levels together; 1 at most for any other value."""


class Symbol(NamedTuple):
    """A measure of a column, of a lambda's parameter, or of the whole record.

    alias: of the column's source; "" for a parameter, whose number is in `path`.
    path: () for the whole record.
    """

    measure: Measure
    alias: str
    path: tuple[str, ...]


RECORD = Symbol(Measure.BYTES, "", ())
"""Bytes of the record and of the rows found for it: no other symbol is more."""
Term = tuple[Symbol, ...]
"""Symbols that are multiplied with each other, in their order; () is 1."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A sum of terms, each with a factor that is positive."""

    terms: Mapping[Term, int] = field(default_factory=dict)

    @classmethod
    def of(cls, number: int) -> "Amount":
        """A number."""
        return cls({(): number} if number > 0 else {})

    @classmethod
    def symbol(cls, symbol: Symbol) -> "Amount":
        """A measure by itself."""
        return cls({(symbol,): 1})

    @property
    def degree(self) -> int:
        """How many measures are multiplied with each other at most."""
        return max(map(len, self.terms), default=0)

    def __add__(self, other: "Amount | int") -> "Amount":
        other = Amount.of(other) if isinstance(other, int) else other
        terms = dict(self.terms)
        for term, factor in other.terms.items():
            terms[term] = terms.get(term, 0) + factor
        return _bounded(Amount(terms))

    def __mul__(self, other: "Amount | int") -> "Amount":
        if isinstance(other, int):
            return Amount({term: factor * other for term, factor in self.terms.items() if other})
        left, right = self, other
        if len(left.terms) * len(right.terms) > MOST_TERMS:
            left, right = left.coarse(), right.coarse()
        terms: dict[Term, int] = {}
        for one, times in left.terms.items():
            for two, more in right.terms.items():
                term = tuple(sorted(one + two, key=_order))
                terms[term] = terms.get(term, 0) + times * more
        return Amount(terms)

    def most(self, other: "Amount") -> "Amount":
        """A bound of both: of each term the larger factor."""
        terms = dict(self.terms)
        for term, factor in other.terms.items():
            terms[term] = max(terms.get(term, 0), factor)
        return _bounded(Amount(terms))

    def coarse(self) -> "Amount":
        """A bound with few terms: columns of a record are together no longer than it.

        Terms with a lambda's parameter stay: what it is an element of may be longer.
        """
        terms: dict[Term, int] = {}
        columns: dict[tuple[Measure, str, str], int] = {}
        for term, factor in self.terms.items():
            if any(not one.alias and one.path for one in term):
                terms[term] = factor
            elif len(term) == 1 and term[0] != RECORD:
                [one] = term
                root = (one.measure, one.alias, one.path[0])
                columns[root] = columns.get(root, 0) + factor
            else:
                whole = (RECORD,) * len(term)
                terms[whole] = terms.get(whole, 0) + factor
        for measure in Measure:
            most = max((one for root, one in columns.items() if root[0] is measure), default=0)
            if most:
                terms[(RECORD,)] = terms.get((RECORD,), 0) + most
        return Amount(terms)

    def replaced(self, change: Callable[[Term, int], "Amount"]) -> "Amount":
        """The sum of what `change` makes of each term and its factor."""
        return total(change(term, factor) for term, factor in self.terms.items())

    def at(self, size: int) -> int:
        """The value where each measure is `size`."""
        return sum(factor * size ** len(term) for term, factor in self.terms.items())


@dataclass(frozen=True, slots=True)
class Need:
    """What a value and its computation need at most.

    size, elements: of the value.
    steps: of the computation, with those of its parts; a step is a byte that is read or written.
    """

    size: Amount = field(default_factory=Amount)
    elements: Amount = field(default_factory=Amount)
    steps: Amount = field(default_factory=Amount)


def total(amounts: Iterable[Amount]) -> Amount:
    """The sum."""
    terms: dict[Term, int] = {}
    for one in amounts:
        for term, factor in one.terms.items():
            terms[term] = terms.get(term, 0) + factor
    return _bounded(Amount(terms))


def _bounded(amount: Amount) -> Amount:
    return amount if len(amount.terms) <= MOST_TERMS else amount.coarse()


def _order(symbol: Symbol) -> tuple[str, str, tuple[str, ...]]:
    return symbol.measure.value, symbol.alias, symbol.path
