package mesh

import java.util

import io.apicurio.registry.utils.converter.AvroConverter

/**
 * What reading a record ends with whose schema a registry is asked for: a line for each address. The
 * second word tells whether Connect takes it for a fault of the record.
 */
object AskRegistry {
  def main(addresses: Array[String]): Unit = addresses.foreach { address =>
    val converter = new AvroConverter[AnyRef]
    converter.configure(
      util.Map.of(
        "apicurio.registry.url", address, "apicurio.registry.as-confluent", "true",
        "apicurio.registry.use-id", "contentId", "apicurio.registry.headers.enabled", "false"),
      false)
    val unknown = Array[Byte](0, 0x7f, -1, -1, -1, 0)
    try println("read " + converter.toConnectData("east.users", unknown))
    catch {
      case error: Error => println("Error " + error.getMessage)
      case error: Exception => println("Exception " + error.getClass.getSimpleName)
    }
  }
}
