"""What expressions may need at most, from what their parts need. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from spark_streams.sql.functions.allowed import FUNCTIONS, Growth
from spark_streams.sql.growing.amount import Amount, Measure, Need, Symbol, Term, total
from spark_streams.sql.growing.values import SCALAR, json, made
from spark_streams.sql.text.tree import Bytes, Call, Cast, Column, Lambda, Node, Parameter, Text


@dataclass
class Peak:
    """The most that any part of the expressions needs, and which parts grow.

    size, elements: of the largest value there is at any time; steps: of all together.
    calls: those whose value can be larger than all that it is made of, or that take longer.
    """

    size: Amount = field(default_factory=Amount)
    elements: Amount = field(default_factory=Amount)
    steps: Amount = field(default_factory=Amount)
    calls: list[tuple[str, Need]] = field(default_factory=list)


def peak(nodes: Sequence[Node], names: int = 0) -> Peak:
    """What resolved expressions need together, whose values are all there at the end.

    Args:
        nodes: resolved.
        names: bytes of the names of fields on the longest path to a value in the sources.
    """
    found = Peak()
    rules = _Rules(found, names)
    needs = [rules.need(node) for node in nodes]
    found.size = found.size.most(total(one.size for one in needs))
    found.elements = found.elements.most(total(one.elements for one in needs))
    found.steps = total(one.steps for one in needs)
    return found


class _Rules:
    def __init__(self, found: Peak, names: int) -> None:
        self._found, self._names = found, names
        self._parameters: dict[str, tuple[str, ...]] = {}
        self._sums: dict[Symbol, Amount] = {}
        self._numbers = count()

    def need(self, node: Node) -> Need:
        """The need of a node."""
        match node:
            case Column():
                return _itself(node.alias, node.path)
            case Parameter():
                return _itself("", self._parameters[node.name.lower()])
            case Text() | Bytes():
                written = node.value.encode() if isinstance(node, Text) else node.value
                return Need(Amount.of(len(written)), Amount.of(1))
            case Call() if FUNCTIONS[node.name].takes_lambda is not None:
                return self._noted(node.name, self._each(node))
        parts = [self.need(one) for one in node.children]
        is_json = isinstance(node, Call) and node.name == "to_json"
        found = json(node, parts, self._names) if is_json else made(node, parts)
        steps = total(one.steps for one in parts) + total(one.size for one in parts)
        size, elements, more = found
        return self._noted(_name(node), Need(size, elements, steps + size + more + 1))

    def _noted(self, name: str, need: Need) -> Need:
        """The need, after the peak has been raised to it."""
        closed = Need(*map(self._closed, (need.size, need.elements, need.steps)))
        self._found.size = self._found.size.most(closed.size)
        self._found.elements = self._found.elements.most(closed.elements)
        if name:
            self._found.calls.append((name, closed))
        return need

    def _closed(self, amount: Amount) -> Amount:
        """The same without parameters: each is as large as the array that it is an element of."""
        while any(one in self._sums for term in amount.terms for one in term):
            amount = amount.replaced(self._whole)
        return amount

    def _whole(self, term: Term, factor: int) -> Amount:
        found = Amount.of(factor)
        for one in term:
            found *= self._sums.get(one) or Amount.symbol(one)
        return found

    def _each(self, node: Call) -> Need:
        """The need of a call with a lambda, whose body is computed for each element."""
        given = [self.need(one) for one in node.args if not isinstance(one, Lambda)]
        [function] = [one for one in node.args if isinstance(one, Lambda)]
        times = total(one.elements for one in given) + 1
        inside: list[Symbol] = []
        before = dict(self._parameters)
        for index, name in enumerate(function.params):
            # the second parameter is an index, or belongs to the second array, or to the same map
            of = given[min(index, len(given) - 1)]
            path = (str(next(self._numbers)),)
            for measure, most in ((Measure.BYTES, of.size), (Measure.ELEMENTS, of.elements)):
                symbol = Symbol(measure, "", path)
                self._sums[symbol] = most + SCALAR
                inside.append(symbol)
            before[name.lower()] = path
        outer, self._parameters = self._parameters, before
        body = self.need(function.body)
        self._parameters = outer

        def summed(amount: Amount) -> Amount:
            return amount.replaced(lambda term, factor: self._summed(term, factor, inside, times))

        steps = total(one.steps for one in given) + total(one.size for one in given)
        steps += summed(body.steps) + times
        if FUNCTIONS[node.name].growth is not Growth.EACH:
            kept = total(one.size for one in given), total(one.elements for one in given)
            return Need(*kept, steps)
        size, elements = summed(body.size), summed(body.elements) + times
        if node.name.startswith("transform_"):
            size += given[0].size
            elements += given[0].elements
        return Need(size, elements, steps + size)

    def _summed(self, term: Term, factor: int, inside: list[Symbol], times: Amount) -> Amount:
        """A term over all elements: what is no element's own comes once for each of them."""
        own = [one for one in term if one in inside]
        found = Amount.of(factor)
        for one in term:
            found *= self._sums[one] if one in inside else Amount.symbol(one)
        return found if own else found * times


def _itself(alias: str, path: tuple[str, ...]) -> Need:
    size = Amount.symbol(Symbol(Measure.BYTES, alias, path))
    return Need(size, Amount.symbol(Symbol(Measure.ELEMENTS, alias, path)))


def _name(node: Node) -> str:
    if isinstance(node, Call):
        return node.name
    return "CAST" if isinstance(node, Cast) else ""
