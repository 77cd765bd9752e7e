"""What Connect says against a setting, in words of a closed list.

Its own words can quote the setting's value, a secret among them, or what a database answered; they
are for the person who asks Connect, and never for the log.
"""

import re

OWN_WORDS = "Connect does not accept the value: its own words are shown with --dry-run"
"""Of what is not on the list."""
_FORMS = tuple(
    re.compile(form, re.DOTALL)
    for form in (
        r"The '[\w.-]{1,200}' value (?:.* )?is invalid: (?P<why>.+)",
        r"Invalid value .* for configuration [\w.-]{1,200}: (?P<why>.+)",
        r"(?P<why>Missing required configuration) \"[\w.-]{1,200}\" which has no default value\.",
        r"Error (?:while validating connector config|during connection validation): (?P<why>.+)",
    )
)
"""Of Kafka's `ConfigDef`, of Debezium's `Field`, and what stands before a database's own words."""
_WORD = r"[A-Za-z0-9_.-]{1,60}"
_WORDS = rf"\[?{_WORD}(?:, {_WORD}){{0,30}}\]?"
_REASONS = re.compile(
    "|".join(
        (
            r"An? [a-zA-Z, -]{1,60} is expected",
            r"An? value (?:is required|must be provided)",
            r"A positive queue size is required",
            r"Either 'true' or 'false' is expected",
            r"Must be larger than the maximum batch size",
            r"Must not be empty",
            r"Element\(s\) containing space not permitted",
            r"Empty string element\(s\) not permitted",
            r"'none' cannot be specified with other skipped operation types",
            rf"\"{_WORD}\" is already specified",
            rf"Value must be (?:non-null|(?:at least|no more than|one of) {_WORDS})",
            rf"String must be (?:non-empty|one of(?: \(case insensitive\))?: {_WORDS})",
            r"String may not be empty",
            r"Not a number of type [A-Z]{1,10}",
            r"Expected value to be either true or false",
            r"Expected a comma separated list\.",
            r"entry must be non null",
            r"Missing required configuration",
            r"Connection validation timed out after [0-9]{1,9} ms",
        )
    )
)
"""Reasons that hold nothing but their own words, and those of the connector's class."""
LOGIN_REFUSED = "the server refuses user and password: give the login that the database knows"
_ANSWERS = {
    r"FATAL: [\w ]{1,40} authentication failed for ": LOGIN_REFUSED,
    r"FATAL: role \".*\" (?:does not exist|is not permitted to log in)": LOGIN_REFUSED,
    r"FATAL: database \".*\" does not exist": "the server has no database of that name",
    r"FATAL: no pg_hba\.conf entry for ": "the server lets nobody in from here: see its "
    "pg_hba.conf",
    r"FATAL: (?:sorry, too many clients already|remaining connection slots are reserved)": (
        "the server has no connection left"
    ),
    r"FATAL: the database system is (?:starting up|shutting down|in recovery mode)": (
        "the server starts or ends"
    ),
    r"Connection to \S{1,260} refused\.": "nothing answers at the host and port",
    r"The connection attempt failed\.": "there is no connection to the host and port",
    r"The server does not support SSL\.": "the server has no TLS",
    r"Postgres roles LOGIN and REPLICATION are not assigned to user: ": (
        "the user lacks LOGIN and REPLICATION: ALTER ROLE ... WITH LOGIN REPLICATION"
    ),
}
_TOLD = tuple((re.compile(begin, re.DOTALL), words) for begin, words in _ANSWERS.items())
"""How a database's answer begins, and what it means."""
_LONGEST = 4_000
"""Characters of a text that are read."""


def without_values(text: str) -> str:
    """What Connect says against a setting, without the setting's value and a database's words.

    Args:
        text: one error of Connect's validation.

    Returns:
        Words of the list, or OWN_WORDS.
    """
    read = text[:_LONGEST].strip()
    forms = (found for one in _FORMS if (found := one.fullmatch(read)))
    why = next((found["why"] for found in forms), read)
    if _REASONS.fullmatch(why):
        return why
    return next((words for begin, words in _TOLD if begin.match(why)), OWN_WORDS)
