package mesh

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connect.service.SparkConnectService

/**
 * A Spark Connect server whose tasks look for no classes that a session brought.
 *
 * Spark's own main class has each session keep classes apart, and tasks ask the driver for each one
 * that they do not find, through the port for executors that [[org.apache.spark.mesh.ClosedPorts]] closes.
 */
object ConnectServer {
  def main(arguments: Array[String]): Unit = {
    val session = SparkSession
      .builder()
      .config("spark.sql.artifact.isolation.enabled", "false")
      .config("spark.sql.artifact.isolation.alwaysApplyClassloader", "false")
      .getOrCreate()
    try {
      SparkConnectService.start(session.sparkContext)
      // gRPC has another package in Spark's jar than in the signature of this field
      val server = SparkConnectService.getClass.getMethod("server").invoke(SparkConnectService)
      server.getClass.getMethod("awaitTermination").invoke(server)
    } finally {
      session.stop()
    }
  }
}
