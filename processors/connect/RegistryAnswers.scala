package mesh

/**
 * The registry did not say what a record's schema is. An error, since Connect takes any exception of a
 * converter for a fault of the record, which becomes a dead letter.
 */
class RefusedError(message: String, cause: Throwable) extends Error(message, cause)

/**
 * Tells a record whose schema is not there from a registry that does not answer: what can be read once
 * it is back is no dead letter. The task fails, and the record comes again when it is started anew.
 *
 * [[PatchResolver]] has the resolver of schemas ask this. Nothing of Scala's own library is used.
 */
object RegistryAnswers {
  private val client = "io.apicurio.registry.rest.client.exception."

  /** Throws where a lookup has failed for another reason than the schema itself. */
  def require(error: RuntimeException): RuntimeException = {
    if (!isOfSchema(error))
      throw new RefusedError("registry_unavailable: " + error.getClass.getSimpleName + ": ", error)
    error
  }

  /** The registry has none of this id, or what it has is no schema that can be read. */
  private def isOfSchema(error: RuntimeException): Boolean = {
    val name = error.getClass.getName
    name.startsWith(client) && name.endsWith("NotFoundException") ||
    name.startsWith("org.apache.avro.") || error.isInstanceOf[NullPointerException] ||
    error.isInstanceOf[org.apache.kafka.connect.errors.DataException]
  }
}
