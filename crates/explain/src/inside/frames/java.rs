//! Files and functions of Java programs.
//!
//! A recording of a virtual machine names classes. The lab makes a file of each: `jrt:/java.base/java/lang/Thread.java` is of
//! the JDK, `jackson.jar!/com/fasterxml/…` of a library, and the author's classes have neither.

use super::{Origin, first_segment};
use crate::view::StackCall;

const JDK: &str = "jrt:/";
const LIBRARY: &str = ".jar!/";

/// Packages that call tools, and check arguments and results. A server that is itself installed has its own code above theirs.
pub(super) const FRAMEWORKS: [&str; 13] = [
    "mcp",
    "mcp-core",
    "mcp-json-jackson2",
    "mcp-json-jackson3",
    "reactor",
    "reactor-core",
    "spring",
    "tomcat",
    "tomcat-embed-core",
    "jackson",
    "jackson-core",
    "jackson-databind",
    "json-schema-validator",
];

/// Packages of the instrumentation.
pub(super) const INSTRUMENTATION: [&str; 1] = ["opentelemetry"];

/// Whether the file is one of a Java program.
pub(super) fn has_file(file: &str) -> bool {
    file.ends_with(".java") || file.starts_with(JDK)
}

pub(super) fn origin_of(file: &str) -> Origin<'_> {
    if let Some(module) = file.strip_prefix(JDK) {
        return Origin::Standard(first_segment(module));
    }
    match file.find(LIBRARY) {
        Some(end) => Origin::Library(&file[..end]),
        None => Origin::Own,
    }
}

/// Whether the call is that of a thread that runs an event loop of Netty, on which WebFlux, Vert.x and Quarkus run tools.
pub(super) fn is_event_loop(call: &StackCall<'_>) -> bool {
    let is_loop = call.function.split('.').next().is_some_and(|class| class.ends_with("EventLoop"));
    is_loop && call.function.ends_with(".run") && call.file.contains(".jar!/io/netty/")
}

/// Endings of the names of classes whose objects serve many requests.
const CLASSES: [&str; 14] = [
    "client",
    "session",
    "pool",
    "connection",
    "context",
    "datasource",
    "factory",
    "mapper",
    "manager",
    "driver",
    "cluster",
    "template",
    "transport",
    "channel",
];

/// Functions that make such objects, with their classes.
const FUNCTIONS: [&str; 7] = [
    "DriverManager.getConnection",
    "TrustManagerFactory.init",
    "SSLContext.init",
    "KeyStore.load",
    "KeyStore.getInstance",
    "MongoClients.create",
    "HttpClients.createDefault",
];

/// Name of the class, or of the function, by which a call builds a client: `java.net.http.HttpClient.newHttpClient`.
pub(crate) fn built_client(call: &StackCall<'_>) -> Option<String> {
    let (class, function) = call.function.rsplit_once('.')?;
    let lower = class.to_ascii_lowercase();
    // HttpClientImpl, OkHttpClient.Builder, HttpClientBuilderImpl.
    let named = lower.strip_suffix("impl").unwrap_or(&lower);
    let made = named.strip_suffix("builder").map_or(named, |made| made.trim_end_matches('.'));
    let is_client = CLASSES.iter().any(|end| made.ends_with(end));
    let builds = match function {
        "<init>" => is_client && made.len() == named.len(),
        "build" => is_client && made.len() < named.len(),
        "create" => is_client,
        _ => function.starts_with("newHttpClient") || FUNCTIONS.contains(&call.function),
    };
    builds.then(|| match (package_of(call.file), function) {
        (package, "<init>") => format!("{package}{class}"),
        (package, _) => format!("{package}{}", call.function),
    })
}

/// The class of a library or of the JDK with its package, `java/net/http/HttpClient.java`; `None` for other classes.
pub(in crate::inside) fn class_path(file: &str) -> Option<&str> {
    let (_, path) = match file.strip_prefix(JDK) {
        Some(rest) => rest.split_once('/')?,
        None => file.split_once(LIBRARY)?,
    };
    Some(path)
}

/// `java.net.http.` of a file; empty for classes without a package.
fn package_of(file: &str) -> String {
    class_path(file)
        .unwrap_or(file)
        .rsplit_once('/')
        .map_or_else(String::new, |(package, _)| format!("{}.", package.replace('/', ".")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_the_authors_a_librarys_or_that_of_the_jdk() {
        let cases = [
            ("com/example/Weather.java", Origin::Own),
            ("Weather.java", Origin::Own),
            (
                "jackson-databind.jar!/com/fasterxml/jackson/databind/ObjectMapper.java",
                Origin::Library("jackson-databind"),
            ),
            ("jrt:/java.net.http/java/net/http/HttpClient.java", Origin::Standard("java.net.http")),
            ("jrt:/", Origin::Standard("")),
            (".jar!/x.java", Origin::Library("")),
        ];
        for (file, expected) in cases {
            assert!(has_file(file) && origin_of(file) == expected, "{file}: {:?}", origin_of(file));
        }
        assert!(!has_file("/srv/weather.py") && !has_file("node:fs"));
    }
    #[test]
    fn a_client_is_built_by_a_constructor_a_builder_or_a_factory() {
        let http = "jrt:/java.net.http/java/net/http/HttpClient.java";
        let jdbc = "jrt:/java.sql/java/sql/DriverManager.java";
        let okhttp = "okhttp.jar!/okhttp3/OkHttpClient.java";
        let cases = [
            ("HttpClient.newHttpClient", http, Some("java.net.http.HttpClient.newHttpClient")),
            ("HttpClientImpl.<init>", http, Some("java.net.http.HttpClientImpl")),
            ("HttpClientBuilderImpl.build", http, Some("java.net.http.HttpClientBuilderImpl.build")),
            ("HttpClientBuilderImpl.<init>", http, None),
            ("HttpClient.send", http, None),
            ("DriverManager.getConnection", jdbc, Some("java.sql.DriverManager.getConnection")),
            ("OkHttpClient.Builder.build", okhttp, Some("okhttp3.OkHttpClient.Builder.build")),
            ("RestClient.create", "RestClient.java", Some("RestClient.create")),
            ("Request.Builder.build", okhttp, None),
            ("main", "Weather.java", None),
        ];
        for (function, file, expected) in cases {
            assert_eq!(built_client(&StackCall { function, file, line: 1 }).as_deref(), expected, "{function}");
        }
    }
}
