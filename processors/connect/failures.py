"""Failures of connectors in our own words: a trace of Connect's can quote a record."""

import re

from spark_streams.error_names import error_name

_CAUSE = "Caused by: "
_PARTS = ("schema", "table", "column", "constraint")
_SQLSTATE = re.compile(r"SQLSTATE: (?P<state>[0-9A-Z]{5})(?P<about> .*)?$")
"""What `Traces.scala` tells of a database's error."""
_ABOUT = re.compile(rf" ({'|'.join(_PARTS)})=([\w$-]{{1,63}})(?= (?:{'|'.join(_PARTS)})=|$)")
"""A part of the database that it is about, with a plain name."""
_CONDITIONS = {
    "22001": "string_data_right_truncation",
    "22003": "numeric_value_out_of_range",
    "22007": "invalid_datetime_format",
    "22008": "datetime_field_overflow",
    "22021": "character_not_in_repertoire",
    "22P02": "invalid_text_representation",
    "23502": "not_null_violation",
    "23503": "foreign_key_violation",
    "23505": "unique_violation",
    "23514": "check_violation",
    "23P01": "exclusion_violation",
    "28P01": "invalid_password",
    "42501": "insufficient_privilege",
    "42703": "undefined_column",
    "42804": "datatype_mismatch",
    "42P01": "undefined_table",
    "53100": "disk_full",
    "53300": "too_many_connections",
    "57P01": "admin_shutdown",
    "P0001": "raise_exception",
}
"""What PostgreSQL's documentation calls its codes: those that a sink or a capture meets."""
_NO_VALUE = r"io\.debezium\.DebeziumException: Failed to properly convert data value for "
_OF_ARRAY = r"'[^']{1,260}' of type (?:\"[^\"]{1,63}\"\.\")?_"
"""PostgreSQL names the type of an array as that of its elements, after a _."""
_KNOWN = {
    r"io\.apicurio\.registry\.rest\.client\.exception\.RuleViolationException: ": (
        "the primary key or a type in the table changed so that readers of the topic would break: "
        "change it back, delete the connector and its replication slot, and add it under another "
        "name, which reads the table anew; or a NOT NULL column was added whose default does not "
        "arrive: drop NOT NULL"
    ),
    r"org\.postgresql\.util\.PSQLException: FATAL: [\w ]{1,40} authentication failed for ": (
        "the server refuses the user and password of the config"
    ),
    r'org\.postgresql\.util\.PSQLException: ERROR: replication slot "\w{1,63}" is active for ': (
        "another connection reads the replication slot"
    ),
    r"org\.hibernate\.HibernateException: Unable to determine Dialect without JDBC metadata ": (
        "the database does not answer at connection.url, or refuses the login: look at the "
        "address, connection.username and the password, and at what the database logs"
    ),
    (
        r"org\.apache\.kafka\.connect\.errors\.ConnectException: "
        r"Configured primary key mode 'record_key' cannot have null schema"
    ): (
        "the records of the topic have no key, or one that is a single value, as of the schema "
        '"string", and no record with fields, which become columns: write keys that are records, '
        "or take --key position, where each record is a row"
    ),
    (
        r"org\.postgresql\.util\.PSQLException: "
        r"ERROR: there is no unique or exclusion constraint matching the ON CONFLICT "
    ): (
        "the table has no primary key or unique index by which a record that comes again finds its"
        " row: add one, or let the sink make a table of its own"
    ),
    (
        r"io\.debezium\.DebeziumException: "
        r"The connector is trying to read change stream starting at "
    ): (
        "the connector's replication slot is gone, or another one has its name (slot.name, "
        "else sdm_ and the connector's id with _; SELECT * FROM pg_replication_slots), and the "
        "changes between with it: delete the connector and the slot, and add it under another "
        "name, which reads the table anew"
    ),
    (
        r"org\.postgresql\.util\.PSQLException: "
        r"ERROR: query would be affected by row-level security policy for table "
    ): (
        "row level security may hide rows of a table from the connector's login, which the topic "
        "would lack: let a superuser run ALTER ROLE ... BYPASSRLS, or, where the login owns the "
        "table, run ALTER TABLE ... NO FORCE ROW LEVEL SECURITY; the connector tries again by "
        "itself"
    ),
    r"org\.apache\.kafka\.connect\.errors\.DataException: Cannot mask value of type:? class ": (
        "MaskField masks texts, numbers, booleans, times, lists and maps, with a replacement texts "
        "and numbers alone, and no bytes (bytea, bit) or records: leave the field out with "
        "ReplaceField, or the column with --set column.exclude.list; or capture a bytea as text "
        "with --set binary.handling.mode=base64, in a connector under another name"
    ),
    r"mesh\.AnswerTooLargeException: ": (
        "the database sent more at once than a connector may take of Connect's memory: 16 MiB, "
        "or an error of 1 MiB; take fewer rows of a snapshot at a time with --set "
        "snapshot.fetch.size=50, or leave a large column out of the table"
    ),
    r"mesh\.ArraysTooLargeError: ": (
        "the arrays of one row have more than 200 000 elements together, which would fill the "
        "memory of Connect: leave the column out with `sdm connect connector update NAME --set "
        "column.exclude.list=SCHEMA.TABLE.COLUMN`"
    ),
    rf"{_NO_VALUE}(?!{_OF_ARRAY})": (
        "the value has none in the topic: capture decimals as text with --set "
        "decimal.handling.mode=string, or leave the column out with --set column.exclude.list, in "
        "a connector under another name; a large value that did not change is captured once the "
        "table has REPLICA IDENTITY FULL"
    ),
    rf"{_NO_VALUE}{_OF_ARRAY}": (
        "a NaN in an array of decimals and a NULL in one of an enum have no value in the topic: "
        "leave the column out with --set column.exclude.list, or make it a text[], in a connector "
        "under another name; a large value that did not change is captured once the table has "
        "REPLICA IDENTITY FULL"
    ),
}
_WAYS_OUT = tuple((re.compile(begin), way) for begin, way in _KNOWN.items())
"""How a cause of a failure begins, and what it means, or what to do about it.

What a record brings stands in no beginning: a database's words follow its own "ERROR:".
"""
_REFUSALS = {
    "value_not_captured": (
        "run ALTER TABLE ... REPLICA IDENTITY FULL, delete the connector and its replication slot, "
        "and add it under another name, which reads the table anew"
    ),
    "table_truncated": (
        "delete the connector and its replication slot, delete the topic, and add it under another "
        "name; or pass over TRUNCATE with `sdm connect connector update NAME --set "
        "skipped.operations=t`, which leaves the rows in the topic"
    ),
    "table_without_identity": (
        "it was not published, since PostgreSQL would refuse each UPDATE and DELETE of it: add a "
        "primary key, or run ALTER TABLE ... REPLICA IDENTITY FULL, or, where that would have a "
        "generated column in it, drop what generates the column; the connector tries again by "
        "itself"
    ),
    "slot_lost": (
        "PostgreSQL has given the replication slot up, above max_slot_wal_keep_size, and the "
        "changes behind it: delete the connector and the slot, and add it under another name, "
        "which reads the table anew; with --set heartbeat.interval.ms=10000 a quiet table keeps "
        "no log"
    ),
    "pattern_too_slow": (
        "the default of a column takes too long to be read, as one of many operators or commas "
        "with a line end behind them: leave the column out with --set column.exclude.list, or "
        "change its default"
    ),
    "key_not_captured": (
        "Debezium knows the type of no column of the primary key: give the table a key of other "
        "columns, or these another type, such as text, and add the connector under another name"
    ),
    "key_lost": (
        "the table has no primary key any more, or one of other columns: change it back, drop the "
        "connector and its replication slot, and add it under another name; or go on with records "
        "without keys by --set table.keyless.list=schema.table"
    ),
    "key_changed": (
        "the table's primary key has other columns than the latest schema of the topic's keys, or "
        "another order of them: change it back, delete the connector and its replication slot, and "
        "add it under another name, which reads the table anew; a new key needs a topic of another "
        "name"
    ),
    "table_renamed": (
        "the connector's publication has the table by another name, and changes by that name have "
        "no topic: rename it back, or, where a migration has left it behind, run ALTER PUBLICATION "
        "... DROP TABLE; where it was changed by that name it goes on failing: delete the "
        "connector and its replication slot, and add it under another name, which reads the table "
        "anew"
    ),
    "table_recreated": (
        "the publication does not have the table that has the name now, and what was written to it "
        "is missing from the topic: delete the connector and its replication slot, and add it "
        "under another name, which reads the table anew; of a table that nothing was written to, "
        "run ALTER PUBLICATION ... ADD TABLE"
    ),
    "publication_lost": (
        "PostgreSQL goes on without it, and changes are missing: delete the connector and its "
        "replication slot, and add it under another name, which reads the tables anew"
    ),
    "position_lost": (
        "the server or its slot is another one: delete the connector and its replication slot, and "
        "add it under another name, which reads the tables anew"
    ),
    "log_behind": (
        "the server was set back, or is another one, and would pass over the changes up to there: "
        "delete the connector and its replication slot, and add it under another name, which reads "
        "the tables anew"
    ),
    "database_is_standby": (
        "make the publication at the primary, and set publication.name and "
        "publication.autocreate.mode=disabled"
    ),
    "topic_not_own": (
        "its transforms lead a record to a topic whose name does not begin with the domain's: "
        "change their replacements, or what the rows of an outbox name"
    ),
    "value_not_exact": (
        "the table cannot have the value: capture decimals as numeric(p,s), or as text with --set "
        "decimal.handling.mode=string, of at most 131072 digits before the point and 16383 after "
        "it, and times of whole microseconds from 4713 BC on, without 24:00; in a key it has no "
        "-0.0 and no NaN; to pass over such records, give "
        "errors.tolerance=all with errors.deadletterqueue.topic.name"
    ),
    "schema_ambiguous": (
        "what Avro reads of the schema, and what its connect.parameters or its connect.default "
        "say, are two values: write with a schema that has the one that is meant"
    ),
    "change_ambiguous": (
        "sinks go by what a change says that it is, and statements by its row: write c, r or u "
        "with a row after it, or d with the one before; to pass over such records, give "
        "errors.tolerance=all with errors.deadletterqueue.topic.name"
    ),
    "time_not_milliseconds": (
        "TimestampConverter would take the field's number for milliseconds, and write other times: "
        "give the capture --set time.precision.mode=connect, declare the column as timestamp(3), "
        "or convert no such field"
    ),
    "payload_not_exact": (
        "the schema that Debezium makes of the payload lacks the member, which would be missing: "
        "write lists of plain objects and names of A-Z, a-z, 0-9 and _, or have payloads as texts "
        "with --set transforms.outbox.table.expand.json.payload=false"
    ),
    "table_not_fit": (
        "a record's key has other columns than the table's primary key and its unique indexes, so "
        "that other rows would be changed or deleted with it: write keys with the table's columns, "
        "or let the sink make a table of its own (--set collection.name.format)"
    ),
    "registry_unavailable": (
        "the schema registry did not say what the record's schema is: the task is started again by "
        "itself, and reads the record again; see `sdm status`"
    ),
    "source_gap": (
        "the topic's retention or its owner deleted records before they were written: add the "
        "connector under another name, which reads what is left, and look at which rows it lacks"
    ),
    "text_not_utf8": (
        "a text of the record has bytes that stand for no character: write it as UTF-8, or as "
        "bytes; to pass over such records, give errors.tolerance=all with "
        "errors.deadletterqueue.topic.name"
    ),
    "dead_letter_not_written": (
        "the record stays unread until it is there: look whether the topic of dead letters takes "
        "it (its brokers, the right to write, its size: the operator runs `sdm kafka configs "
        "--alter --topic TOPIC --add-config max.message.bytes=17825792`)"
    ),
    "column_not_exact": (
        "run ALTER TABLE ... ALTER COLUMN ... TYPE with a type that has each value of the field, "
        "as numeric (numeric[] of an array, or a domain over it); what was rounded before is as it "
        "was once a connector under another name reads the topic anew"
    ),
    **dict.fromkeys(
        ("name_not_plain", "default_not_plain", "parameter_not_plain"),
        "a JDBC sink would put it into a statement as it is: rename the field with ReplaceField, "
        "or drop it there; to pass over such records, give errors.tolerance=all with "
        "errors.deadletterqueue.topic.name",
    ),
}
"""The code of a refusal of our own transformations, and what to do about it."""

