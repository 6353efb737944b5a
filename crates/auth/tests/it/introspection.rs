//! Tokens that their issuer is asked about: how it is asked, how often, and what is kept.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpace_auth::{
    Access, ClientAuth, Failure, IntrospectionOptions, IntrospectionVerifier, Outage, Reach, Secret, TokenRefusal,
};
use mcpace_serve::http::{TokenError, TokenVerifier as _};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::issuer::{BEGIN, Issuer, Manual, json as reply, limited, status};

/// A verifier, its time, and what it said of tokens last.
struct Tried {
    verifier: Arc<IntrospectionVerifier>,
    clock: Arc<Manual>,
    heard: Arc<Mutex<Vec<Failure>>>,
}

impl Tried {
    fn new(issuer: &Issuer, change: impl FnOnce(&mut IntrospectionOptions)) -> Self {
        let (clock, heard) = (Manual::new(), Arc::new(Mutex::new(Vec::new())));
        let url = format!("{}/introspect", issuer.url);
        let mut options = IntrospectionOptions::new(url, "server", Secret::new("hunter2"));
        options.clock = clock.clone();
        let told = Arc::clone(&heard);
        options.report = Some(Arc::new(move |failure: &Failure| told.lock().unwrap().push(failure.clone())));
        change(&mut options);
        Self { verifier: Arc::new(IntrospectionVerifier::new(options).unwrap()), clock, heard }
    }

    async fn check(&self, token: &str) -> Result<String, Failure> {
        match limited("a verdict", self.verifier.verify(token)).await {
            Ok(principal) => Ok(principal.subject.to_string()),
            Err(error) => {
                let failure = self.heard.lock().unwrap().pop().unwrap();
                assert_eq!(error, failure.clone().into());
                Err(failure)
            }
        }
    }
}

/// Answers so to every question.
async fn saying(answer: Value) -> Issuer {
    let text = answer.to_string();
    Issuer::start(move |_| {
        let text = text.clone();
        async { reply(text) }
    })
    .await
}

fn active(more: &Value) -> Value {
    let mut answer = json!({"active": true, "sub": "ada", "client_id": "app", "scope": "read"});
    for (name, value) in more.as_object().unwrap() {
        answer[name] = value.clone();
    }
    answer
}

#[tokio::test]
async fn the_issuer_is_asked_as_the_rfc_has_it() {
    let issuer = Issuer::start(|asked| async move {
        let said = json!([
            asked.path,
            asked.authorization,
            asked.field("token"),
            asked.field("client_id"),
            asked.field("client_secret")
        ]);
        reply(active(&json!({"said": said})).to_string())
    })
    .await;
    for (auth, said) in [
        (ClientAuth::Basic, json!(["/introspect", "Basic c2VydmVyOmh1bnRlcjI=", "t+/=", null, null])),
        (ClientAuth::Post, json!(["/introspect", null, "t+/=", "server", "hunter2"])),
    ] {
        let tried = Tried::new(&issuer, |options| options.client_auth = auth);
        let principal = tried.verifier.verify("t+/=").await.unwrap();
        assert_eq!((&*principal.subject, &*principal.scopes), ("ada", ["read".to_owned()].as_slice()));
        let access = principal.details.unwrap().downcast::<Access>().unwrap();
        assert_eq!(access.token.reveal(), "t+/=");
        assert_eq!(serde_json::from_str::<Value>(&access.grant.claims).unwrap()["said"], said);
    }
}

