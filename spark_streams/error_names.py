"""Names of errors that may stand in public: of known classes and of Spark's error conditions.

The text of an error can quote the record that caused it, and a record can quote anything: also what
looks like a name. So a name counts only if it is on a list of the software.
"""

import json
import re
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

UNKNOWN = "an error without a known name"
_MOST = 262_144
"""Characters of a text that are looked through, from its end: the last cause stands there."""
_CAUSE = "Caused by: "
_LINE = re.compile(
    r"\(?(?:[A-Za-z_$][\w$]*\.)*(?P<name>[A-Z]\w*)?(?:\)|:|$)?\s*(?:\[(?P<condition>[A-Z][\w.]*)\])?"
)
_CONDITIONS_JAR = "spark-common-utils_2.*.jar"
_CONDITIONS_FILE = "error/error-conditions.json"
_CLASSES = frozenset(
    """
    AccessDeniedException AnalysisException ApiException ArithmeticException
    ArrayIndexOutOfBoundsException ArtifactNotFoundException AuthenticationException
    AuthorizationException AvroRuntimeException AvroTypeException BatchUpdateException
    ClassCastException ClassNotFoundException ClusterAuthorizationException
    ConcurrentModificationException ConfigException ConnectException
    ConstraintViolationException CoordinatorNotAvailableException CorruptRecordException
    DataException DateTimeException DebeziumException DisconnectException EOFException
    ExecutionException FileNotFoundException GenericJDBCException GroupAuthorizationException
    HibernateException IOException IllegalArgumentException IllegalStateException
    IndexOutOfBoundsException InterruptException InterruptedException
    InvalidConfigurationException InvalidProducerEpochException InvalidRecordException
    InvalidTimestampException
    InvalidTopicException InvalidTxnStateException JDBCConnectionException KafkaException
    KafkaStorageException NegativeArraySizeException NetworkException NoClassDefFoundError
    NoSuchElementException NoSuchFileException NoSuchMethodError
    NotEnoughReplicasAfterAppendException NotEnoughReplicasException
    NotLeaderOrFollowerException NullPointerException NumberFormatException
    OffsetOutOfRangeException OutOfMemoryError OutOfOrderSequenceException PSQLException
    ParseException PolicyViolationException ProducerFencedException PythonException
    QueryExecutionException RecordBatchTooLargeException RecordTooLargeException
    RefusedException RestClientException RetriableException RuleViolationException
    RuntimeException SQLException
    SQLGrammarException SSLHandshakeException SaslAuthenticationException
    SchemaBuilderException SchemaParseException SecurityException SerializationException
    SocketException SocketTimeoutException SparkArithmeticException
    SparkArrayIndexOutOfBoundsException SparkClassCastException SparkClassNotFoundException
    SparkConcurrentModificationException SparkConnectGrpcException SparkDateTimeException
    SparkException SparkFileNotFoundException SparkIllegalArgumentException
    SparkIllegalStateException SparkNoSuchElementException SparkNoSuchMethodException
    SparkNumberFormatException SparkOutOfMemoryError SparkRuntimeException
    SparkRuntimePermissionException SparkSQLException SparkSecurityException
    SparkUnsupportedOperationException SparkUpgradeException SslAuthenticationException
    StackOverflowError StreamingQueryException TimeoutException TopicAuthorizationException
    TransactionalIdAuthorizationException UncheckedIOException UnknownHostException
    UnknownServerException UnknownTopicIdException UnknownTopicOrPartitionException
    UnsupportedOperationException UnsupportedVersionException
    """.split()  # noqa: SIM905 - a hundred names are read more easily so
)


def error_name(text: str) -> str:
    """The known class and condition of the last cause in an error's text that has one.

    Nothing else of the text is in the answer. `UNKNOWN` where no name is known.

    Args:
        text: a message or a Java stack trace.
    """
    for line in _causes(text):
        found = _LINE.match(line)
        if found is None:
            continue
        name = found["name"] if found["name"] in _CLASSES else None
        condition = found["condition"] if found["condition"] in conditions() else None
        if name or condition:
            return " ".join(part for part in (name, condition and f"[{condition}]") if part)
    return UNKNOWN


def _causes(text: str) -> Iterator[str]:
    """The lines that name an error: the causes, the last one first, and then the first line."""
    # Java ends lines so; a message may hold what else `splitlines` takes for the end of one
    lines = text[-_MOST:].split("\n")
    for line in reversed(lines):
        if line.strip().startswith(_CAUSE):
            yield line.strip().removeprefix(_CAUSE)
    first = next((line for line in text[:_MOST].split("\n") if line.strip()), "")
    yield first.strip()


@cache
def conditions() -> frozenset[str]:
    """Every error condition of the installed Spark, empty where its jars are not installed."""
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        return frozenset()
    jars = Path(spec.submodule_search_locations[0]) / "jars"
    for jar in sorted(jars.glob(_CONDITIONS_JAR)):
        with zipfile.ZipFile(jar) as archive:
            found = json.loads(archive.read(_CONDITIONS_FILE))
        return frozenset(_named(found))
    return frozenset()


def _named(found: dict[str, dict[str, object]]) -> Iterator[str]:
    for name, about in found.items():
        yield name
        below = about.get("subClass")
        for more in below if isinstance(below, dict) else ():
            yield f"{name}.{more}"
