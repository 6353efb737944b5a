// A server of the official Java SDK, on an embedded Tomcat; see ../README.md.

import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.server.McpServer;
import io.modelcontextprotocol.server.McpServerFeatures.SyncPromptSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncResourceSpecification;
import io.modelcontextprotocol.server.McpSyncServerExchange;
import io.modelcontextprotocol.server.transport.HttpServletStreamableServerTransportProvider;
import io.modelcontextprotocol.server.transport.StdioServerTransportProvider;
import io.modelcontextprotocol.spec.McpSchema.CallToolRequest;
import io.modelcontextprotocol.spec.McpSchema.CallToolResult;
import io.modelcontextprotocol.spec.McpSchema.GetPromptResult;
import io.modelcontextprotocol.spec.McpSchema.ProgressNotification;
import io.modelcontextprotocol.spec.McpSchema.Prompt;
import io.modelcontextprotocol.spec.McpSchema.PromptArgument;
import io.modelcontextprotocol.spec.McpSchema.PromptMessage;
import io.modelcontextprotocol.spec.McpSchema.ReadResourceResult;
import io.modelcontextprotocol.spec.McpSchema.Resource;
import io.modelcontextprotocol.spec.McpSchema.Role;
import io.modelcontextprotocol.spec.McpSchema.ServerCapabilities;
import io.modelcontextprotocol.spec.McpSchema.TextContent;
import io.modelcontextprotocol.spec.McpSchema.TextResourceContents;
import io.modelcontextprotocol.spec.McpSchema.Tool;
import java.util.List;
import java.util.Map;
import org.apache.catalina.Context;
import org.apache.catalina.Wrapper;
import org.apache.catalina.startup.Tomcat;

final class Server {
  private static final Map<String, Object> TEXT =
      Map.of("type", "object", "properties", Map.of("text", Map.of("type", "string")), "required", List.of("text"));

  private static CallToolResult text(String words) {
    return CallToolResult.builder().addTextContent(words).build();
  }

  private static CallToolResult steps(McpSyncServerExchange exchange, CallToolRequest request) {
    Object token = request.progressToken();
    for (int step = 0; token != null && step < 3; step++) {
      exchange.progressNotification(ProgressNotification.builder(token, step).total(2.0).build());
    }
    return text("done");
  }

  private static GetPromptResult greeting(Object name) {
    TextContent greeting = TextContent.builder("Hello, " + name).build();
    return GetPromptResult.builder(List.of(PromptMessage.builder(Role.USER, greeting).build())).build();
  }

  private static void describe(McpServer.SyncSpecification<?> made) {
    PromptArgument name = PromptArgument.builder("name").required(true).build();
    made.serverInfo("java", "1")
        .capabilities(ServerCapabilities.builder().tools(false).resources(false, false).prompts(false).build())
        .toolCall(
            Tool.builder("echo", TEXT).description("Says what you say").build(),
            (exchange, request) -> text((String) request.arguments().get("text")))
        .toolCall(
            Tool.builder("steps", Map.of("type", "object")).description("Tells its progress").build(), Server::steps)
        .resources(
            new SyncResourceSpecification(
                Resource.builder("test://static-text", "text").build(),
                (exchange, request) ->
                    ReadResourceResult.builder(List.of(TextResourceContents.builder(request.uri(), "a text").build()))
                        .build()))
        .prompts(
            new SyncPromptSpecification(
                Prompt.builder("greeting").arguments(List.of(name)).build(),
                (exchange, request) -> greeting(request.arguments().get("name"))))
        .build();
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments[0].equals("stdio")) {
      describe(McpServer.sync(new StdioServerTransportProvider(McpJsonDefaults.getMapper())));
      return;
    }
    var servlet = HttpServletStreamableServerTransportProvider.builder().mcpEndpoint("/mcp").build();
    describe(McpServer.sync(servlet));
    Tomcat tomcat = new Tomcat();
    tomcat.setHostname("127.0.0.1");
    tomcat.setPort(0);
    tomcat.getConnector().setProperty("address", "127.0.0.1");
    Context context = tomcat.addContext("", null);
    Wrapper wrapper = Tomcat.addServlet(context, "mcp", servlet);
    wrapper.setAsyncSupported(true);
    wrapper.addMapping("/mcp");
    tomcat.start();
    System.out.println("listening on http://127.0.0.1:" + tomcat.getConnector().getLocalPort() + "/mcp");
    tomcat.getServer().await();
  }
}
