"""The kinds of records that can be made: their schemas, and record n of each."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from mesh_events.errors import InvalidValueError
from self_service.generator.chance import Skewed, of_record

_KEY = {"type": "record", "name": "Key", "fields": [{"name": "userid", "type": "int"}]}
_REQUESTS = (
    "GET /index.html HTTP/1.1",
    "GET /images/track.png HTTP/1.1",
    "GET /images/logo-small.png HTTP/1.1",
    "GET /site/user_status.html HTTP/1.1",
    "GET /site/login.html HTTP/1.1",
    "POST /cart HTTP/1.1",
)
_STATUS = ("200", "200", "200", "200", "302", "404", "405", "407")
_AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.0 Safari/605",
    "Mozilla/5.0 (compatible; Searchbot/2.1)",
)
_REFERRERS = ("-", "-", "https://search.example/", "https://news.example/today")
_SYMBOLS = ("ZVZZT", "ZWZZT", "ZXZZT", "ZJZZT", "ZBZX", "ZTEST", "ZVV", "ZEXIT")
"""Stock exchanges' own test symbols; no company has them."""


_YEAR_10000 = 253_402_300_800_000
"""In ms since 1970; Python has no time as late."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a run's records depend on besides their number.

    users: so many there are; skew: of who is drawn, see `chance.Skewed`.
    start: time of record 0, ms since 1970; rate: records a second, by which their times go on.
    """

    seed: int
    users: int
    skew: float
    start: int
    rate: float


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of record: Avro schemas of key and value, and what makes (key, value) number n."""

    name: str
    about: str
    key: Mapping[str, Any]
    value: Mapping[str, Any]
    maker: Callable[[Options], Callable[[int], tuple[Any, Any]]]


def _fields(**kinds: Any) -> list[dict[str, Any]]:
    return [{"name": name, "type": kind} for name, kind in kinds.items()]


def _clicks(options: Options) -> Callable[[int], tuple[Any, Any]]:
    users = Skewed(options.users, options.skew)

    def make(number: int) -> tuple[Any, Any]:
        chance, at = of_record(options.seed, number), _time(options, number)
        userid = users.draw(chance)
        pick = chance.choice
        value = {
            "ip": f"{_block(userid)}.{chance.randrange(256)}.{chance.randrange(1, 255)}",
            "userid": userid,
            "remote_user": None,
            "time": _log_time(at),
            "_time": at,
            "request": pick(_REQUESTS),
            "status": pick(_STATUS),
            "bytes": str(chance.randrange(278, 14_597)),
            "referrer": pick(_REFERRERS),
            "agent": _AGENTS[userid % len(_AGENTS)],
        }
        return {"userid": userid}, value

    return make


def _block(userid: int) -> str:
    """The first half of a user's addresses, out of the block for documentation and benchmarks."""
    return f"198.{18 + userid % 2}"


def _trades(options: Options) -> Callable[[int], tuple[Any, Any]]:
    users = Skewed(options.users, options.skew)
    symbols = Skewed(len(_SYMBOLS), options.skew)

    def make(number: int) -> tuple[Any, Any]:
        chance = of_record(options.seed, number)
        symbol = _SYMBOLS[symbols.draw(chance) - 1]
        value = {
            "symbol": symbol,
            "side": chance.choice(("BUY", "SELL")),
            "quantity": chance.randrange(1, 5_001),
            "price": Decimal(_cents(symbol, number, chance)).scaleb(-2),
            "account": f"{chance.choice('ABCDEFGH')}{chance.choice('ABCXYZ')}{number % 1000:03d}",
            "userid": users.draw(chance),
            "time": _time(options, number),
        }
        return symbol, value

    return make


def _cents(symbol: str, number: int, chance: random.Random) -> int:
    """A price that wanders around the symbol's own level."""
    level = 1_000 * (1 + _SYMBOLS.index(symbol))
    return level + (number // 50) % 400 + chance.randrange(-150, 151)


def _log_time(at: int) -> str:
    """A time as a web server's log has it."""
    time = datetime.fromtimestamp(at / 1000, UTC)
    # %Y is as long as the year
    return f"{time:%d/%b}/{time.year:04}:{time:%H:%M:%S} +0000"


def _time(options: Options, number: int) -> int:
    """Time of a record in ms since 1970; raises InvalidValueError behind the year 9999."""
    passed = number * 1000 / options.rate
    if options.start + passed >= _YEAR_10000:
        raise InvalidValueError(
            f"the time of record {number} is beyond the year 9999: give a smaller --first, an "
            "earlier --start or a higher --rate"
        )
    return options.start + int(passed)


CLICKSTREAM = Kind(
    "clickstream",
    "requests to a web site, as a web server's log has them; key: the user",
    {**_KEY, "namespace": "clickstream"},
    {
        "type": "record",
        "name": "Click",
        "namespace": "clickstream",
        "fields": _fields(
            ip="string",
            userid="int",
            remote_user=["null", "string"],
            time="string",
            _time={"type": "long", "logicalType": "timestamp-millis"},
            request="string",
            status="string",
            bytes="string",
            referrer="string",
            agent="string",
        ),
    },
    _clicks,
)
TRADES = Kind(
    "trades",
    "purchases and sales of stocks; key: the symbol",
    {"type": "string"},
    {
        "type": "record",
        "name": "Trade",
        "namespace": "trades",
        "fields": _fields(
            symbol="string",
            side={"type": "enum", "name": "Side", "symbols": ["BUY", "SELL"]},
            quantity="int",
            price={"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
            account="string",
            userid="int",
            time={"type": "long", "logicalType": "timestamp-millis"},
        ),
    },
    _trades,
)
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (CLICKSTREAM, TRADES)}
