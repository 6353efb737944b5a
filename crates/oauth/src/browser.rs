//! Waits for the redirect that a user's browser brings to a port of this machine (RFC 8252 §7.3).

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

use super::OAuthError;

/// Bytes of a request that are read: the first line holds all we want.
const REQUEST_LIMIT: usize = 16 * 1024;
/// How long one visitor may take to send its request.
const VISITOR_LIMIT: Duration = Duration::from_secs(5);
const CALLBACK_PATH: &str = "/callback";

/// A port on the loopback interface where the redirect will arrive.
pub(crate) struct Callback {
    listener: TcpListener,
    /// What to register and to send as `redirect_uri`.
    pub(crate) redirect_uri: Url,
}

impl Callback {
    pub(crate) async fn listen(port: u16) -> Result<Self, OAuthError> {
        let failed = |error: std::io::Error| OAuthError::Callback(error.to_string());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let redirect_uri = format!("http://localhost:{port}{CALLBACK_PATH}");
        let redirect_uri = Url::parse(&redirect_uri).map_err(|error| OAuthError::Callback(error.to_string()))?;
        Ok(Self { listener, redirect_uri })
    }

    /// Waits for the redirect. Other visitors, such as the browser asking for an icon, get a 404.
    pub(crate) async fn redirect(&self, limit: Duration) -> Result<Url, OAuthError> {
        let visited = async {
            loop {
                let (stream, _) =
                    self.listener.accept().await.map_err(|error| OAuthError::Callback(error.to_string()))?;
                if let Ok(Some(url)) = tokio::time::timeout(VISITOR_LIMIT, self.visit(stream)).await {
                    return Ok(url);
                }
            }
        };
        tokio::time::timeout(limit, visited).await.unwrap_or(Err(OAuthError::TimeLimit(limit.as_secs())))
    }

    async fn visit(&self, mut stream: TcpStream) -> Option<Url> {
        let line = first_line(&mut stream).await?;
        let url = redirect_of(&line, &self.redirect_uri);
        let (status, text) = match url {
            Some(_) => ("200 OK", "Done. You can close this page and go back to mcpace.\n"),
            None => ("404 Not Found", "Nothing here.\n"),
        };
        let reply = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
            text.len()
        );
        // A browser that left already has done its part all the same.
        drop(stream.write_all(reply.as_bytes()).await);
        drop(stream.shutdown().await);
        url
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

/// The redirect's URL out of a request line, where it is one: a GET for our path with a state.
fn redirect_of(line: &str, redirect_uri: &Url) -> Option<Url> {
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    let url = redirect_uri.join(target).ok()?;
    let ours = url.path() == redirect_uri.path() && url.origin() == redirect_uri.origin();
    (ours && url.query_pairs().any(|(name, _)| name == "state")).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_get_for_our_path_with_a_state_is_the_redirect() {
        let ours = Url::parse("http://localhost:7/callback").unwrap();
        assert!(redirect_of("GET /callback?code=c&state=s HTTP/1.1", &ours).is_some());
        for other in [
            "GET /favicon.ico HTTP/1.1",
            "GET /callback HTTP/1.1",
            "POST /callback?state=s HTTP/1.1",
            "GET http://evil/callback?state=s HTTP/1.1",
            "GET //evil/callback?state=s HTTP/1.1",
            "",
        ] {
            assert!(redirect_of(other, &ours).is_none(), "{other}");
        }
    }
}
