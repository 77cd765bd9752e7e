package mesh

import java.io.InputStream

import io.apicurio.registry.resolver.ParsedSchema
import io.apicurio.registry.resolver.strategy.ArtifactReference
import io.apicurio.registry.rest.client.RegistryClient
import io.apicurio.registry.rest.client.exception.NotFoundException
import org.apache.avro.{AvroRuntimeException, Schema}

/**
 * Refuses keys with other fields than those in the topic, or with another order of them: one row would have
 * two keys, of which a compacted topic keeps both, and another partition. The registry's rules let a key
 * lose a field, and know nothing of an order.
 *
 * [[PatchResolver]] has the resolver of schemas ask this before it registers a schema. Nothing of Scala's
 * own library is used, so that Connect needs no more jars for it.
 */
object KeptKeys {
  private val ofKeys = "-key"

  def require(client: RegistryClient, subject: ArtifactReference, schema: ParsedSchema[_]): Unit = {
    val name = subject.getArtifactId
    val made: Any = schema.getParsedSchema
    if (name != null && name.endsWith(ofKeys) && isRecord(made)) {
      val known = latest(client, subject)
      if (known != null && !hasSameFields(known, made.asInstanceOf[Schema]))
        throw new RefusedError(
          "key_changed: " + name.substring(0, name.length - ofKeys.length) +
            ": the keys in the topic have other fields, or another order of them", null)
    }
  }

  /** Null where the subject has no schema of a record. */
  private def latest(client: RegistryClient, subject: ArtifactReference): Schema = {
    val found = read(client, subject)
    if (found == null) null
    else
      try {
        val known = new Schema.Parser().parse(found)
        if (isRecord(known)) known else null
      } catch {
        case _: AvroRuntimeException => null
      } finally found.close()
  }

  private def read(client: RegistryClient, subject: ArtifactReference): InputStream =
    try client.getLatestArtifact(subject.getGroupId, subject.getArtifactId)
    catch {
      case _: NotFoundException => null
    }

  private def hasSameFields(known: Schema, made: Schema): Boolean = {
    val before = known.getFields
    val after = made.getFields
    var same = before.size == after.size
    var index = 0
    while (same && index < before.size) {
      same = before.get(index).name.equals(after.get(index).name)
      index += 1
    }
    same
  }

  private def isRecord(schema: Any): Boolean =
    schema.isInstanceOf[Schema] && Schema.Type.RECORD.equals(schema.asInstanceOf[Schema].getType)
}
