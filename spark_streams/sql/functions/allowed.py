"""The functions that a statement may call: each by its name, and no other one. Pure.

Each gives the same value for the same record whenever and wherever it is asked, and touches no
file, network, class, setting or session. What is not in the table is refused, whatever it is to
Spark.
A function is called by the name in this table, never by a text's own words.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

MANY = 1_000


class Growth(Enum):
    """How much longer than its arguments a value may be; see `growth`."""

    NONE = auto()
    COUNT = auto()
    """As often, or long, as a literal argument says."""
    REPLACES = auto()
    """By a replacement that is put in at many places."""
    JOINS = auto()
    """By a separator that is put between the elements of an array."""
    EACH = auto()
    """A value for each element of an array or map."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function that may be called.

    group: heading in the reference.
    least, most: arguments.
    of_time: it reads strings as dates or times. Spark would read `now` as the present one.
    growth: how long its value may be.
    counts: index of the argument that tells how long.
    takes_lambda: index of the argument that is a lambda, and how many parameters that may have.
    """

    group: str
    least: int
    most: int
    of_time: bool = False
    growth: Growth = Growth.NONE
    counts: int = 0
    takes_lambda: tuple[int, tuple[int, ...]] | None = None


_STRINGS, _NUMBERS, _CONDITIONS = "Strings and bytes", "Numbers", "Conditions and nulls"
_TIMES, _NESTED, _JSON, _CASTS = "Dates and times", "Arrays, maps and structs", "JSON", "Casts"


def _plain(group: str, words: str, *, of_time: bool = False) -> dict[str, Function]:
    """Functions, each with its number of arguments: `name:1`, `name:1-2` or `name:1+`."""
    found = {}
    for word in words.split():
        name, _, counts = word.partition(":")
        least, _, most = counts.partition("-")
        many = counts.endswith("+")
        first = int(least.rstrip("+"))
        last = MANY if many else int(most or first)
        found[name] = Function(group, first, last, of_time)
    return found


def _each(parameters: tuple[int, ...], at: int = 1, least: int = 2) -> Function:
    return Function(_NESTED, least, least, growth=Growth.EACH, takes_lambda=(at, parameters))


def _tests(parameters: tuple[int, ...]) -> Function:
    return Function(_NESTED, 2, 2, takes_lambda=(1, parameters))


FUNCTIONS: Mapping[str, Function] = {
    **_plain(
        _STRINGS,
        "ascii:1 base64:1 bit_length:1 btrim:1-2 char:1 char_length:1 character_length:1 chr:1 "
        "concat:1+ contains:2 crc32:1 decode:2+ elt:2+ encode:2 endswith:2 find_in_set:2 hash:1+ "
        "hex:1 initcap:1 instr:2 is_valid_utf8:1 lcase:1 left:2 length:1 len:1 levenshtein:2-3 "
        "locate:2-3 lower:1 ltrim:1-2 luhn_check:1 make_valid_utf8:1 mask:1-5 md5:1 "
        "octet_length:1 parse_url:2-3 position:2-3 "
        "regexp_count:2 regexp_extract:2-3 regexp_extract_all:2-3 regexp_instr:2 regexp_like:2 "
        "regexp_substr:2 reverse:1 right:2 rtrim:1-2 sha:1 sha1:1 sha2:2 soundex:1 split:2-3 "
        "split_part:3 startswith:2 substr:2-3 substring:2-3 substring_index:3 to_binary:1-2 "
        "to_char:2 to_number:2 to_varchar:2 translate:3 trim:1 try_to_binary:1-2 try_to_number:2 "
        "try_validate_utf8:1 ucase:1 unbase64:1 unhex:1 upper:1 url_decode:1 url_encode:1 "
        "xxhash64:1+",
    ),
    "concat_ws": Function(_STRINGS, 1, MANY, growth=Growth.JOINS),
    "format_number": Function(_STRINGS, 2, 2, growth=Growth.COUNT, counts=1),
    "lpad": Function(_STRINGS, 2, 3, growth=Growth.COUNT, counts=1),
    "regexp_replace": Function(_STRINGS, 3, 3, growth=Growth.REPLACES),
    "repeat": Function(_STRINGS, 2, 2, growth=Growth.COUNT, counts=1),
    "replace": Function(_STRINGS, 2, 3, growth=Growth.REPLACES),
    "rpad": Function(_STRINGS, 2, 3, growth=Growth.COUNT, counts=1),
    "space": Function(_STRINGS, 1, 1, growth=Growth.COUNT, counts=0),
    **_plain(
        _NUMBERS,
        "abs:1 acos:1 acosh:1 asin:1 asinh:1 atan:1 atan2:2 atanh:1 bin:1 bit_count:1 bit_get:2 "
        "bround:1-2 cbrt:1 ceil:1-2 ceiling:1-2 conv:3 cos:1 cosh:1 cot:1 csc:1 degrees:1 e:0 "
        "exp:1 expm1:1 factorial:1 floor:1-2 getbit:2 greatest:2+ hypot:2 isnan:1 least:2+ ln:1 "
        "log:1-2 log10:1 log1p:1 log2:1 mod:2 nanvl:2 negative:1 pi:0 pmod:2 positive:1 pow:2 "
        "power:2 radians:1 rint:1 round:1-2 sec:1 shiftleft:2 shiftright:2 shiftrightunsigned:2 "
        "sign:1 signum:1 sin:1 sinh:1 sqrt:1 tan:1 tanh:1 try_add:2 try_divide:2 try_mod:2 "
        "try_multiply:2 try_subtract:2 width_bucket:4",
    ),
    **_plain(
        _CONDITIONS,
        "coalesce:1+ equal_null:2 if:3 ifnull:2 isnotnull:1 isnull:1 nullif:2 nullifzero:1 nvl:2 "
        "nvl2:3 zeroifnull:1",
    ),
    **_plain(
        _TIMES,
        "add_months:2 convert_timezone:3 date_add:2 date_diff:2 date_format:2 date_part:2 "
        "date_sub:2 date_trunc:2 datediff:2 day:1 dayname:1 dayofmonth:1 dayofweek:1 dayofyear:1 "
        "from_utc_timestamp:2 hour:1 last_day:1 minute:1 month:1 monthname:1 months_between:2-3 "
        "next_day:2 quarter:1 second:1 to_date:1-2 to_timestamp:1-2 to_timestamp_ltz:1-2 "
        "to_timestamp_ntz:1-2 to_unix_timestamp:1-2 to_utc_timestamp:2 trunc:2 try_to_date:1-2 "
        "try_to_timestamp:1-2 unix_date:1 unix_micros:1 unix_millis:1 unix_seconds:1 "
        "unix_timestamp:1-2 weekday:1 weekofyear:1 year:1",
        of_time=True,
    ),
    **_plain(
        _TIMES,
        "date_from_unix_date:1 from_unixtime:1-2 make_date:3 make_timestamp:6-7 "
        "make_timestamp_ntz:6 timestamp_micros:1 timestamp_millis:1 timestamp_seconds:1",
    ),
    **_plain(
        _NESTED,
        "array:0+ array_append:2 array_compact:1 array_contains:2 array_distinct:1 array_except:2 "
        "array_intersect:2 array_max:1 array_min:1 array_position:2 array_prepend:2 "
        "array_remove:2 array_size:1 array_sort:1 array_union:2 arrays_overlap:2 cardinality:1 "
        "element_at:2 flatten:1 get:2 map:0+ map_concat:1+ map_contains_key:2 map_entries:1 "
        "map_from_arrays:2 map_from_entries:1 map_keys:1 map_values:1 named_struct:2+ size:1 "
        "slice:3 sort_array:1-2 str_to_map:1-3 struct:1+ try_element_at:2",
    ),
    "array_join": Function(_NESTED, 2, 3, growth=Growth.JOINS),
    "array_repeat": Function(_NESTED, 2, 2, growth=Growth.COUNT, counts=1),
    "sequence": Function(_NESTED, 2, 3, growth=Growth.COUNT, counts=1),
    "exists": _tests((1,)),
    "filter": _tests((1, 2)),
    "forall": _tests((1,)),
    "map_filter": _tests((2,)),
    "transform": _each((1, 2)),
    "transform_keys": _each((2,)),
    "transform_values": _each((2,)),
    "zip_with": _each((2,), at=2, least=3),
    **_plain(_JSON, "get_json_object:2 json_array_length:1 json_object_keys:1 to_json:1"),
    **_plain(
        _CASTS,
        "bigint:1 binary:1 boolean:1 decimal:1 double:1 float:1 int:1 smallint:1 string:1 "
        "tinyint:1",
    ),
    **_plain(_CASTS, "date:1 timestamp:1", of_time=True),
}
"""Name in lower case -> what is known of it. Each is compared with Spark's own SQL by a test."""

