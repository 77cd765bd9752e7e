package mesh

import java.sql.Array

/**
 * The labels of an enum as a database tells them: there are none of an enum without labels, nor of a
 * domain over an enum, which has its category. Debezium reads all types of a database as it starts, and
 * ended there, whichever table it captures. [[PatchDebezium]] has it ask this.
 *
 * Nothing of Scala's own library is used, so that Connect needs no more jars for it.
 */
object TypeLabels {
  def of(labels: Array): Object =
    if (labels == null) new scala.Array[String](0) else labels.getArray
}
