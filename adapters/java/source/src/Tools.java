// The tools that every adapter's server has, for either of the SDK's transports.

import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.spec.McpSchema.CallToolRequest;
import io.modelcontextprotocol.spec.McpSchema.CallToolResult;
import io.modelcontextprotocol.spec.McpSchema.Tool;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

final class Tools {
  private static final long LARGEST_PAYLOAD = 10_000_000;
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

  /** A tool's refusal, with a message for the model. */
  static final class Refused extends Exception {
    Refused(String why) {
      super(why);
    }
  }

  interface Answer {
    String to(Map<String, Object> given) throws Exception;
  }

  record Described(Tool tool, Answer answer) {
    CallToolResult call(CallToolRequest request) {
      try {
        return CallToolResult.builder().addTextContent(answer.to(request.arguments())).build();
      } catch (Refused refused) {
        return CallToolResult.builder().addTextContent(refused.getMessage()).isError(true).build();
      } catch (Exception failure) {
        return CallToolResult.builder().addTextContent(Program.deepest(failure)).isError(true).build();
      }
    }
  }

  /** All tools. The tools of the shop are left out where there is no shop. */
  static List<Described> all(Shop shop) {
    List<Described> tools = new ArrayList<>(common());
    if (shop != null) {
      tools.addAll(shop.tools());
    }
    return tools;
  }

  private static List<Described> common() {
    return List.of(
        tool(
            "echo",
            "Says the text again",
            """
            {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}""",
            given -> (String) given.get("text")),
        tool(
            "greet",
            "Greets",
            """
            {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}""",
            given -> "Hello, " + given.get("name") + "!"),
        tool(
            "double",
            "Doubles a number",
            """
            {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}""",
            given -> new BigInteger(given.get("n").toString()).shiftLeft(1).toString()),
        tool(
            "wait",
            "Waits, and lets others work meanwhile",
            """
            {"type": "object", "properties": {"ms": {"type": "integer", "minimum": 0}}, "required": ["ms"]}""",
            given -> {
              Thread.sleep(number(given, "ms"));
              return "waited";
            }),
        tool(
            "work",
            "Burns processor time",
            """
            {"type": "object", "properties": {"us": {"type": "integer", "minimum": 0}}, "required": ["us"]}""",
            given -> work(number(given, "us"))),
        tool(
            "payload",
            "Answers with so many bytes",
            """
            {"type": "object", "properties": {"bytes": {"type": "integer", "minimum": 0}}, "required": ["bytes"]}""",
            given -> payload(number(given, "bytes"))));
  }

  /** Processor time of this thread, which excludes the work of other threads. */
  private static String work(long us) {
    long end = THREADS.getCurrentThreadCpuTime() + us * 1_000;
    while (THREADS.getCurrentThreadCpuTime() < end) {
      Thread.onSpinWait();
    }
    return "worked";
  }

  private static String payload(long bytes) throws Refused {
    if (bytes > LARGEST_PAYLOAD) {
      throw new Refused("at most " + LARGEST_PAYLOAD + " bytes");
    }
    return "x".repeat((int) bytes);
  }

  static Described tool(String name, String description, String schema, Answer answer) {
    return new Described(
        Tool.builder(name, McpJsonDefaults.getMapper(), schema).description(description).build(), answer);
  }

  static long number(Map<String, Object> given, String name) {
    return ((Number) given.get(name)).longValue();
  }
}
