#!/bin/sh
# Start Spark Connect for the governor, which shares this container's network.
set -eu
umask 077
SPARK_CONNECT_AUTHENTICATE_TOKEN=$(cat /run/secrets/spark_token)
export SPARK_CONNECT_AUTHENTICATE_TOKEN
# what a length in a record of Avro may claim
limits=-Dorg.apache.avro.limits.bytes.maxLength=16777216
limits="$limits -Dorg.apache.avro.limits.string.maxLength=16777216"
limits="$limits -Dorg.apache.avro.limits.collectionItems.maxLength=1048576"
exec /opt/spark/bin/spark-submit \
    --class mesh.ConnectServer \
    --master 'local[512]' \
    --driver-memory 1g \
    --driver-java-options "$limits -XX:-DontCompileHugeMethods" \
    --conf spark.connect.grpc.binding.address=127.0.0.1 \
    --conf spark.connect.grpc.binding.port=15002 \
    --conf spark.connect.session.manager.defaultSessionTimeout=-1 \
    --conf spark.kafka.producer.cache.timeout=2s \
    --conf spark.kafka.producer.cache.evictorThreadRunInterval=1s \
    --conf spark.sql.shuffle.partitions=2 \
    --conf spark.executor.killOnFatalError.depth=0 \
    --conf spark.ui.enabled=false \
    --conf spark.extraListeners=org.apache.spark.mesh.ClosedPorts \
    --conf spark.task.maxDirectResultSize=128m \
    --conf spark.authenticate=true \
    spark-internal