UNITS = frozenset(
    {"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFWEEK", "DOY", "HOUR", "MINUTE", "SECOND"}
)
"""What EXTRACT takes from a date or time."""

NOT_OF_THE_RECORD = frozenset(
    {"current_timestamp", "now", "current_date", "curdate", "current_time", "localtimestamp"}
    | {"rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle", "unix_timestamp"}
    | {"to_unix_timestamp", "monotonically_increasing_id", "spark_partition_id"}
    | {"input_file_name", "input_file_block_start", "input_file_block_length"}
    | {"current_user", "user", "session_user", "current_timezone", "current_database"}
    | {"current_schema", "current_catalog", "version", "aes_encrypt"}
)
"""Their value is another one each time, or that of the server."""
AGGREGATES = frozenset(
    {
        "count",
        "count_if",
        "count_min_sketch",
        "sum",
        "avg",
        "mean",
        "min",
        "max",
        "min_by",
        "max_by",
    }
    | {"first", "first_value", "last", "last_value", "any_value", "any", "some", "every", "bool_or"}
    | {"bool_and", "bit_and", "bit_or", "bit_xor", "collect_list", "collect_set", "array_agg"}
    | {
        "listagg",
        "string_agg",
        "approx_count_distinct",
        "approx_percentile",
        "percentile",
        "median",
    }
    | {"mode", "stddev", "std", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp"}
    | {"corr", "covar_pop", "covar_samp", "skewness", "kurtosis", "histogram_numeric", "grouping"}
    | {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"}
    | {
        "nth_value",
        "window",
        "session_window",
        "window_time",
        *("tumble", "tumble_start", "tumble_end", "tumble_rowtime"),
        *("hop", "hop_start", "hop_end", "hop_rowtime"),
        *("cumulate", "session", "session_start", "session_end"),
        "cumulate",
        "session",
    }
)
"""They need more records than one."""
GENERATORS = frozenset(
    {
        "explode",
        "explode_outer",
        "posexplode",
        "posexplode_outer",
        "inline",
        "inline_outer",
        "stack",
    }
    | {"json_tuple", "unnest"}
)
"""They make more records of one."""
_OF_THE_SERVER = frozenset(
    {
        "java_method",
        "reflect",
        "try_reflect",
        "mesh_lookup",
        "from_avro",
        "to_avro",
        "from_protobuf",
    }
    | {"to_protobuf", "from_xml", "schema_of_xml", "raise_error", "assert_true"}
)
"""They call classes, read files, end the query, or read another statement's tables."""
WINDOWS = (
    "windows and aggregates are not supported: write the records with a statement, and count them "
    "in an application that reads them"
)
_BIGGER = "at most one record comes out for each that goes in"
_INSTEAD = {
    "from_json": "take what is needed with get_json_object, and CAST it",
    "from_csv": "take what is needed with split_part, and CAST it",
    "reduce": "it may double what it has at each element",
    "aggregate": "it may double what it has at each element",
    "format_string": "join strings with ||",
    "printf": "join strings with ||",
}


def refusal(name: str) -> tuple[str, str] | None:
    """(code, reason) why a function is not called, None for one that is.

    Args:
        name: in lower case.
    """
    if name in FUNCTIONS:
        return None
    if name in NOT_OF_THE_RECORD:
        return "sql_not_supported", clock(name)
    if name in AGGREGATES:
        return "sql_not_supported", f"{name.upper()}: {WINDOWS}"
    if name in GENERATORS:
        return "sql_not_supported", f"{name.upper()}: {_BIGGER}"
    if name in _OF_THE_SERVER or name.startswith("xpath"):
        return "sql_not_supported", f"{name}: calls into the server are not for statements"
    if name in _INSTEAD:
        return "sql_not_supported", f"{name} is not supported: {_INSTEAD[name]}"
    return "unknown_function", _unknown(name)


def clock(what: str) -> str:
    """The reason why a value that is not the record's is refused."""
    return (
        f"{what}: its value is not the record's, and would be another one when the record is dealt "
        "with again after a crash: take it from the stream"
    )


def _unknown(name: str) -> str:
    from mesh_events.spelling import nearest

    near = nearest(name, FUNCTIONS)
    meant = f"; is {near} meant?" if near else ""
    return f"{name} is no function that a statement may call{meant or REFERENCE}"


REFERENCE = ": see docs/reference/sql-functions.md for those that it may"


def arguments(name: str, count: int) -> str:
    """Why a function is not called with so many arguments, "" if it may be."""
    function = FUNCTIONS[name]
    if function.least <= count <= function.most:
        return ""
    if not count and name in NOT_OF_THE_RECORD:
        return clock(f"{name}()")
    bounds = str(function.least)
    if function.most == MANY:
        bounds += " or more"
    elif function.most > function.least:
        bounds += f" to {function.most}"
    return f"{name} takes {bounds} arguments, not {count}"
