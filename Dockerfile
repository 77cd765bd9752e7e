# The mesh's own image, and the three servers that need more than their public image has.

FROM python:3.11-slim AS mesh
WORKDIR /opt/sdm
COPY . .
RUN pip install --no-cache-dir . \
    && useradd --uid 10001 --home-dir /var/lib/sdm --create-home sdm
ENV SDM_HOME=/var/lib/sdm
USER sdm
ENTRYPOINT ["python", "-m"]
CMD ["processors"]

FROM mesh AS jars
USER root
RUN python -m local_platform.containers.jars /jars

FROM apache/kafka:4.3.1 AS connect
COPY --from=jars /jars/plugins /opt/plugins
# before Kafka's own jars: five of its classes are replaced
ENV CLASSPATH=/opt/plugins/sdm-transformations/sdm-transformations.jar

FROM apache/kafka:4.3.1 AS kafka
COPY --from=jars /jars/kafka /opt/sdm
# before Kafka's own jars: eleven of its classes are replaced
ENV CLASSPATH=/opt/sdm/sdm-brokers.jar

FROM apache/spark:4.2.0 AS spark
COPY --from=jars /jars/spark /opt/spark/jars
