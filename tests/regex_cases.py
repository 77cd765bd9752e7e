"""Regular expressions of statements, and strings, for which RE2 and Java differ."""

from hypothesis import strategies as st

NASTY = ["a", "B", ",", " ", "\n", "\r", "\r\n", "\v", "\x85", "\u2028", "\u00e4", "\U0001f600"]
"""Parts of strings: line terminators, spaces, and characters of two and four bytes."""
STRINGS = [
    *("", "a", "ab", "aB,b", "a,b,a", "a b", " a ", "a1_b", "K", "k", "\u212a", "\u017f", "\u00c4"),
    *("\u00e4", "e\u0301", "\u0663", "\u00a0", "\U0001f600", "a\U0001f600b", "\U0001f600,"),
    *(f"{text}{end}" for text in ("", "a", "ab ", "a,b", "\n", "\U0001f600")
      for end in ("\n", "\r", "\r\n", "\n\r", "\n\n", "\v", "\f", "\x85", "\u2028", "\u2029")),
    *("a\nb", "a\rb", "a\r\nb", "a\x85b", "a\u2028b\n", "a\vb", "\r\r\n", "a\n\r\n", "\ta\t\r\n"),
]  # fmt: skip
COMMON = [
    "^[a-z]+$", r"\d{3}", ".*a.*", r"(\w+),(\w+)", "a.b", "a$", "^$", "^.*$", r"^\s+|\s+$", r"\s+$",
    r"\s", r"\S+", r"\W", r"\D+$", "[^,]+$", "[^,]*$", "(.*)$", "(a|b)$", "(^|,)a(,|$)",
    "(?i)[j-l]", "(?i)k", "(?i)[^k]", "(?s)a.b", "(?is)A.B$", r"\Aa", r"b\z", "a+?", "(a|ab)(,b)?",
    "(,a)*",
    r"[\w,-]+", r"[^\s,]+", r"[a\-]", r"\.|,", r"\x0b", r"\u0061", r"[\x85\u2028]", "\U0001f600",
    "[\U0001f600,]", "\u00e4", "[\u00e0-\u00ff]+", "(?i)\u00e4", "[&a]", "a{2,}|b{1,2}?", r"\$|\^",
    r"(\s*)$", "a|b$", "(?:a|b)+$", "[a-z]+ ?$", r"\r\n", r"(a)|(b)", "((a)|(b))+", "(a(b)?)+",
]  # fmt: skip
"""Patterns that many write."""

_ATOMS = ["a", "b", "B", ",", " ", ".", r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\n", r"\r"]
_ATOMS += ["[ab]", "[^a]", r"[^\n]", r"[^\s,]", r"[\s\x85]", "[a-c ]", r"[\W_]", r"\u2028", r"\x0b"]
_ATOMS += ["\u00e4", "\U0001f600", "[,\U0001f600]"]
_MANY = ["", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,}", "{1,2}", "{0,2}?"]


def _joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(inner, min_size=1, max_size=3)
    group = st.tuples(st.sampled_from(["(", "(?:"]), several, st.sampled_from(_MANY))
    return st.one_of(
        several.map("".join),
        group.map(lambda one: f"{one[0]}{'|'.join(one[1])}){one[2]}"),
    )


_PART = st.tuples(st.sampled_from(_ATOMS), st.sampled_from(_MANY)).map("".join)
_BODY = st.recursive(_PART, _joined, max_leaves=6)
_EDGED = st.tuples(st.sampled_from(["", "", "^"]), _BODY, st.sampled_from(["", "$", "$", r"\z"]))
_WHOLE = st.lists(_EDGED.map("".join), min_size=1, max_size=2).map("|".join)
PATTERNS = st.one_of(
    st.tuples(st.sampled_from(["", "", "(?i)", "(?s)", "(?is)"]), _WHOLE).map("".join),
    st.tuples(_BODY, _BODY).map(lambda one: f"(^|{one[0]}){one[0]}({one[1]}|$)"),
)
"""Patterns of the syntax that statements have; some are refused."""
TEXTS = st.lists(st.sampled_from(NASTY), max_size=5).map("".join)