_REFUSED = re.compile(
    r"mesh\.Refused(?:Exception|Error): (?P<refusal>"
    r"(?:value_not_captured|table_truncated|column_not_exact|table_not_fit): "
    r"[\w$-]{1,63}(?:\.[\w$-]{1,63}){1,2}"
    r"|table_(?:without_identity|renamed|recreated): (?:[\w$-]{1,63}\.[\w$-]{1,63}|a table)"
    r"|payload_not_exact: (?:[\w$-]{1,63}|a member)"
    r"|time_not_milliseconds: (?:Micro|Nano)[A-Za-z]{1,20}"
    r"|slot_lost: [a-z0-9_]{1,63}"
    r"|registry_unavailable: [A-Za-z]{1,64}"
    r"|publication_lost: (?:[a-z0-9_]{1,63}|a publication)"
    r"|position_lost: a transaction"
    r"|log_behind: (?:[\w$-]{1,63}|a database)|database_is_standby: a database"
    r"|(?:key_not_captured|key_lost): [\w$-]{1,63}\.[\w$-]{1,63}"
    r"|key_changed: [\w.-]{1,249}"
    r"|text_not_utf8: a text|value_not_exact: a number|schema_ambiguous: a (?:decimal|default)"
    r"|topic_not_own: [a-z0-9-]{1,63}"
    r"|dead_letter_not_written: [\w.-]{1,249}: [A-Za-z]{1,64}"
    r"|pattern_too_slow: (?:column [\w$-]{1,63}|a text)"
    r"|(?:(?:name|default|parameter)_not_plain|schema_missing|schema_too_large|value_not_exact"
    r"|change_ambiguous): "
    r"[\w.-]{1,260} at offset [0-9]{1,19}: [\w\\]{0,106}"
    r"|source_gap: [\w.-]{1,260} at offset [0-9]{1,19})[: ]"
)
"""A refusal, its code with what it names: of `WholeRows` table and column, of `OwnTopics` the
domain, of `DeadLetters` the topic and Kafka's error, of `ExactColumns` the column or the table,
of `BoundedMatches` the column, of `Identities` and `RenamedTables` the table, of `LostSlots` the
slot, of `Publications` the publication, of `LogPositions` the database, of `KeptKeys` the topic, of
`CountedPositions` nothing, of `SkippedRecords` the partition and the position, of
`Milliseconds` Debezium's name of the type, of the Avro converter nothing, of `PlainNames` and
`ExactValues` the record's place and the field. No error but theirs has that class."""
_UNCONVERTED = re.compile(
    rf"{_NO_VALUE}"
    r"'(?P<column>[\w$-]{1,63}(?:\.[\w$-]{1,63}){1,3})'"
)
"""Where Debezium found a value that it cannot convert."""


