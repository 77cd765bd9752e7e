import java.nio.ByteBuffer; import java.util.*;
import org.apache.kafka.common.message.*; import org.apache.kafka.common.protocol.*;
public class Q { public static void main(String[] a) throws Exception {
  long best=Long.MAX_VALUE; int size=0;
  for (int k=0;k<15;k++) { long t=System.nanoTime();
    List<OffsetFetchResponseData.OffsetFetchResponseTopic> ts=new ArrayList<>();
    for (int i=0;i<196;i++){ List<OffsetFetchResponseData.OffsetFetchResponsePartition> ps=new ArrayList<>();
      for(int p=0;p<256;p++) ps.add(new OffsetFetchResponseData.OffsetFetchResponsePartition().setPartitionIndex(p).setCommittedOffset(5).setMetadata("x".repeat(128)));
      ts.add(new OffsetFetchResponseData.OffsetFetchResponseTopic().setName("east.t"+i).setPartitions(ps)); }
    OffsetFetchResponseData d=new OffsetFetchResponseData().setTopics(ts);
    for(int r=0;r<1;r++){ ObjectSerializationCache c=new ObjectSerializationCache(); MessageSizeAccumulator s=new MessageSizeAccumulator(); d.addSize(s,c,(short)7);
    c=new ObjectSerializationCache(); s=new MessageSizeAccumulator(); d.addSize(s,c,(short)7); size=s.totalSize();
    d.write(new ByteBufferAccessor(ByteBuffer.allocate(size)),c,(short)7);} best=Math.min(best,System.nanoTime()-t); }
  System.out.println("50176 offsets: "+size+" bytes, best "+best/1000000+" ms");
} }
