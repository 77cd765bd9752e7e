"""The mesh in a bottle: real governor, controllers, fold and rules on seeded models of all else.

A schedule is a list of acts. Every act, every fault and every interleaving follows from it, so that
a schedule that fails can be run again, and be made shorter, until it shows one thing.

world        the log, the clusters, the engine, the workers, and what can happen to them
worker       one worker process: what `processors.worker` does, without a loop and threads
interrupts   where a worker can be stopped, killed or left without an answer
models       Kafka's admin, Spark, rows, secrets and registry with those places in them
acts         what people, strangers, servers and time do
invariants       what must hold after every act, worked out without the code under test
"""
