"""What runs in Connect's own worker: transformations, and classes of Connect's that are changed.

`WholeRows` runs first in every connector that captures tables, `OwnTopics` last in every source: it
refuses a record for a topic of another domain, and mends a topic's name that Kafka does not allow.
Before all others of a JDBC sink runs `SoundChanges`, behind them `PlainNames` and `ExactValues`,
which ask `KnownTypes`, `JsonTexts` and `Times`. `LoginFilter` stands before the REST API.
`PatchConnect` changes a class of Kafka's clients, whose answers `BoundedReceives` bounds, and four
of Connect's: `NullFields` keeps it from taking the default of a field for its null, `Traces` keeps
a record's text from writing lines into the trace of a failure, `Milliseconds` keeps
TimestampConverter from making other times of finer ones, and a task that starts is RESTARTING,
whatever the worker that ran it before has left.
`PatchConsumer` changes three of Kafka's consumer: `BoundedPolls` bounds what a poll unpacks,
`SkippedRecords` passes over no record that was deleted before it was read. `PatchLetters` changes
Connect's reporter: `DeadLetters` waits until a dead letter is written.
"""
