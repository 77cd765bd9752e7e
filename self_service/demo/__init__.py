"""The story of the README, told on real servers, with a check after every step.

What lives here: the steps (`story.py`), a plain Kafka client of an application (`client.py`),
the database of the source (`database.py`), and the stage that runs `sdm` and keeps the score.
Every step that a person would do is done through `sdm`. Start reading with `story.py`.
"""