def reason_of(trace: str) -> str:
    """The known name of the last cause in a trace, and the way out where trying again is none.

    Nothing else of the trace is in the answer but a SQLSTATE and names that were checked for their
    form.

    Args:
        trace: one line per cause and frame, as `Traces.scala` has Connect print it.
    """
    # not `splitlines`, which ends lines where a message has other signs than \n
    lines = trace.split("\n")
    causes = [lines[0], *(line[len(_CAUSE) :] for line in lines if line.startswith(_CAUSE))]
    ways = [way for sign, way in _WAYS_OUT if any(sign.match(one) for one in causes)]
    refused = next((found for one in reversed(causes) if (found := _REFUSED.match(one))), None)
    name = refused["refusal"] if refused else error_name(trace)
    if refused and (way := _REFUSALS.get(name.partition(":")[0])):
        ways.append(way)
    columns = (found["column"] for one in causes if (found := _UNCONVERTED.match(one)))
    errors = [_database_error(found) for one in lines if (found := _SQLSTATE.match(one))]
    return "; ".join([name, *errors[-1:], *(f"column {one}" for one in columns), *ways])


def _database_error(found: re.Match[str]) -> str:
    """A database's error by its code, and the parts of the database that it is about."""
    code = found["state"]
    condition = f" ({_CONDITIONS[code]})" if code in _CONDITIONS else ""
    named = _ABOUT.findall(found["about"] or "")
    return ", ".join([f"SQLSTATE {code}{condition}", *(f"{part} {name}" for part, name in named)])
