// A server on the official Java SDK and an embedded Tomcat, as its documentation has it; see ../../../README.md for the
// contract. The SDK has a transport without sessions, which answers in JSON, and one with sessions, which streams.

import io.modelcontextprotocol.server.McpServer;
import io.modelcontextprotocol.server.transport.HttpServletStatelessServerTransport;
import io.modelcontextprotocol.server.transport.HttpServletStreamableServerTransportProvider;
import io.modelcontextprotocol.spec.McpSchema.ServerCapabilities;
import jakarta.servlet.http.HttpServlet;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;
import org.apache.catalina.Context;
import org.apache.catalina.Wrapper;
import org.apache.catalina.startup.Tomcat;

final class Server {
  private static final String NAME = "java-sdk";

  public static void main(String[] words) {
    try {
      Program given = Program.parse(words);
      HttpServlet servlet = servlet(given, Tools.all(Shop.fromEnvironment()));
      int port = listen(given, servlet);
      Program.endAtSigterm();
      Program.sayReady(given, port);
      Program.endWithStdin();
    } catch (Program.Failure failure) {
      System.err.println(failure.getMessage());
      Runtime.getRuntime().halt(failure.code);
    } catch (Exception failure) {
      System.err.println(Program.deepest(failure));
      Runtime.getRuntime().halt(1);
    }
  }

  private static HttpServlet servlet(Program given, Iterable<Tools.Described> tools) {
    ServerCapabilities capabilities = ServerCapabilities.builder().tools(false).build();
    if (given.mode().equals("json")) {
      var servlet = HttpServletStatelessServerTransport.builder().messageEndpoint("/mcp").build();
      var made = McpServer.sync(servlet).serverInfo(NAME, Program.version()).capabilities(capabilities);
      tools.forEach(tool -> made.toolCall(tool.tool(), (context, request) -> tool.call(request)));
      made.build();
      return servlet;
    }
    var servlet = HttpServletStreamableServerTransportProvider.builder().mcpEndpoint("/mcp").build();
    var made = McpServer.sync(servlet).serverInfo(NAME, Program.version()).capabilities(capabilities);
    tools.forEach(tool -> made.toolCall(tool.tool(), (exchange, request) -> tool.call(request)));
    made.build();
    return servlet;
  }

  /** Starts Tomcat with its default configuration. Returns the port. */
  private static int listen(Program given, HttpServlet servlet) throws Exception {
    String address = given.address().getHostAddress();
    Tomcat tomcat = new Tomcat();
    // Without this, Tomcat would create folders in the working directory. The program puts nothing into them.
    Path base = Files.createTempDirectory("mcpace-tomcat-");
    tomcat.setBaseDir(base.toString());
    tomcat.setHostname(given.host());
    tomcat.setPort(given.port());
    tomcat.getConnector().setProperty("address", address);
    tomcat.getConnector().setThrowOnFailure(true);
    Context context = tomcat.addContext("", null);
    Wrapper wrapper = Tomcat.addServlet(context, "mcp", servlet);
    wrapper.setAsyncSupported(true);
    wrapper.addMapping("/mcp");
    try {
      tomcat.start();
    } catch (Exception failure) {
      throw given.noListener(failure);
    } finally {
      delete(base);
    }
    return tomcat.getConnector().getLocalPort();
  }

  private static void delete(Path folder) throws IOException {
    try (Stream<Path> found = Files.walk(folder)) {
      found.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
    }
  }
}
