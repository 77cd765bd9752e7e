#!/bin/sh
# Start the registry; its passwords come as files under /run/secrets.
set -eu
umask 077
login=org.apache.kafka.common.security.scram.ScramLoginModule
APICURIO_KAFKA_COMMON_SASL_JAAS_CONFIG="$login required username=\"registry\" password=\"$(cat /run/secrets/east_registry_password)\";"
QUARKUS_SECURITY_USERS_EMBEDDED_USERS_WRITER=$(cat /run/secrets/registry_writer_password)
QUARKUS_SECURITY_USERS_EMBEDDED_USERS_ADMIN=$(cat /run/secrets/registry_admin_password)
export APICURIO_KAFKA_COMMON_SASL_JAAS_CONFIG
export QUARKUS_SECURITY_USERS_EMBEDDED_USERS_WRITER QUARKUS_SECURITY_USERS_EMBEDDED_USERS_ADMIN
exec /opt/jboss/container/java/run/run-java.sh
