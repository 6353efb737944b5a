// The shop behind three of the tools: a product API over HTTP, and Redis. One pooled client for each.

import com.fasterxml.jackson.annotation.JsonPropertyOrder;
import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.json.McpJsonMapper;
import io.modelcontextprotocol.json.TypeRef;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Response;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.util.JedisURIHelper;

final class Shop {
  /** Timeout, which is longer than the longest reply time in any load. */
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  /** Number of connections, equal to Tomcat's threads, each of which uses one. Jedis' default is 8. */
  private static final int CONNECTIONS = 200;

  private static final McpJsonMapper JSON = McpJsonDefaults.getMapper();

  private final String api;
  private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
  private final JedisPooled redis;

  @JsonPropertyOrder({"product_id", "quantity"})
  record Order(long product_id, long quantity) {}

  @JsonPropertyOrder({"user", "items", "count"})
  record Cart(User user, List<Order> items, int count) {}

  @JsonPropertyOrder({"id", "name", "tier"})
  record User(long id, String name, String tier) {}

  record Wanted(List<Order> items) {}

  @JsonPropertyOrder({"order", "total_cents", "items"})
  record Receipt(long order, long total_cents, int items) {}

  private Shop(String api, URI address) {
    ConnectionPoolConfig pool = new ConnectionPoolConfig();
    pool.setMaxTotal(CONNECTIONS);
    pool.setMaxIdle(CONNECTIONS);
    this.api = api.replaceAll("/+$", "");
    this.redis = new JedisPooled(pool, address, (int) PATIENCE.toMillis());
  }

  /** The shop, which connects at the first call; null where the environment names none. */
  static Shop fromEnvironment() throws Program.Failure {
    String api = System.getenv("SHOP_API");
    String address = System.getenv("SHOP_REDIS");
    if (api == null || address == null) {
      return null;
    }
    URI redis = URI.create(address);
    if (!JedisURIHelper.isValid(redis)) {
      throw new Program.Failure(1, "SHOP_REDIS " + address + " isn't redis://HOST:PORT/DB");
    }
    return new Shop(api, redis);
  }

  List<Tools.Described> tools() {
    return List.of(
        Tools.tool(
            "search_products",
            "Searches the shop's products",
            """
            {"type": "object", "required": ["query"],
             "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "default": 10}}}""",
            given -> search((String) given.get("query"), given.getOrDefault("limit", 10))),
        Tools.tool(
            "get_user_cart",
            "Tells a user and what lies in the cart",
            """
            {"type": "object", "properties": {"user_id": {"type": "integer"}}, "required": ["user_id"]}""",
            given -> cart(Tools.number(given, "user_id"))),
        Tools.tool(
            "checkout",
            "Orders items",
            """
            {"type": "object", "required": ["user_id", "items"],
             "properties": {"user_id": {"type": "integer"}, "items": {"type": "array", "items":
               {"type": "object", "required": ["product_id", "quantity"],
                "properties": {"product_id": {"type": "integer"}, "quantity": {"type": "integer"}}}}}}""",
            given -> checkout(Tools.number(given, "user_id"), orders(given.get("items")))));
  }

  private String search(String query, Object limit) throws Exception {
    String words = URLEncoder.encode(query, StandardCharsets.UTF_8);
    return ask(HttpRequest.newBuilder(URI.create(api + "/products?q=" + words + "&limit=" + limit)));
  }

  private String cart(long id) throws Exception {
    Map<String, String> about;
    List<String> elements;
    try (Pipeline pipeline = redis.pipelined()) {
      Response<Map<String, String>> user = pipeline.hgetAll("user:" + id);
      Response<List<String>> cart = pipeline.lrange("cart:" + id, 0, -1);
      pipeline.sync();
      about = user.get();
      elements = cart.get();
    } catch (JedisException failure) {
      throw new Tools.Refused("Redis: " + Program.deepest(failure));
    }
    if (about.isEmpty()) {
      throw new Tools.Refused("no user " + id);
    }
    List<Order> items = elements.stream().map(Shop::order).toList();
    return JSON.writeValueAsString(new Cart(new User(id, about.get("name"), about.get("tier")), items, items.size()));
  }

  private String checkout(long id, List<Order> items) throws Exception {
    String wanted = JSON.writeValueAsString(new Wanted(items));
    String answer =
        ask(
            HttpRequest.newBuilder(URI.create(api + "/price"))
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(wanted)));
    long total = Tools.number(JSON.readValue(answer, new TypeRef<Map<String, Object>>() {}), "total_cents");
    long number;
    try (Pipeline pipeline = redis.pipelined()) {
      Response<Long> order = pipeline.incr("orders:" + id);
      pipeline.hincrBy("user:" + id, "spent", total);
      pipeline.lpush("history:" + id, Long.toString(total));
      pipeline.ltrim("history:" + id, 0, 9);
      pipeline.sync();
      number = order.get();
    } catch (JedisException failure) {
      throw new Tools.Refused("Redis: " + Program.deepest(failure));
    }
    return JSON.writeValueAsString(new Receipt(number, total, items.size()));
  }

  private String ask(HttpRequest.Builder request) throws Exception {
    try {
      var response = http.send(request.timeout(PATIENCE).build(), BodyHandlers.ofString());
      if (response.statusCode() / 100 != 2) {
        throw new Tools.Refused("the product API answered " + response.statusCode());
      }
      return response.body();
    } catch (IOException failure) {
      throw new Tools.Refused("the product API: " + Program.deepest(failure));
    }
  }

  /** An element of a cart: `PRODUCT:QUANTITY`. */
  private static Order order(String element) {
    int colon = element.indexOf(':');
    return new Order(Long.parseLong(element.substring(0, colon)), Long.parseLong(element.substring(colon + 1)));
  }

  /** Reads arguments that have been validated against the tool's schema. */
  @SuppressWarnings("unchecked")
  private static List<Order> orders(Object items) {
    return ((List<Map<String, Object>>) items)
        .stream().map(item -> new Order(Tools.number(item, "product_id"), Tools.number(item, "quantity"))).toList();
  }
}
