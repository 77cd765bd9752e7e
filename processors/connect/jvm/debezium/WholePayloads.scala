package mesh

import java.util.regex.Pattern

import com.fasterxml.jackson.databind.JsonNode
import org.apache.kafka.connect.data.Schema

/** Not an exception, of which Debezium's router makes a text in the place of a record. */
class RefusedError(message: String) extends Error(message)

/**
 * Refuses the payload of an outbox of which its schema lacks a member. Debezium makes the schema of what
 * it finds, of the first one where there are several in lists within others, and leaves out what a
 * member is called otherwise than Avro allows. Without a value, as an empty list, one may be missing.
 *
 * [[PatchDebezium]] has its router ask this. The error begins with a code. Nothing of Scala's own
 * library is used, so that Connect needs no more jars for it.
 */
object WholePayloads {
  private val plain = Pattern.compile("[\\w$-]{1,63}")

  /** Called with each object of a payload, and the schema that its record has. */
  def require(node: JsonNode, schema: Schema): Unit = {
    val members = node.properties().iterator
    while (members.hasNext) {
      val member = members.next()
      if (!isNothing(member.getValue) && schema.field(member.getKey) == null)
        throw new RefusedError(
          "payload_not_exact: " + named(member.getKey) + ": no field of the record is called so")
    }
  }

  private def isNothing(node: JsonNode): Boolean =
    node.isNull || node.isMissingNode || node.isContainerNode && node.isEmpty

  private def named(member: String): String =
    if (plain.matcher(member).matches) member else "a member"
}
