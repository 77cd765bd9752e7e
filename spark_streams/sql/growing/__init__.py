"""How much memory and time an expression may need for a record, known before it is computed.

What lives here: bounds as polynomials in the sizes of columns (`amount`), a rule for each function
(`rules`), and the check of each record against the limits (`limits`).
What does not: bounds that the text alone decides (`spark_streams.sql.functions.growth`).
Why: all statements of a domain share one Spark server. A value that does not fit into its memory
ends all of them, see decision 0029.
"""
