//! OAuth through the recorder: the client only ever sees the recorder's address, the servers only their own.

use mcpace_net::recorder::{Recorder, RecorderOptions};
use mcpace_target::{Options, Profile, Target};
use serde_json::{Value, json};

use crate::recorder_support::*;

struct Caller<'a> {
    recorder: &'a Recorder,
    peer: Peer,
}

impl<'a> Caller<'a> {
    async fn new(recorder: &'a Recorder) -> Self {
        Self { recorder, peer: Peer::connect(recorder).await }
    }

    async fn get(&mut self, target: &str) -> (String, String) {
        self.peer.send(&get(self.recorder, target)).await;
        self.peer.message().await
    }

    async fn document(&mut self, url: &str) -> Value {
        let (head, body) = self.get(&self.own(url)).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{url}: {head}");
        serde_json::from_str(&body).unwrap()
    }

    async fn post(&mut self, url: &str, kind: &str, body: &str) -> (String, String) {
        let (host, target, size) = (authority(self.recorder), self.own(url), body.len());
        let head = format!("POST {target} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\nContent-Length: {size}");
        self.peer.send(&format!("{head}\r\n\r\n{body}")).await;
        self.peer.message().await
    }

    /// A URL's target, which has to be at the recorder.
    fn own(&self, url: &str) -> String {
        let origin = format!("http://{}", authority(self.recorder));
        let target = url.strip_prefix(&origin).unwrap_or_else(|| panic!("{url} leads around the recorder"));
        if target.is_empty() { "/".to_owned() } else { target.to_owned() }
    }
}

fn header(head: &str, name: &str) -> String {
    let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")));
    line.unwrap_or_else(|| panic!("no {name} in {head}")).split_once(": ").unwrap().1.to_owned()
}

fn quoted(header: &str, name: &str) -> String {
    header.split(&format!("{name}=\"")).nth(1).unwrap().split('"').next().unwrap().to_owned()
}

fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[tokio::test]
async fn the_whole_flow_of_a_real_authorization_server_works() {
    let target = Target::start(Options::new(Profile::Notion)).await.unwrap();
    let recorder = record(&target.url().parse().unwrap());
    let mut caller = Caller::new(&recorder).await;
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let (head, _) = caller.post(recorder.url(), "application/json", initialize).await;
    assert!(head.starts_with("HTTP/1.1 401"), "{head}");
    let resource = caller.document(&quoted(&header(&head, "www-authenticate"), "resource_metadata")).await;
    assert_eq!(resource["resource"], recorder.url());
    let issuer = resource["authorization_servers"][0].as_str().unwrap().to_owned();
    let server = caller.document(&format!("{issuer}/.well-known/oauth-authorization-server")).await;
    assert_eq!(server["issuer"], issuer);

    let redirect = "http://127.0.0.1:9/callback";
    let registration = json!({"redirect_uris": [redirect], "token_endpoint_auth_method": "none"}).to_string();
    let (head, body) =
        caller.post(server["registration_endpoint"].as_str().unwrap(), "application/json", &registration).await;
    assert!(head.starts_with("HTTP/1.1 201"), "{head}{body}");
    let client = serde_json::from_str::<Value>(&body).unwrap()["client_id"].as_str().unwrap().to_owned();

    // The verifier and challenge of RFC 7636, appendix B.
    let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    let endpoint = caller.own(server["authorization_endpoint"].as_str().unwrap());
    let (own, back) = (encoded(recorder.url()), encoded(redirect));
    let query = format!(
        "response_type=code&client_id={client}&redirect_uri={back}&code_challenge={challenge}&code_challenge_method=S256&state=s&resource={own}"
    );
    let (head, body) = caller.get(&format!("{endpoint}?{query}")).await;
    let location: url::Url = header(&head, "location").parse().unwrap_or_else(|_| panic!("{head}{body}"));
    assert!(location.as_str().starts_with(redirect));
    let parameter = |name: &str| location.query_pairs().find(|(n, _)| n == name).unwrap().1.into_owned();
    assert_eq!(parameter("iss"), issuer, "RFC 9207 compares it as a string");

    let code = encoded(&parameter("code"));
    let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    let form = format!(
        "grant_type=authorization_code&code={code}&redirect_uri={back}&client_id={client}&code_verifier={verifier}&resource={own}"
    );
    let (head, body) =
        caller.post(server["token_endpoint"].as_str().unwrap(), "application/x-www-form-urlencoded", &form).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}{body}");
    let tokens: Value = serde_json::from_str(&body).unwrap();
    assert!(tokens["access_token"].is_string());
    recorder.stop().unwrap();
    target.stop().await;
}

