package mesh

import java.io.{IOException, InputStream, UncheckedIOException}
import java.util

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.databind.ObjectMapper
import io.apicurio.registry.resolver.ParsedSchema
import io.apicurio.registry.resolver.strategy.ArtifactReference
import io.apicurio.registry.rest.client.RegistryClient
import io.apicurio.registry.rest.client.exception.NotFoundException

/**
 * Refuses keys with other fields than those in the topic, or with another order of them: one row would have
 * two keys, of which a compacted topic keeps both, and another partition. The registry's rules let a key
 * lose a field, and know nothing of an order.
 *
 * [[PatchResolver]] has the resolver of schemas ask this before it registers a schema. Names are read from
 * the schemas' texts: one that refers to others is no schema by itself. Nothing of Scala's own library is
 * used, so that Connect needs no more jars for it.
 */
object KeptKeys {
  private val ofKeys = "-key"
  private val json = new ObjectMapper

  def require(client: RegistryClient, subject: ArtifactReference, schema: ParsedSchema[_]): Unit = {
    val name = subject.getArtifactId
    if (name != null && name.endsWith(ofKeys)) {
      val made = fields(schema.getRawSchema)
      val known = if (made == null) null else latest(client, subject)
      if (known != null && !known.equals(made))
        throw new RefusedError(
          "key_changed: " + name.substring(0, name.length - ofKeys.length) +
            ": the keys in the topic have other fields, or another order of them", null)
    }
  }

  /** Null where the subject has no schema with fields. */
  private def latest(client: RegistryClient, subject: ArtifactReference): util.List[String] =
    try {
      val found: InputStream = client.getLatestArtifact(subject.getGroupId, subject.getArtifactId)
      if (found == null) null
      else
        try fields(found.readAllBytes())
        finally found.close()
    } catch {
      case _: NotFoundException => null
      case error: IOException => throw new UncheckedIOException(error)
    }

  /** The names of a record's fields; null of another schema. */
  private def fields(text: Array[Byte]): util.List[String] =
    try {
      val found = json.readTree(text).path("fields")
      if (!found.isArray) null
      else {
        val names = new util.ArrayList[String](found.size)
        var index = 0
        while (index < found.size) {
          names.add(found.get(index).path("name").asText)
          index += 1
        }
        names
      }
    } catch {
      // of another language, which the registry's rules refuse
      case _: JsonProcessingException => null
    }
}
