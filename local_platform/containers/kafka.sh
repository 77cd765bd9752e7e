#!/bin/sh
# Start a one-node cluster: $SDM_CLUSTER is its name, $SDM_HOST_PORT the port on the host.
# The super user's password comes as a file; it is on no command line and in no image.
set -eu
umask 077
password=$(cat "/run/secrets/${SDM_CLUSTER}_admin_password")
settings=/tmp/server.properties
scram=org.apache.kafka.common.security.scram.ScramLoginModule
plain=org.apache.kafka.common.security.plain.PlainLoginModule
listeners="CLIENT://0.0.0.0:9092,HOST://0.0.0.0:${SDM_HOST_PORT},CONTROLLER://127.0.0.1:9093"
advertised="CLIENT://kafka-${SDM_CLUSTER}:9092,HOST://127.0.0.1:${SDM_HOST_PORT}"

cat /etc/sdm/kafka.properties - > "$settings" <<END
listeners=$listeners
advertised.listeners=$advertised,CONTROLLER://127.0.0.1:9093
listener.name.client.scram-sha-512.sasl.jaas.config=$scram required username="admin" password="$password";
listener.name.host.scram-sha-512.sasl.jaas.config=$scram required;
listener.name.controller.plain.sasl.jaas.config=$plain required username="admin" password="$password" user_admin="$password";
END

if [ ! -e /var/lib/kafka/data/log/meta.properties ]; then
    cat > /tmp/format <<END
format
--standalone
--cluster-id
$(cut -c1-22 /proc/sys/kernel/random/uuid | tr -d '\n')
--config
$settings
--add-scram
SCRAM-SHA-512=[name=admin,password=$password]
END
    /opt/kafka/bin/kafka-storage.sh @/tmp/format
    rm /tmp/format
fi
exec /opt/kafka/bin/kafka-server-start.sh "$settings"
