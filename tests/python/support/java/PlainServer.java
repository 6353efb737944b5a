// An MCP server over HTTP that needs the JDK alone, whose one tool computes. It prints its port.

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

final class PlainServer {
  private static final Pattern ID = Pattern.compile("\"id\"\\s*:\\s*(\"[^\"]*\"|\\d+)");
  private static final Pattern VERSION = Pattern.compile("\"protocolVersion\"\\s*:\\s*(\"[^\"]*\")");

  public static void main(String[] words) throws IOException {
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    server.createContext("/mcp", PlainServer::serve);
    server.start();
    System.out.println(server.getAddress().getPort());
  }

  private static void serve(HttpExchange exchange) throws IOException {
    String text = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
    Matcher id = ID.matcher(text);
    if (!id.find()) {
      exchange.sendResponseHeaders(text.isEmpty() ? 405 : 202, -1);
      exchange.close();
      return;
    }
    byte[] reply = ("{\"jsonrpc\":\"2.0\",\"id\":" + id.group(1) + ",\"result\":" + answer(text) + "}").getBytes();
    exchange.getResponseHeaders().set("content-type", "application/json");
    exchange.sendResponseHeaders(200, reply.length);
    try (OutputStream body = exchange.getResponseBody()) {
      body.write(reply);
    }
  }

  private static String answer(String text) {
    if (text.contains("\"initialize\"")) {
      Matcher version = VERSION.matcher(text);
      String named = version.find() ? version.group(1) : "\"2025-06-18\"";
      return "{\"protocolVersion\":" + named + ",\"capabilities\":{\"tools\":{}},"
          + "\"serverInfo\":{\"name\":\"plain\",\"version\":\"1\"}}";
    }
    if (text.contains("\"tools/list\"")) {
      return "{\"tools\":[{\"name\":\"burn\",\"inputSchema\":{\"type\":\"object\"},"
          + "\"annotations\":{\"readOnlyHint\":true}}]}";
    }
    return "{\"content\":[{\"type\":\"text\",\"text\":\"" + burn(50) + "\"}]}";
  }

  static double burn(int ms) {
    long end = System.currentTimeMillis() + ms;
    double sum = 0;
    while (System.currentTimeMillis() < end) {
      for (int n = 0; n < 1_000; n++) {
        sum += Math.sqrt(sum + n);
      }
    }
    return sum;
  }
}
