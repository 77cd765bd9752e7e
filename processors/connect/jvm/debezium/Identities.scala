package mesh

import java.sql.Statement
import java.util.regex.Pattern

/**
 * Refuses a publication with a table that PostgreSQL cannot tell the old rows of: each UPDATE and
 * DELETE of its application would fail from then on. [[PatchDebezium]] has the connector ask this once
 * it has made or changed its publication, in the same transaction: the tables are locked by then, so
 * that none loses its key in between.
 *
 * The error begins with a code, and names the table where its name is plain. Nothing of Scala's own
 * library is used, so that Connect needs no more jars for it.
 */
object Identities {
  /**
   * Of the publication whose name is given as SQL writes it: a table without an identity, or the
   * partition that is one. From PostgreSQL 18 on no generated column may be in it that is not
   * published; earlier ones do not log those.
   */
  private val lacking = """
    SELECT s.nspname || '.' || t.relname
    FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid
    JOIN pg_class c ON c.oid = r.prrelid
    LEFT JOIN LATERAL pg_partition_tree(c.oid) l ON l.isleaf
    JOIN pg_class t ON t.oid = coalesce(l.relid, c.oid)
    JOIN pg_namespace s ON s.oid = t.relnamespace
    LEFT JOIN pg_index i ON i.indrelid = t.oid AND i.indisvalid AND i.indimmediate
      AND (t.relreplident = 'd' AND i.indisprimary OR t.relreplident = 'i' AND i.indisreplident)
    WHERE p.pubname = (parse_ident(?))[1]::name AND (p.pubupdate OR p.pubdelete)
      AND t.relkind = 'r' AND t.relpersistence = 'p'
      AND (t.relreplident <> 'f' AND i.indexrelid IS NULL
        OR current_setting('server_version_num')::int >= 180000 AND EXISTS (
          SELECT 1 FROM pg_attribute a WHERE a.attrelid = t.oid AND NOT a.attisdropped
            AND a.attgenerated <> ''
            AND (t.relreplident = 'f' OR a.attnum = ANY((i.indkey::int2[])[0:i.indnkeyatts - 1]))
            AND (a.attgenerated = 'v' OR to_jsonb(p) ->> 'pubgencols' = 'n')))
    ORDER BY 1 LIMIT 1"""
  private val longestS = 90
  private val plain = Pattern.compile("[\\w$-]{1,63}\\.[\\w$-]{1,63}")

  def require(statement: Statement, publication: String): Unit = {
    val connection = statement.getConnection
    val asking = connection.prepareStatement(lacking)
    try {
      // one who alters a partition keeps it waiting, and it keeps what others wait for
      asking.setQueryTimeout(longestS)
      asking.setString(1, publication)
      val found = asking.executeQuery()
      if (found.next()) {
        val name = found.getString(1)
        val table = if (plain.matcher(name).matches()) name else "a table"
        // whoever called leaves the transaction open, and the tables locked
        connection.rollback()
        throw new RefusedException(
          "table_without_identity: " + table + ": once it is published, PostgreSQL refuses each " +
            "UPDATE and DELETE of it")
      }
    } finally asking.close()
  }
}
