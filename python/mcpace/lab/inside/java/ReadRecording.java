// Prints a recording of JDK Flight Recorder as lines of fields that tabs separate, for mcpace to read.
//
// The arguments are the file of the recording, and the number of bytes from which on nothing more is printed.
//
// A frame and a stack are printed once, before the first line that names them:
//   process ID                      pid of the virtual machine
//   property NAME VALUE             a property of the virtual machine
//   frame ID MODULE CLASS METHOD LINE
//   stack ID FRAME...               the innermost frame first
//   sample TIME THREAD STACK running|native
//   wait BEGIN END THREAD STACK     a thread waited
//   pause BEGIN END                 the virtual machine stopped all threads
//   more                            a limit was reached: later events are missing
// Times are nanoseconds of the wall clock. The program uses the JDK alone.

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.module.ModuleFinder;
import java.lang.module.ModuleReference;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import jdk.jfr.consumer.RecordedClass;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordedMethod;
import jdk.jfr.consumer.RecordedStackTrace;
import jdk.jfr.consumer.RecordedThread;
import jdk.jfr.consumer.RecordingFile;

final class ReadRecording {
  private static final int MOST_EVENTS = 1_000_000;
  private static final int MOST_FRAMES = 256;
  private static final int LONGEST_NAME = 1_000;
  private static final int LONGEST_VALUE = 100_000;
  /** Descriptor of functions that the profiler records. No Java method has it, because the class has no name. */
  private static final String NATIVE_FUNCTION = "()L;";
  private static final Map<String, String> MODULES = modulesOfPackages();

  private final PrintStream out;
  private final long mostBytes;
  private final Map<String, Integer> frames = new HashMap<>();
  private final Map<String, Integer> stacks = new HashMap<>();
  private int events;
  private long bytes;

  private ReadRecording(PrintStream out, long mostBytes) {
    this.out = out;
    this.mostBytes = mostBytes;
  }

  public static void main(String[] words) throws IOException {
    PrintStream out = new PrintStream(new BufferedOutputStream(System.out, 1 << 16), false, StandardCharsets.UTF_8);
    try (RecordingFile file = new RecordingFile(Path.of(words[0]))) {
      new ReadRecording(out, Long.parseLong(words[1])).print(file);
    } finally {
      out.flush();
    }
  }

  private void print(RecordingFile file) throws IOException {
    while (file.hasMoreEvents()) {
      RecordedEvent event = file.readEvent();
      switch (event.getEventType().getName()) {
        case "jdk.ExecutionSample":
          printSample(event, "running");
          break;
        case "jdk.NativeMethodSample":
          printSample(event, "native");
          break;
        case "jdk.ThreadPark":
        case "jdk.ThreadSleep":
        case "jdk.JavaMonitorWait":
        case "jdk.JavaMonitorEnter":
        case "jdk.SocketRead":
        case "jdk.SocketWrite":
        case "jdk.FileRead":
        case "jdk.FileWrite":
          printWait(event);
          break;
        case "jdk.GCPhasePause":
          print("pause", nanos(event.getStartTime()), nanos(event.getEndTime()));
          break;
        case "jdk.JVMInformation":
          print("process", event.getLong("pid"));
          break;
        case "jdk.InitialSystemProperty":
          String key = event.getString("key");
          if ("java.class.path".equals(key) || "jdk.module.path".equals(key) || "sun.java.command".equals(key)) {
            print("property", key, plain(event.getString("value"), LONGEST_VALUE));
          }
          break;
        default:
          continue;
      }
      if (++events == MOST_EVENTS || bytes >= mostBytes) {
        print("more");
        return;
      }
    }
  }

  private void printSample(RecordedEvent event, String state) {
    RecordedThread thread = event.getThread("sampledThread");
    int stack = stack(event.getStackTrace());
    if (thread != null && stack >= 0 && !isRecorder(thread)) {
      print("sample", nanos(event.getStartTime()), thread.getId(), stack, state);
    }
  }

  private void printWait(RecordedEvent event) {
    RecordedThread thread = event.getThread();
    int stack = stack(event.getStackTrace());
    if (thread != null && stack >= 0 && !isRecorder(thread)) {
      print("wait", nanos(event.getStartTime()), nanos(event.getEndTime()), thread.getId(), stack);
    }
  }

  private static boolean isRecorder(RecordedThread thread) {
    String name = thread.getJavaName();
    return name != null && name.startsWith("JFR ");
  }

  /** Number of a stack of Java methods, which is printed when it is new; -1 where there is none. */
  private int stack(RecordedStackTrace trace) {
    if (trace == null) {
      return -1;
    }
    StringBuilder numbers = new StringBuilder();
    trace.getFrames().stream()
        .filter(ReadRecording::isJava)
        .limit(MOST_FRAMES)
        .forEach(frame -> numbers.append('\t').append(frame(frame)));
    return numbers.length() == 0 ? -1 : number("stack", stacks, numbers.toString());
  }

  /** Whether a frame is a method of a class. The profiler also records functions of native libraries and of the kernel. */
  private static boolean isJava(RecordedFrame frame) {
    RecordedMethod method = frame.getMethod();
    boolean hasClass = method != null && method.getType() != null && !method.getType().getName().isEmpty();
    return hasClass && !NATIVE_FUNCTION.equals(method.getDescriptor());
  }

  private int frame(RecordedFrame frame) {
    RecordedMethod method = frame.getMethod();
    RecordedClass type = method == null ? null : method.getType();
    String className = type == null ? "" : plain(type.getName(), LONGEST_NAME);
    String name = method == null ? "" : plain(method.getName(), LONGEST_NAME);
    int line = Math.max(frame.getLineNumber(), 0);
    return number("frame", frames, "\t" + module(type) + "\t" + className + "\t" + name + "\t" + line);
  }

  private int number(String kind, Map<String, Integer> known, String fields) {
    Integer number = known.get(fields);
    if (number == null) {
      number = known.size();
      known.put(fields, number);
      printLine(kind + "\t" + number + fields + "\n");
    }
    return number;
  }

  /** Name of the JDK's module that a class is in; empty for classes of other origin. */
  private static String module(RecordedClass type) {
    if (type == null) {
      return "";
    }
    String name = type.getName();
    return MODULES.getOrDefault(name.substring(0, Math.max(name.lastIndexOf('.'), 0)), "");
  }

  private static Map<String, String> modulesOfPackages() {
    Map<String, String> modules = new HashMap<>();
    for (ModuleReference module : ModuleFinder.ofSystem().findAll()) {
      for (String name : module.descriptor().packages()) {
        modules.put(name, module.descriptor().name());
      }
    }
    return modules;
  }

  private static long nanos(Instant time) {
    return Math.addExact(Math.multiplyExact(time.getEpochSecond(), 1_000_000_000L), time.getNano());
  }

  /** A text without the characters that separate fields and lines. */
  private static String plain(String text, int longest) {
    if (text == null) {
      return "";
    }
    String cut = text.length() > longest ? text.substring(0, longest) : text;
    return cut.replace('\t', ' ').replace('\n', ' ').replace('\r', ' ');
  }

  private void print(Object... fields) {
    StringBuilder line = new StringBuilder();
    for (Object field : fields) {
      line.append(line.length() == 0 ? "" : "\t").append(field);
    }
    printLine(line.append('\n').toString());
  }

  private void printLine(String line) {
    byte[] encoded = line.getBytes(StandardCharsets.UTF_8);
    bytes += encoded.length;
    out.write(encoded, 0, encoded.length);
  }
}
