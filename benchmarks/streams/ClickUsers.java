import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Properties;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/**
 * CLICK_USERS with Kafka Streams: clicks joined with the latest user of the same key.
 *
 * Each line of the input ends the application that runs, if one does, and starts one if the line
 * names a file: properties with Streams' own settings, and bench.clicks, bench.users, bench.out,
 * bench.schema.click, bench.schema.user, bench.schema.out, bench.id (of the result). Then it
 * prints "done".
 */
public class ClickUsers {
    private static final int HEAD = 5;

    public static void main(String[] given) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        KafkaStreams running = null;
        for (String line; (line = lines.readLine()) != null; ) {
            if (running != null) running.close(Duration.ofSeconds(60));
            running = line.isEmpty() ? null : application(line);
            if (running != null) running.start();
            System.out.println("done");
        }
    }

    private static KafkaStreams application(String file) throws Exception {
        Properties told = new Properties();
        try (FileInputStream in = new FileInputStream(file)) {
            told.load(in);
        }
        Schema out = new Schema.Parser().parse(told.getProperty("bench.schema.out"));
        int id = Integer.parseInt(told.getProperty("bench.id"));
        Serde<byte[]> bytes = Serdes.ByteArray();
        Serde<GenericRecord> click = record(told.getProperty("bench.schema.click"), 0);
        Serde<GenericRecord> user = record(told.getProperty("bench.schema.user"), 0);
        Serde<GenericRecord> result = record(out.toString(), id);

        StreamsBuilder builder = new StreamsBuilder();
        KTable<byte[], GenericRecord> users = builder.table(
            told.getProperty("bench.users"), Consumed.with(bytes, user),
            Materialized.<byte[], GenericRecord>as(Stores.inMemoryKeyValueStore("users"))
                .withKeySerde(bytes).withValueSerde(user));
        KStream<byte[], GenericRecord> clicks =
            builder.stream(told.getProperty("bench.clicks"), Consumed.with(bytes, click));
        clicks.join(users, (one, row) -> {
            GenericRecord made = new GenericData.Record(out);
            for (String name : new String[] {"number", "ip", "userid", "request", "status", "time"}) {
                made.put(name, one.get(name));
            }
            made.put("username", row.get("username"));
            made.put("level", row.get("level"));
            return made;
        }, Joined.with(bytes, click, user))
            .to(told.getProperty("bench.out"), Produced.with(bytes, result));

        return new KafkaStreams(builder.build(told), told);
    }

    private static Serde<GenericRecord> record(String text, int id) {
        Schema schema = new Schema.Parser().parse(text);
        GenericDatumReader<GenericRecord> reader = new GenericDatumReader<>(schema);
        GenericDatumWriter<GenericRecord> writer = new GenericDatumWriter<>(schema);
        return Serdes.serdeFrom(
            (topic, value) -> {
                if (value == null) return null;
                try {
                    ByteArrayOutputStream made = new ByteArrayOutputStream(256);
                    made.write(ByteBuffer.allocate(HEAD).put((byte) 0).putInt(id).array());
                    BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(made, null);
                    writer.write(value, encoder);
                    return made.toByteArray();
                } catch (java.io.IOException error) {
                    throw new RuntimeException(error);
                }
            },
            (topic, value) -> {
                if (value == null) return null;
                try {
                    BinaryDecoder decoder = DecoderFactory.get()
                        .binaryDecoder(value, HEAD, value.length - HEAD, null);
                    return reader.read(null, decoder);
                } catch (java.io.IOException error) {
                    throw new RuntimeException(error);
                }
            });
    }
}
