"""PostgreSQL's driver in Connect's plugins, changed by `PatchDriver`.

`Answers` bounds what it keeps of an answer, `Patience` for how long it waits for a login and a
question as a whole, and `Publications` refuses changes that come without their publication.
"""
