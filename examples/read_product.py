"""Read a product's records from their beginning, and go on where an earlier run has stopped.

    python examples/read_product.py analytics.properties east.orders [COUNT]

The file is what `sdm access credentials APPLICATION --out FILE` writes. COUNT records are read, or,
without it, all that ever come.
"""

import itertools
import sys
from pathlib import Path

from confluent_kafka import Consumer
from confluent_kafka.schema_registry import SchemaRegistryClient, topic_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError


def main(file: str, topic: str, count: str | None = None) -> None:
    first, *lines = Path(file).read_text(encoding="utf-8").splitlines()
    settings = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    del settings["partitioner"]  # a producer's
    registry = SchemaRegistryClient({"url": first.removeprefix("# schema registry: ")})
    decode = AvroDeserializer(registry, conf={"subject.name.strategy": topic_subject_name_strategy})
    # "earliest" is in the file, and so is a group that this login may use
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe([topic])
    try:
        for _ in itertools.count() if count is None else range(int(count)):
            while (record := consumer.poll(1)) is None:
                pass
            if record.error():
                sys.exit(f"{topic}: {record.error().str()}")
            place = f"{record.partition()}:{record.offset()}"
            try:
                value = decode(record.value(), SerializationContext(topic, MessageField.VALUE))
            except SerializationError as error:  # passed over: it would be in the way for ever
                print(f"{place} cannot be read: {error}", file=sys.stderr)
            else:
                print(f"{place} {value}", flush=True)
            consumer.commit(record)  # behind the work: what was not finished comes again
    finally:
        consumer.close()


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or not all(one.isdecimal() for one in sys.argv[3:]):
        sys.exit("usage: python read_product.py FILE TOPIC [COUNT]")
    try:
        main(*sys.argv[1:])
    except OSError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
