"""Functions by how their values and times depend on what they are given. Pure data."""

from spark_streams.sql.functions.allowed import FUNCTIONS

SEARCHES = frozenset({"contains", "instr", "locate", "position", "split_part", "substring_index"})
"""They look for one text in another, byte by byte: the time is the product of their lengths."""
TWICE = frozenset(
    {"array_distinct", "array_except", "array_intersect", "array_union", "arrays_overlap"}
)
"""They may compare each element with each other one."""
OF_TEXTS = frozenset({"split", "regexp_extract_all", "json_object_keys", "sequence"})
"""Their values are arrays of strings or numbers."""
HIDING = frozenset(
    {"coalesce", "if", "ifnull", "nvl", "nvl2", "nullif", "greatest", "least", "elt", "nanvl"}
)
"""Their value is one of their arguments."""
NUMBERS = frozenset(
    {"bigint", "boolean", "date", "decimal", "double", "float", "int", "smallint", "timestamp"}
    | {"tinyint"}
)
"""Casts to what has a fixed size."""
_PLAIN = frozenset(
    {"ascii", "bit_length", "char", "char_length", "character_length", "chr", "contains", "crc32"}
    | {"endswith", "find_in_set", "hash", "instr", "length", "len", "locate", "luhn_check", "md5"}
    | {"octet_length", "position", "regexp_count", "regexp_instr", "regexp_like", "sha", "sha1"}
    | {"sha2", "startswith", "xxhash64", "array_contains", "array_position", "array_size"}
    | {"arrays_overlap", "cardinality", "map_contains_key", "size", "json_array_length"}
    | {"is_valid_utf8"}
    | {"equal_null", "isnotnull", "isnull", "to_number", "try_to_number", "format_number"}
)
SCALARS = _PLAIN | {
    name
    for name, one in FUNCTIONS.items()
    if one.group in ("Numbers", "Dates and times")
    and name not in HIDING | {"date_format", "from_unixtime"}
}
"""Their value has a fixed size, whatever they are given."""