#[tokio::test]
async fn answers_are_kept_for_their_time() {
    let issuer = saying(active(&json!({}))).await;
    let tried = Tried::new(&issuer, |_| {});
    for _ in 0..3 {
        assert_eq!(tried.check("t").await.as_deref(), Ok("ada"));
    }
    assert_eq!(issuer.asked(), 1);
    // Revoked: it is taken for as long as the answer is kept.
    issuer.answers(|_| async { reply(r#"{"active":false}"#) });
    tried.clock.pass(59);
    assert!(tried.check("t").await.is_ok());
    tried.clock.pass(1);
    for _ in 0..3 {
        assert_eq!(tried.check("t").await, Err(TokenRefusal::Inactive.into()));
    }
    assert_eq!(issuer.asked(), 2);
    tried.clock.pass(5);
    assert_eq!(tried.check("t").await, Err(TokenRefusal::Inactive.into()));
    assert_eq!(issuer.asked(), 3);
}

#[tokio::test]
async fn no_answer_is_kept_past_the_tokens_own_end() {
    let issuer = saying(active(&json!({"exp": BEGIN + 10}))).await;
    let tried = Tried::new(&issuer, |_| {});
    assert!(tried.check("t").await.is_ok());
    tried.clock.pass(9);
    assert!(tried.check("t").await.is_ok());
    assert_eq!(issuer.asked(), 1);
    tried.clock.pass(1);
    assert_eq!(tried.check("t").await, Err(TokenRefusal::Expired.into()));
    assert_eq!(issuer.asked(), 2);
}

#[tokio::test]
async fn without_a_time_to_keep_each_call_asks() {
    let issuer = saying(active(&json!({}))).await;
    let tried = Tried::new(&issuer, |options| {
        options.kept = Duration::ZERO;
        options.refusals_kept = Duration::ZERO;
    });
    for _ in 0..3 {
        assert!(tried.check("t").await.is_ok());
    }
    assert_eq!(issuer.asked(), 3);
}

#[tokio::test]
async fn what_is_kept_is_bounded_and_rubbish_drives_out_no_good_answer() {
    let issuer = Issuer::start(|asked| async move {
        let token = asked.field("token").unwrap();
        reply(if token.starts_with("good") { active(&json!({})).to_string() } else { r#"{"active":false}"#.to_owned() })
    })
    .await;
    let tried = Tried::new(&issuer, |options| options.most_kept = NonZeroUsize::new(3).unwrap());
    assert!(tried.check("good").await.is_ok());
    for index in 0..10 {
        assert!(tried.check(&format!("bad{index}")).await.is_err());
    }
    assert_eq!(issuer.asked(), 11);
    assert!(tried.check("good").await.is_ok() && tried.check("bad9").await.is_err());
    assert_eq!(issuer.asked(), 11);
    for index in 0..3 {
        assert!(tried.check(&format!("good{index}")).await.is_ok());
    }
    assert!(tried.check("good").await.is_ok());
    assert_eq!(issuer.asked(), 15, "the oldest was pushed out");
}

#[tokio::test]
async fn one_request_serves_all_who_wait_and_nobody_who_leaves_ends_it() {
    let (begun, go) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let gate = (Arc::clone(&begun), Arc::clone(&go));
    let issuer = Issuer::start(move |_| {
        let (begun, go) = gate.clone();
        async move {
            begun.add_permits(1);
            go.acquire().await.unwrap().forget();
            reply(active(&json!({})).to_string())
        }
    })
    .await;
    let tried = Tried::new(&issuer, |_| {});
    let wait = || {
        let verifier = Arc::clone(&tried.verifier);
        tokio::spawn(async move { verifier.verify("t").await.map(|principal| principal.subject.to_string()) })
    };
    let first = wait();
    limited("the question", begun.acquire()).await.unwrap().forget();
    let others: Vec<_> = (0..20).map(|_| wait()).collect();
    first.abort();
    assert!(limited("the first is gone", first).await.unwrap_err().is_cancelled());
    go.add_permits(1);
    for other in others {
        assert_eq!(limited("a verdict", other).await.unwrap().as_deref(), Ok("ada"));
    }
    assert_eq!(issuer.asked(), 1);
}

#[tokio::test]
async fn an_issuer_that_is_away_is_no_verdict_and_is_not_remembered() {
    let issuer = Issuer::start(|_| async { status(500) }).await;
    let tried = Tried::new(&issuer, |_| {});
    for asked in 1..3 {
        let failure = tried.check("t").await.unwrap_err();
        assert!(matches!(failure, Failure::Unavailable(Outage::Status { status: 500, .. })), "{failure}");
        assert_eq!(issuer.asked(), asked);
    }
    issuer.answers(|_| async { reply(active(&json!({})).to_string()) });
    assert!(tried.check("t").await.is_ok());
    // Nobody at the address at all.
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let gone = IntrospectionOptions::new(format!("http://{nobody}/i"), "server", Secret::new("s"));
    let gone = IntrospectionVerifier::new(gone).unwrap();
    assert_eq!(limited("a verdict", gone.verify("t")).await, Err(TokenError::Unavailable));
}

#[tokio::test]
async fn replies_are_bounded_and_secrets_follow_no_redirect() {
    let elsewhere = saying(active(&json!({}))).await;
    let to = elsewhere.url.clone();
    let issuer = Issuer::start(move |asked| {
        let to = to.clone();
        async move {
            match asked.field("token").as_deref().unwrap() {
                "large" => reply(active(&json!({"pad": "x".repeat(300 << 10)})).to_string()),
                "html" => reply("<html>"),
                "yes" => reply(r#"{"active":"yes"}"#),
                "unauthorized" => status(401),
                "never" => std::future::pending().await,
                redirect => {
                    let mut away = status(redirect.parse().unwrap());
                    away.headers_mut().insert("location", to.parse().unwrap());
                    away
                }
            }
        }
    })
    .await;
    let tried = Tried::new(&issuer, |_| {});
    for (token, said) in [
        ("large", "more than 262144 bytes"),
        ("html", "something else"),
        ("yes", "something else"),
        ("unauthorized", "does it know the client"),
        ("302", "redirects are not followed"),
        ("307", "redirects are not followed"),
        ("308", "redirects are not followed"),
    ] {
        let failure = tried.check(token).await.unwrap_err();
        assert!(matches!(failure, Failure::Unavailable(_)) && failure.to_string().contains(said), "{token}: {failure}");
        assert!(!failure.to_string().contains("hunter2"));
    }
    assert_eq!(elsewhere.asked(), 0);
    let hasty = Tried::new(&issuer, |options| {
        options.reach = Reach { time: Duration::from_millis(50), ..Reach::default() };
    });
    let failure = hasty.check("never").await.unwrap_err();
    assert!(matches!(failure, Failure::Unavailable(Outage::TimeLimit { .. })), "{failure}");
}

#[tokio::test]
async fn an_active_token_must_be_meant_for_us() {
    let issuer = Issuer::start(|asked| async move {
        let more = match asked.field("token").as_deref().unwrap() {
            "ours" => json!({"aud": ["x", "https://mcp"], "iss": "https://id"}),
            "theirs" => json!({"aud": "https://other", "iss": "https://id"}),
            "nobodys" => json!({"iss": "https://id"}),
            "foreign" => json!({"aud": "https://mcp", "iss": "https://evil"}),
            _ => json!({"aud": 7}),
        };
        reply(active(&more).to_string())
    })
    .await;
    let tried = Tried::new(&issuer, |options| {
        options.demands.audiences = vec!["https://mcp".to_owned()];
        options.demands.issuers = vec!["https://id".to_owned()];
    });
    assert!(tried.check("ours").await.is_ok());
    for (token, refusal) in [
        ("theirs", TokenRefusal::Audience),
        ("nobodys", TokenRefusal::Audience),
        ("foreign", TokenRefusal::Issuer),
        ("odd", TokenRefusal::Claim("aud")),
    ] {
        assert_eq!(tried.check(token).await, Err(refusal.into()), "{token}");
    }
}

#[tokio::test]
async fn what_can_be_no_token_costs_no_request() {
    let issuer = saying(active(&json!({}))).await;
    let tried = Tried::new(&issuer, |_| {});
    for token in ["", "a b", "a&client_id=x", "\u{e9}", &"x".repeat(20_000)] {
        assert!(matches!(tried.check(token).await, Err(Failure::Refused(_))), "{token}");
    }
    assert_eq!(issuer.asked(), 0);
}

#[test]
fn what_makes_no_sense_is_said_at_once() {
    let of = |url: &str, id: &str| {
        let options = IntrospectionOptions::new(url, id, Secret::new("hunter2"));
        IntrospectionVerifier::new(options).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(of("https://id.example/introspect", "me"), "");
    assert!(of("http://id.example/introspect", "me").contains("https"));
    assert!(of("https://me:pw@id.example/introspect", "me").contains("credentials"));
    assert!(of("https://id.example/introspect", "").contains("client's id"));
}
