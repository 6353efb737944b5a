//! Somebody who consents: the authorization URL is fetched and the code read out of its redirect, for targets that
//! consent by themselves. They are on this machine and speak plain HTTP; the flow itself is the SDK's own.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use url::Url;

use crate::contract::{Auth, Failure};

/// The registered redirect URL. Nothing listens there, because the Location header of the reply is sufficient.
pub const REDIRECT: &str = "http://localhost:33418/callback";
const LIMIT: Duration = Duration::from_secs(30);
const HEAD_LIMIT: u64 = 64 * 1024;

/// Checks that this program supports the requested kind of consent.
pub fn possible(auth: &Auth) -> Result<(), Failure> {
    match auth.consent.as_str() {
        "" | "follow" => Ok(()),
        other => Err(Failure::unsupported(format!("consent by {other} is not for this program"))),
    }
}

/// The URL to which the authorization server redirects the client, including the code.
pub async fn follow(address: &str) -> Result<Url, Failure> {
    let address = Url::parse(address)?;
    let place = tokio::task::spawn_blocking(move || location(&address)).await??;
    if !place.as_str().starts_with(REDIRECT) {
        return Err(Failure::auth("the authorization server didn't redirect to the client's callback address"));
    }
    if value(&place, "code").is_none() {
        let why = value(&place, "error").unwrap_or_else(|| "no code in the redirect".into());
        return Err(Failure::auth(format!("authorization was refused: {why}")));
    }
    Ok(place)
}

/// A value of the query.
pub fn value(place: &Url, name: &str) -> Option<String> {
    place.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

fn location(address: &Url) -> Result<Url, Failure> {
    let (Some(host), Some(port), "http") = (address.host_str(), address.port_or_known_default(), address.scheme()) else {
        return Err(Failure::unsupported(format!("this program consents over plain HTTP only, not at {address}")));
    };
    let mut stream = TcpStream::connect((host, port))?;
    stream.set_read_timeout(Some(LIMIT))?;
    let target = &address[url::Position::BeforePath..url::Position::AfterQuery];
    write!(stream, "GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n")?;
    let mut head = String::new();
    // Lossy in nothing: a redirect's head is ASCII, and a body that isn't ends the reading.
    let _ = stream.take(HEAD_LIMIT).read_to_string(&mut head);
    let found = head.lines().take_while(|line| !line.is_empty()).find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location").then(|| value.trim())
    });
    let Some(found) = found else {
        let status = head.lines().next().unwrap_or("nothing");
        return Err(Failure::auth(format!("the authorization server answered {status:?} instead of a redirect")));
    };
    Ok(address.join(found)?)
}