#[tokio::test]
async fn an_authorization_server_elsewhere_is_reached_under_a_prefix() {
    // It names itself by a path, as tenants do; RFC 8414 puts the well-known part before that path.
    let elsewhere = Site::start(|head, _| {
        let host = header(head, "host");
        let issuer = format!("http://{host}/tenant");
        let target = head.split(' ').nth(1).unwrap().split('?').next().unwrap();
        match target {
            "/.well-known/oauth-authorization-server/tenant" => json_reply(
                &json!({"issuer": issuer, "authorization_endpoint": format!("{issuer}/authorize"),
                        "token_endpoint": format!("{issuer}/token"), "registration_endpoint": format!("{issuer}/register")})
                .to_string(),
            ),
            "/tenant/.well-known/openid-configuration" => json_reply(&json!({"issuer": issuer}).to_string()),
            "/tenant/register" => json_reply(&json!({"registration_client_uri": format!("{issuer}/register/1")}).to_string()),
            "/tenant/authorize" => "HTTP/1.1 302 Found\r\nLocation: /tenant/login\r\nContent-Length: 0\r\n\r\n".to_owned(),
            _ => json_reply("{}"),
        }
    })
    .await;
    let issuer = format!("{}/tenant", elsewhere.origin());
    let names = issuer.clone();
    let upstream = Site::start(move |head, _| {
        let origin = format!("http://{}", header(head, "host"));
        if head.contains("/.well-known/oauth-protected-resource") {
            json_reply(&json!({"resource": format!("{origin}/mcp"), "authorization_servers": [names]}).to_string())
        } else {
            let challenge =
                format!("Bearer realm=\"x\", resource_metadata=\"{origin}/.well-known/oauth-protected-resource/mcp\"");
            format!("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: {challenge}\r\nContent-Length: 0\r\n\r\n")
        }
    })
    .await;
    let recorder = record(&upstream.url);
    let mut caller = Caller::new(&recorder).await;
    let front = format!("http://{}", authority(&recorder));
    let prefix = format!("/.mcpace/http/{}", issuer.strip_prefix("http://").unwrap());
    let (head, _) = caller.get(&format!("{prefix}/x")).await;
    assert!(head.starts_with("HTTP/1.1 404"), "not before the upstream names it");

    let (head, _) = caller.get("/mcp").await;
    let challenge = header(&head, "www-authenticate");
    assert!(challenge.starts_with("Bearer realm=\"x\", "), "{challenge}");
    let resource = caller.document(&quoted(&challenge, "resource_metadata")).await;
    assert_eq!(resource, json!({"resource": recorder.url(), "authorization_servers": [format!("{front}{prefix}")]}));
    let server = caller.document(&format!("{front}/.well-known/oauth-authorization-server{prefix}")).await;
    assert_eq!(server["issuer"], format!("{front}{prefix}"));
    assert_eq!(server["token_endpoint"], format!("{front}{prefix}/token"));
    let oidc = caller.document(&format!("{front}{prefix}/.well-known/openid-configuration")).await;
    assert_eq!(oidc["issuer"], format!("{front}{prefix}"));

    let own = encoded(recorder.url());
    let form = "application/x-www-form-urlencoded";
    caller.post(server["token_endpoint"].as_str().unwrap(), form, &format!("a=%2b&resource={own}&b=1")).await;
    let (head, body) = elsewhere.last();
    assert!(head.starts_with("POST /tenant/token HTTP/1.1\r\n"), "{head}");
    assert_eq!(body, format!("a=%2b&resource={}&b=1", encoded(upstream.url.as_str())));
    let (_, body) = caller.post(server["registration_endpoint"].as_str().unwrap(), "application/json", "{}").await;
    assert_eq!(body, json!({"registration_client_uri": format!("{front}{prefix}/register/1")}).to_string());
    let authorize = caller.own(server["authorization_endpoint"].as_str().unwrap());
    let (head, _) = caller.get(&format!("{authorize}?resource={own}")).await;
    assert_eq!(header(&head, "location"), format!("{front}{prefix}/login"));
    assert!(
        elsewhere.last().0.starts_with(&format!("GET /tenant/authorize?resource={} ", encoded(upstream.url.as_str())))
    );

    // A person's browser goes to the real page.
    caller
        .peer
        .send(&format!(
            "GET {authorize}?resource={own} HTTP/1.1\r\nHost: {}\r\nSec-Fetch-Mode: navigate\r\n\r\n",
            authority(&recorder)
        ))
        .await;
    let (head, _) = caller.peer.message().await;
    assert_eq!(header(&head, "location"), format!("{issuer}/authorize?resource={}", encoded(upstream.url.as_str())));
}

