//! Waits for the redirect that a user's browser brings to a port of this machine (RFC 8252 §7.3).

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use url::Url;

use super::{OAuthError, Secret};

/// Bytes of a request that are read: the first line holds all we want.
const REQUEST_LIMIT: usize = 16 * 1024;
/// How long one visitor may take to send its request.
const VISITOR_LIMIT: Duration = Duration::from_secs(5);
/// Visitors at once: the next one waits until one of them has been answered.
const MOST_VISITORS: usize = 64;
const CALLBACK_PATH: &str = "/callback";

/// A port on the loopback interface where the redirect will arrive.
pub(crate) struct Callback {
    listener: TcpListener,
    /// URL to register and to send as `redirect_uri`.
    pub(crate) redirect_uri: Url,
}

impl Callback {
    pub(crate) async fn listen_local(port: u16) -> Result<Self, OAuthError> {
        let failed = |error: std::io::Error| OAuthError::Callback(error.to_string());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        // The address that is listened on: `localhost` may be `[::1]` too, where another user may listen (RFC 8252 §8.3).
        let redirect_uri = format!("http://{}:{port}{CALLBACK_PATH}", Ipv4Addr::LOCALHOST);
        let redirect_uri = Url::parse(&redirect_uri).map_err(|error| OAuthError::Callback(error.to_string()))?;
        Ok(Self { listener, redirect_uri })
    }

    /// Waits for the redirect that has our `state`. Other requests are answered and ignored: web pages probe ports, and
    /// browsers ask for an icon.
    pub(crate) async fn wait_redirect(&self, state: &Secret, limit: Duration) -> Result<Url, OAuthError> {
        let visited = async {
            // One that says nothing holds nobody else up.
            let mut visitors = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = self.listener.accept(), if visitors.len() < MOST_VISITORS => {
                        let (stream, _) = accepted.map_err(|error| OAuthError::Callback(error.to_string()))?;
                        let visit = answer_visitor(stream, self.redirect_uri.clone(), state.clone());
                        visitors.spawn(tokio::time::timeout(VISITOR_LIMIT, visit));
                    }
                    Some(visit) = visitors.join_next() => {
                        if let Ok(Ok(Some(url))) = visit {
                            return Ok(url);
                        }
                    }
                }
            }
        };
        tokio::time::timeout(limit, visited).await.unwrap_or(Err(OAuthError::TimeLimit(limit.as_secs())))
    }
}

/// Answers one visitor. Returns the redirect's URL where it brought that.
async fn answer_visitor(mut stream: TcpStream, redirect_uri: Url, state: Secret) -> Option<Url> {
    let line = first_line(&mut stream).await?;
    let visited = Visited::parse_visit(&line, &redirect_uri, &state);
    let (status, text) = match visited {
        Visited::Redirect(_) => ("200 OK", "Done. You can close this page and go back to mcpace.\n"),
        Visited::Foreign => ("400 Bad Request", "This is not the redirect that mcpace waits for.\n"),
        Visited::Elsewhere => ("404 Not Found", "Nothing here.\n"),
    };
    let reply = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    // A browser that left already has done its part all the same.
    drop(stream.write_all(reply.as_bytes()).await);
    drop(stream.shutdown().await);
    match visited {
        Visited::Redirect(url) => Some(url),
        Visited::Foreign | Visited::Elsewhere => None,
    }
}

async fn first_line(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    let mut buffer = [0; 2048];
    loop {
        let read = stream.read(&mut buffer).await.ok()?;
        text.extend_from_slice(&buffer[..read]);
        // The whole head is taken off the socket, so that closing it doesn't reset our answer away.
        if text.windows(4).any(|end| end == b"\r\n\r\n") {
            let line = text.split(|byte| *byte == b'\r').next()?;
            return String::from_utf8(line.to_vec()).ok();
        }
        if read == 0 || text.len() > REQUEST_LIMIT {
            return None;
        }
    }
}

/// The request of a visitor of the callback server.
#[derive(Debug, PartialEq, Eq)]
enum Visited {
    /// The redirect with our state.
    Redirect(Url),
    /// Our path with another state, or none.
    Foreign,
    /// Something else.
    Elsewhere,
}

impl Visited {
    fn parse_visit(line: &str, redirect_uri: &Url, state: &Secret) -> Self {
        let target = line.strip_prefix("GET ").and_then(|rest| rest.split(' ').next());
        let url = target.and_then(|target| redirect_uri.join(target).ok());
        match url.filter(|url| url.path() == redirect_uri.path() && url.origin() == redirect_uri.origin()) {
            None => Self::Elsewhere,
            Some(url) if url.query_pairs().any(|(name, value)| name == "state" && value == state.reveal()) => {
                Self::Redirect(url)
            }
            Some(_) => Self::Foreign,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_get_for_our_path_with_our_state_is_the_redirect() {
        let ours = Url::parse("http://127.0.0.1:7/callback").unwrap();
        let visited = |line: &str| Visited::parse_visit(line, &ours, &Secret::new("s"));
        assert!(matches!(visited("GET /callback?code=c&state=s HTTP/1.1"), Visited::Redirect(_)));
        for line in ["GET /callback HTTP/1.1", "GET /callback?code=c&state=x HTTP/1.1", "GET /callback?state HTTP/1.1"]
        {
            assert_eq!(visited(line), Visited::Foreign, "{line}");
        }
        for line in [
            "GET /favicon.ico HTTP/1.1",
            "POST /callback?state=s HTTP/1.1",
            "GET http://evil/callback?state=s HTTP/1.1",
            "GET //evil/callback?state=s HTTP/1.1",
            "",
        ] {
            assert_eq!(visited(line), Visited::Elsewhere, "{line}");
        }
    }

    /// Sends a request line and returns the reply.
    async fn visit(port: u16, target: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        stream.write_all(format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn strangers_neither_end_the_wait_nor_hold_it_up() {
        let callback = Callback::listen_local(0).await.unwrap();
        let port = callback.redirect_uri.port().unwrap();
        assert_eq!(callback.redirect_uri.host_str(), Some("127.0.0.1"));
        let visitors = async {
            let silent = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
            assert!(visit(port, "/callback?code=c&state=guess").await.contains("400 Bad Request"));
            assert!(visit(port, "/favicon.ico").await.contains("404 Not Found"));
            assert!(visit(port, "/callback?code=c&state=ours").await.contains("200 OK"));
            // The wait has ended, and the silent visitor was never in the way.
            drop(silent);
        };
        let state = Secret::new("ours");
        let (redirect, ()) = tokio::join!(callback.wait_redirect(&state, Duration::from_secs(60)), visitors);
        assert_eq!(redirect.unwrap().query(), Some("code=c&state=ours"));
    }
}
