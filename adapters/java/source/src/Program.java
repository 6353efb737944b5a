// The program's side of the process contract: its options, its output, its end. Knows nothing of MCP but the SDK's
// version.

import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.spec.McpSchema;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.logging.Level;
import java.util.logging.Logger;
import reactor.core.scheduler.Schedulers;

/** The options of the command line. */
record Program(String host, int port, String mode, boolean stateful) {
  static final int UNSUPPORTED = 127;

  /** Size of the pool on which the SDK runs tools, unless it is configured to use the servlet's thread. */
  private static final int POOL = Schedulers.DEFAULT_BOUNDED_ELASTIC_SIZE;

  /** A failure: one line for stderr, and the exit code. */
  static final class Failure extends Exception {
    final int code;

    Failure(int code, String why) {
      super(why);
      this.code = code;
    }
  }

  static Program parse(String[] words) throws Failure {
    String host = "127.0.0.1";
    String mode = "json";
    String port = "0";
    String state = "stateless";
    for (int at = 0; at < words.length; at += 2) {
      if (at + 1 == words.length) {
        throw new Failure(1, words[at] + " needs a value");
      }
      String value = words[at + 1];
      switch (words[at]) {
        case "--host" -> host = value;
        case "--port" -> port = value;
        case "--mode" -> mode = value;
        case "--state" -> state = value;
        default -> throw new Failure(1, words[at] + " is no option of this program");
      }
    }
    if (!port.matches("\\d{1,5}") || Integer.parseInt(port) > 65_535) {
      throw new Failure(1, "--port " + port + " is no port");
    }
    if (!Set.of("stateless", "stateful").contains(state)) {
      throw new Failure(1, "--state is stateless or stateful, not " + state);
    }
    Program given = new Program(host, Integer.parseInt(port), mode, state.equals("stateful"));
    given.refuseWhatTheSdkLacks();
    return given;
  }

  private void refuseWhatTheSdkLacks() throws Failure {
    if (!Set.of("json", "sse").contains(mode)) {
      throw new Failure(UNSUPPORTED, "the Java SDK has no mode " + mode);
    }
    if (mode.equals("json") && stateful) {
      throw new Failure(UNSUPPORTED, "the Java SDK answers in JSON only where it keeps no sessions");
    }
    if (mode.equals("sse") && !stateful) {
      throw new Failure(UNSUPPORTED, "the Java SDK answers in streams only within sessions");
    }
  }

  /** Resolves the address, because Tomcat would listen on all addresses if it is unknown. */
  InetAddress address() throws Failure {
    try {
      return InetAddress.getByName(host);
    } catch (UnknownHostException failure) {
      throw noListener(failure);
    }
  }

  Failure noListener(Exception failure) {
    return new Failure(1, "can't listen on %s:%d: %s".formatted(host, port, deepest(failure)));
  }

  /** Version of the SDK, from the manifest of its jar. */
  static String version() {
    String said = McpSchema.class.getPackage().getImplementationVersion();
    return said == null ? "unknown" : said;
  }

  /** Prints the only line on stdout. */
  static void sayReady(Program given, int port) throws IOException {
    String host = given.host.contains(":") ? "[" + given.host + "]" : given.host;
    Map<String, Object> ready =
        Map.of(
            "ready", true,
            "sdk", "java",
            "version", version(),
            "pid", ProcessHandle.current().pid(),
            "url", "http://%s:%d/mcp".formatted(host, port),
            "workers", 1,
            "notes", List.of("The SDK runs tools on a pool of %d threads".formatted(POOL)));
    System.out.println(McpJsonDefaults.getMapper().writeValueAsString(ready));
    System.out.flush();
  }

  /** Makes SIGTERM end the program with exit code 0; the JVM's default is 143. */
  static void endAtSigterm() {
    Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(0)));
  }

  /** Waits for the end of stdin, which the parent process holds, and ends the program. Never returns. */
  static void endWithStdin() throws IOException {
    System.in.transferTo(OutputStream.nullOutputStream());
    Runtime.getRuntime().halt(0);
  }

  /** Message of the innermost cause of a failure. */
  static String deepest(Throwable failure) {
    while (failure.getCause() != null) {
      failure = failure.getCause();
    }
    return failure.getMessage() == null ? failure.getClass().getSimpleName() : failure.getMessage();
  }

  static {
    // Tomcat would log each step of its start.
    Logger.getLogger("").setLevel(Level.OFF);
  }
}