#[tokio::test]
async fn mcps_own_bodies_are_never_touched() {
    let upstream = Site::start(|head, _| {
        json_reply(&json!({"resource": format!("http://{}/mcp", header(head, "host")), "issuer": "x"}).to_string())
    })
    .await;
    let recorder = record(&upstream.url);
    let mut caller = Caller::new(&recorder).await;
    let text = format!(r#"{{"resource":"{}"}}"#, recorder.url());
    let (_, reply) = caller.post(recorder.url(), "application/json", &text).await;
    assert_eq!(upstream.last().1, text);
    assert!(reply.contains(upstream.url.as_str()), "{reply}");
}

#[tokio::test]
async fn added_headers_reach_the_upstream_alone_and_no_recording() {
    let elsewhere = Site::start(|_, _| json_reply("{}")).await;
    let issuer = elsewhere.origin();
    let upstream = Site::start(move |head, _| {
        let origin = format!("http://{}", header(head, "host"));
        json_reply(&json!({"resource": format!("{origin}/mcp"), "authorization_servers": [issuer]}).to_string())
    })
    .await;
    let mut options = RecorderOptions::new(upstream.url.clone());
    options.headers.insert("x-key", "PLANTED".parse().unwrap());
    let recorder = Recorder::start(options, sink()).unwrap();
    let mut caller = Caller::new(&recorder).await;

    let metadata = format!("http://{}/.well-known/oauth-protected-resource/mcp", authority(&recorder));
    let server = caller.document(&metadata).await["authorization_servers"][0].as_str().unwrap().to_owned();
    assert_eq!(header(&upstream.last().0, "x-key"), "PLANTED");
    let target = caller.own(&format!("{server}/.well-known/oauth-authorization-server"));
    caller.get(&target).await;
    assert!(!elsewhere.last().0.contains("x-key"), "{}", elsewhere.last().0);

    let host = authority(&recorder);
    caller.peer.send(&format!("GET /mcp HTTP/1.1\r\nHost: {host}\r\nx-key: the client's\r\n\r\n")).await;
    caller.peer.message().await;
    assert_eq!(upstream.last().0.matches("x-key").count(), 1);
    assert_eq!(header(&upstream.last().0, "x-key"), "PLANTED");
    assert!(!format!("{:?}", events(&recorder)).contains("PLANTED"));
}
