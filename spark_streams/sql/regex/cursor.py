"""Where a pattern is being read, and how it is refused there. Pure."""

_PRINTED = "\t\n\r\f"
_SURROGATES = (0xD800, 0xDFFF)


class RegexError(ValueError):
    """A pattern that is not supported; the text is the place, the reason and the next step."""


class Cursor:
    """A pattern, and the index of the next character."""

    def __init__(self, pattern: str, index: int = 0) -> None:
        self.pattern = pattern
        self.index = index

    @property
    def more(self) -> bool:
        """Whether a character is left."""
        return self.index < len(self.pattern)

    @property
    def next(self) -> str:
        """The next character, "" at the end."""
        return self.pattern[self.index : self.index + 1]

    @property
    def rest(self) -> str:
        """What is not read yet."""
        return self.pattern[self.index :]

    def take(self) -> str:
        """The next character, which is read by that."""
        self.index += 1
        return self.pattern[self.index - 1]

    def takes(self, sign: str) -> bool:
        """Whether it is the next character, which is read then."""
        found = self.next == sign
        self.index += found
        return found

    def refused(self, reason: str, step: str, index: int | None = None) -> RegexError:
        """The error at an index, or at the next character."""
        place = self.index if index is None else index
        return RegexError(f"character {place + 1} of the pattern: {reason}: {step}")

    def plain(self, one: str, index: int) -> int:
        """The code of a character that means itself."""
        code = ord(one)
        if _SURROGATES[0] <= code <= _SURROGATES[1]:
            raise self.refused("half of a surrogate pair", "write whole characters", index)
        if (code < ord(" ") and one not in _PRINTED) or code == 0x7F:
            raise self.refused("a control character", f"write \\x{code:02x}", index)
        return code
