"""Which functions read a string as its bytes, and which arguments of the others are checked. Pure.

A string of a record may be no UTF-8. Most functions of Spark and of the mesh read it as a text of
Java's, in which all such bytes are one character, U+FFFD: two strings would become one, and UTF-8.
So an argument of a function that is not known to read bytes is looked at first.
"""

from spark_streams.sql.functions.allowed import FUNCTIONS
from spark_streams.sql.text.tree import Call, Column, Like, Name, Node, Parameter

_OF_STRINGS = frozenset(
    [
        "base64", "bit_length", "btrim", "char", "char_length", "character_length", "chr",
        "concat", "concat_ws", "contains", "crc32", "decode", "elt", "endswith", "find_in_set",
        "hash", "hex", "instr", "is_valid_utf8", "left", "len", "length", "locate", "lpad",
        "ltrim", "make_valid_utf8", "md5", "octet_length", "position", "repeat", "replace",
        "reverse", "right", "rpad", "rtrim", "sha", "sha1", "sha2", "space", "startswith",
        "substr", "substring", "substring_index", "trim", "try_validate_utf8", "unhex",
        "xxhash64",
    ]
)  # fmt: skip
_OF_OTHERS = frozenset({"date_format", "from_unixtime", "str_to_map"})
"""Functions of the groups below that make a text of one of Java's."""
_GROUPS = frozenset(
    {"Numbers", "Conditions and nulls", "Dates and times", "Arrays, maps and structs", "Casts"}
)
"""A string that is no number or time is null in them, as in a cast; the rest compares bytes."""
BYTEWISE = _OF_STRINGS | {
    name for name, one in FUNCTIONS.items() if one.group in _GROUPS and name not in _OF_OTHERS
}
"""Functions that read and pass on a string's bytes, or give null for what is no number or time."""


def is_checked(node: Node) -> bool:
    """Whether the strings among the arguments of a node have to be UTF-8."""
    return isinstance(node, Like) or (isinstance(node, Call) and node.name not in BYTEWISE)


def may_be_no_utf8(node: Node) -> bool:
    """Whether an argument may hold a string of a record as it was written.

    What the text says itself is UTF-8, and so is what a function makes of a text of Java's.
    """
    if isinstance(node, Call) and is_checked(node):
        return False
    return any(isinstance(one, Name | Column | Parameter) for one in node.walk())
