"""Brokers whose clocks are wrong: what a mesh decides, ends and shows meanwhile.

SystemTime   the class that a broker takes its time from, in place of Kafka's own
broker       a broker with a clock that a test sets
brokers      a mesh on such brokers
"""
