r"""Spark's regular expressions, written for RE2 so that each gives the value that Spark gives.

What lives here: sets of characters (`sets`), the allowed syntax as a tree (`tree`, `parse`), what
is known of a part (`facts`), the end of a line (`ends`), and the pattern for RE2 (`rewrite`).
What does not: which functions take a pattern, and their columns (`functions.patterns`).
Why: Spark matches by `java.util.regex`, in exponential time. Statements match by RE2, which reads
`.`, `$`, `\s`, `(?i)` and others differently. What is not known to mean the same is refused.
"""

from spark_streams.sql.regex.facts import has_line_end
from spark_streams.sql.regex.parse import RegexError, parse
from spark_streams.sql.regex.replacement import replacement
from spark_streams.sql.regex.rewrite import Use, Written, rewrite

__all__ = ["RegexError", "Use", "Written", "has_line_end", "parse", "replacement", "rewrite"]
