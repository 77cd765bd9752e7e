#!/bin/sh
# Start the Connect worker; its passwords come as files under /run/secrets.
set -eu
umask 077
scram=org.apache.kafka.common.security.scram.ScramLoginModule
login="$scram required username=\"connect\" password=\"$(cat /run/secrets/east_connect_password)\";"
writer=$(cat /run/secrets/registry_writer_password)

cat /etc/sdm/connect.properties - > /tmp/connect.properties <<END
sasl.jaas.config=$login
producer.sasl.jaas.config=$login
consumer.sasl.jaas.config=$login
admin.sasl.jaas.config=$login
key.converter.apicurio.auth.password=$writer
value.converter.apicurio.auth.password=$writer
END
printf 'admin: %s\n' "$(cat /run/secrets/connect_admin_password)" > /tmp/connect.users
cat > /tmp/connect.jaas <<END
KafkaConnect {
  org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule required file="/tmp/connect.users";
};
END
# what a length in a record of Avro may claim
limits=-Dorg.apache.avro.limits.bytes.maxLength=16777216
limits="$limits -Dorg.apache.avro.limits.string.maxLength=16777216"
limits="$limits -Dorg.apache.avro.limits.collectionItems.maxLength=1048576"
export KAFKA_OPTS="$limits -XX:+ExitOnOutOfMemoryError -Duser.timezone=UTC -Djava.security.auth.login.config=/tmp/connect.jaas -Dorg.apache.kafka.allowed.login.modules=$scram"
exec /opt/kafka/bin/connect-distributed.sh /tmp/connect.properties
