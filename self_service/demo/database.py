"""East's database: the tables of the story and the changes that it makes to them."""

from collections.abc import Sequence

import psycopg

from local_platform.endpoints import Endpoints

TABLES = """
CREATE TABLE IF NOT EXISTS users (
    userid integer PRIMARY KEY, first_name text NOT NULL, last_name text NOT NULL, phone text
);
CREATE TABLE IF NOT EXISTS products (
    productid integer PRIMARY KEY, name text NOT NULL, price_cents integer NOT NULL
);
ALTER TABLE users REPLICA IDENTITY FULL;
ALTER TABLE products REPLICA IDENTITY FULL;
"""
ROWS = """
INSERT INTO users VALUES
    (1, 'Ada', 'Example', '555-0101'), (2, 'Ben', 'Example', '555-0102'),
    (3, 'Cleo', 'Example', NULL)
ON CONFLICT DO NOTHING;
INSERT INTO products VALUES (10, 'lamp', 4900), (11, 'chair', 12900) ON CONFLICT DO NOTHING;
"""


class Database:
    """A connection that commits every statement."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._connection = psycopg.connect(**endpoints.postgres_login(), autocommit=True)

    def run(self, statement: str, values: Sequence[object] = ()) -> None:
        """Execute one statement, or several without values."""
        if values:
            self._connection.execute(statement, values)
        else:
            self._connection.execute(statement)

    def fill(self) -> None:
        """Make the tables and their first rows."""
        self.run(TABLES)
        self.run(ROWS)

    def close(self) -> None:
        """Leave the database."""
        self._connection.close()
