package mesh

import java.io.{InputStream, OutputStream}

/**
 * The ends of a connection to MySQL or MariaDB, which [[Patience]] watches. Each packet of theirs says
 * its place in a question: the first one ends the login, and begins the time of an answer anew, and
 * none that the server makes the driver send is one. Of an answer the driver is given some bytes:
 * what a sink asks for is small, and the drivers have no bound of their own, nor for the columns that
 * a server says that there are. [[PatchMysql]] has the drivers ask this.
 *
 * As for [[Answers]], nothing of Scala's own library is used.
 */
object Packets {
  /** Rows without columns take five bytes each, and many times as much in memory. */
  private[mesh] val most = 1 << 20
  /** Of the length of a packet and its place. */
  private[mesh] val head = 4

  /** Of a table there are 4096 at most. */
  private val mostColumns = 1 << 14

  def columns(count: Int): Int = {
    if (count < 0 || count > mostColumns) throw Answers.tooLarge(mostColumns)
    count
  }

  def watched(input: InputStream, patience: Patience): InputStream = new PacketsIn(input, patience)

  def watched(output: OutputStream, patience: Patience): OutputStream =
    new PacketsOut(output, patience)
}

private final class PacketsIn(input: InputStream, patience: Patience)
    extends Watched(input, patience) {
  override def read(): Int = {
    val one = super.read()
    patience.counts(1)
    one
  }

  override def read(into: Array[Byte], from: Int, most: Int): Int = {
    val count = super.read(into, from, most)
    if (count > 0) patience.counts(count)
    count
  }
}

private final class PacketsOut(output: OutputStream, patience: Patience)
    extends WatchedOutput(output, patience) {
  override def write(bytes: Array[Byte], from: Int, count: Int): Unit = {
    patience.sendsPacket(if (count < Packets.head) 0 else bytes(from + Packets.head - 1))
    super.write(bytes, from, count)
  }
}
