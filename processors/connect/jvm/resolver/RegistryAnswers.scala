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
    if (isOfRegistry(error))
      throw new RefusedError("registry_unavailable: " + error.getClass.getSimpleName + ": ", error)
    error
  }

  /** What its client throws, but for a schema that is not there; what else fails is the schema. */
  private def isOfRegistry(error: RuntimeException): Boolean = {
    val name = error.getClass.getName
    error.isInstanceOf[java.io.UncheckedIOException] ||
    name.startsWith("io.apicurio.rest.client.") ||
    name.startsWith(client) && !name.endsWith("NotFoundException") &&
    // it answers, and refuses the schema
    !name.endsWith("RuleViolationException")
  }
}
