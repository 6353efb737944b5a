// A server of the official SDK over stdio, with one tool. The first word selects how the tool works.

import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.server.McpServer;
import io.modelcontextprotocol.server.transport.StdioServerTransportProvider;
import io.modelcontextprotocol.spec.McpSchema.CallToolResult;
import io.modelcontextprotocol.spec.McpSchema.ServerCapabilities;
import io.modelcontextprotocol.spec.McpSchema.Tool;
import java.io.File;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.KeyStore;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

final class Weather {
  private static final List<String> KINDS = List.of("geo", "now", "hourly", "daily", "alerts");
  private static final int ITEMS = 30;

  private final String way;
  private final String base;
  private final String database;
  private final HttpClient shared = HttpClient.newHttpClient();
  private Connection connection;

  private Weather(String way, String base, String database) {
    this.way = way;
    this.base = base;
    this.database = database;
  }

  public static void main(String[] words) {
    Weather weather = new Weather(words[0], words[1], words[2]);
    Tool tool =
        Tool.builder()
            .name("forecast")
            .inputSchema(McpJsonDefaults.getMapper(), "{\"type\": \"object\"}")
            .build();
    McpServer.sync(new StdioServerTransportProvider(McpJsonDefaults.getMapper()))
        .serverInfo("weather", "1")
        .capabilities(ServerCapabilities.builder().tools(false).build())
        .toolCall(tool, (exchange, request) -> weather.call())
        .build();
  }

  private CallToolResult call() {
    try {
      return CallToolResult.builder().addTextContent(forecast()).build();
    } catch (Exception failure) {
      return CallToolResult.builder().addTextContent(failure.toString()).isError(true).build();
    }
  }

  private String forecast() throws Exception {
    switch (way) {
      case "own-clients":
        for (String kind : KINDS) {
          get(secureClient(), kind);
        }
        break;
      case "one-client":
        for (String kind : KINDS) {
          get(shared, kind);
        }
        break;
      case "together":
        List<CompletableFuture<?>> replies = new java.util.ArrayList<>();
        for (String kind : KINDS) {
          replies.add(shared.sendAsync(request(kind), BodyHandlers.ofString()));
        }
        CompletableFuture.allOf(replies.toArray(CompletableFuture[]::new)).get();
        break;
      case "each-item":
        for (int item = 0; item < 6; item++) {
          get(shared, "items/" + item);
        }
        break;
      case "slow":
        get(shared, "slow");
        break;
      case "sleeps":
        Thread.sleep(100);
        break;
      case "computes":
        return String.valueOf(compute());
      case "statements":
        for (int item = 0; item < ITEMS; item++) {
          query("SELECT v FROM items WHERE k = " + item);
        }
        break;
      case "one-statement":
        query("SELECT v FROM items WHERE k < " + ITEMS);
        break;
      case "own-connections":
        try (Connection own = DriverManager.getConnection(database)) {
          query(own, "SELECT v FROM items LIMIT 1");
        }
        break;
      case "one-connection":
        query("SELECT v FROM items LIMIT 1");
        break;
      default:
        throw new IllegalArgumentException(way);
    }
    return way;
  }

  private void get(HttpClient client, String path) throws Exception {
    client.send(request(path), BodyHandlers.ofString());
  }

  private HttpRequest request(String path) {
    return HttpRequest.newBuilder(URI.create(base + "/" + path)).build();
  }

  /** A client with certificates of its own. */
  private static HttpClient secureClient() throws Exception {
    TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    File certificates = new File(System.getProperty("java.home"), "lib/security/cacerts");
    trust.init(KeyStore.getInstance(certificates, "changeit".toCharArray()));
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, trust.getTrustManagers(), null);
    return HttpClient.newBuilder().sslContext(context).build();
  }

  private void query(String statement) throws Exception {
    if (connection == null) {
      connection = DriverManager.getConnection(database);
    }
    query(connection, statement);
  }

  private static void query(Connection at, String statement) throws Exception {
    try (PreparedStatement prepared = at.prepareStatement(statement);
        ResultSet rows = prepared.executeQuery()) {
      while (rows.next()) {
        rows.getString(1);
      }
    }
  }

  private static long compute() {
    long sum = 0;
    for (long n = 1; n < 60_000_000; n++) {
      sum += n % 7 * n % 11;
    }
    return sum;
  }
}
