//! Paths: the MCP endpoint, and around it the metadata and the authorization server.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use http::header::{AUTHORIZATION, CACHE_CONTROL, CONNECTION, LOCATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, request};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use mcpace_wire::http::{Challenge, Rejection};
use mcpace_wire::jsonrpc::Id;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::counters::{Tally, count_one};
use crate::faults::FaultKind;
use crate::oauth::{AuthorizationServer, EndpointAnswer, TokenRefused};
use crate::profile::ResponseMode;
use crate::recorded::RecordedServer;
use crate::reply::{Shaper, plain_json, status_reply};
use crate::script::Script;
use crate::secret::Secret;
use crate::session::TargetSessions;
use crate::target::ENDPOINT;
use crate::tools::Tool;

/// Larger request bodies are refused.
const LARGEST_BODY: usize = 4 << 20;
/// Slower request bodies are refused.
const LONGEST_BODY: Duration = Duration::from_secs(30);

const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource";
const AUTHORIZATION_METADATA: &str = "/.well-known/oauth-authorization-server";

/// Everything that answers requests: a profile's decisions and the state that they need.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) origin: String,
    pub(crate) guard: RequiredCredentials,
    pub(crate) sessions: Option<TargetSessions>,
    pub(crate) standalone_stream: bool,
    /// Tools of the profile.
    pub(crate) tools: &'static [Tool],
    /// Answers every request, instead of the profile's methods.
    pub(crate) recorded: Option<Arc<RecordedServer>>,
    pub(crate) response: ResponseMode,
    /// How recorded results are sent, where it isn't as the recorded server did.
    pub(crate) forced_response: Option<ResponseMode>,
    pub(crate) server_timing: bool,
    pub(crate) shaper: Shaper,
    /// Requests that the `retry-after` fault could have refused: it refuses every other one.
    pub(crate) refused_for_now: AtomicU64,
    pub(crate) tally: Arc<Tally>,
}

/// An answer that was found before its time: a refusal, a redirect.
pub(crate) type Early = Box<Response<Script>>;

/// Credentials that a request needs to be served.
#[derive(Debug)]
pub(crate) enum RequiredCredentials {
    Open,
    Bearer(Secret),
    OAuth(Box<AuthorizationServer>),
}

impl Site {
    /// Answers one HTTP request, whatever it is.
    pub(crate) async fn answer_request(&self, request: Request<Incoming>) -> Response<Script> {
        self.tally.change_counts(|counters| counters.http_requests += 1);
        let (head, body) = request.into_parts();
        let mut response = match self.route_request(&head, body).await {
            Ok(response) => response,
            Err(early) => *early,
        };
        if self.shaper.faults.is_on(FaultKind::ConnectionClose, "") {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        self.tally.change_counts(|counters| count_one(&mut counters.statuses, response.status().as_u16()));
        response
    }

    async fn route_request(&self, head: &request::Parts, body: Incoming) -> Result<Response<Script>, Early> {
        let path = head.uri.path();
        let serving_path = path
            .strip_prefix(ENDPOINT)
            .is_some_and(|rest| rest.is_empty() || rest == "/" && self.shaper.faults.contains(FaultKind::Redirect));
        if serving_path {
            if let Err(early) = self.check_origin(&head.headers).and_then(|()| self.check_token(&head.headers)) {
                return refuse_after_body(body, early).await;
            }
            return match head.method {
                Method::POST => {
                    let body = read_body(body).await?;
                    self.handle_post(head, &body).await
                }
                Method::GET => self.handle_get(head).await,
                Method::DELETE => self.end_session(head),
                _ => refuse_after_body(body, rejection_response(&Rejection::MethodNotAllowed, None)).await,
            };
        }
        match &self.guard {
            RequiredCredentials::OAuth(server) => self.authorization_route(server, head, body).await,
            RequiredCredentials::Open | RequiredCredentials::Bearer(_) => {
                refuse_after_body(body, Early::new(status_reply(StatusCode::NOT_FOUND))).await
            }
        }
    }

    /// A page of another site must not reach a server on loopback through its visitor's browser.
    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Early> {
        let Some(origin) = headers.get(http::header::ORIGIN) else {
            return Ok(());
        };
        let local = origin
            .to_str()
            .ok()
            .and_then(|origin| origin.parse::<http::Uri>().ok())
            .is_some_and(|origin| matches!(origin.host(), Some("localhost" | "127.0.0.1" | "[::1]")));
        if local || origin.as_bytes() == self.origin.as_bytes() {
            return Ok(());
        }
        Err(rejection_response(&Rejection::OriginForbidden, None))
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<(), Early> {
        let token = bearer_token(headers);
        let refused = match (&self.guard, token) {
            (RequiredCredentials::Open, _) => return Ok(()),
            (_, None) => None,
            (RequiredCredentials::Bearer(expected), Some(token)) if expected.equals(token) => return Ok(()),
            (RequiredCredentials::Bearer(_), Some(_)) => Some(TokenRefused::Unknown),
            (RequiredCredentials::OAuth(server), Some(token)) => match server.check_token(token, Instant::now()) {
                Ok(()) => return Ok(()),
                Err(refused) => Some(refused),
            },
        };
        self.tally.change_counts(|counters| counters.unauthorized += 1);
        let mut response = problem_response(StatusCode::UNAUTHORIZED, "a valid bearer token is needed");
        if let Ok(challenge) = HeaderValue::try_from(self.challenge_header(refused)) {
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        Err(response)
    }

    /// RFC 6750 §3 and, for OAuth, RFC 9728 §5.1.
    fn challenge_header(&self, refused: Option<TokenRefused>) -> String {
        let mut challenge = Challenge::bearer();
        if let Some(refused) = refused {
            let description = match refused {
                TokenRefused::Unknown => "this token was not given out for this server",
                TokenRefused::Expired => "this token has expired",
            };
            challenge = challenge.with("error", "invalid_token").with("error_description", description);
        }
        match &self.guard {
            RequiredCredentials::OAuth(_) => {
                let url = format!("{}{RESOURCE_METADATA}{ENDPOINT}", self.origin);
                challenge.with("resource_metadata", &url)
            }
            RequiredCredentials::Open | RequiredCredentials::Bearer(_) => challenge.with("realm", "mcpace"),
        }
        .to_string()
    }

    async fn authorization_route(
        &self,
        server: &AuthorizationServer,
        head: &request::Parts,
        body: Incoming,
    ) -> Result<Response<Script>, Early> {
        let path = head.uri.path();
        let is_resource_metadata =
            path.strip_prefix(RESOURCE_METADATA).is_some_and(|rest| rest.is_empty() || rest == ENDPOINT);
        let answer = match (&head.method, path) {
            (&Method::GET, _) if is_resource_metadata => {
                self.tally.change_counts(|counters| counters.resource_metadata_fetches += 1);
                EndpointAnswer::Document(server.resource_metadata())
            }
            (&Method::GET, AUTHORIZATION_METADATA) => {
                self.tally.change_counts(|counters| counters.authorization_metadata_fetches += 1);
                EndpointAnswer::Document(server.authorization_metadata())
            }
            (&Method::GET, "/authorize") => {
                server.authorize_client(head.uri.query().unwrap_or_default(), Instant::now())
            }
            (&Method::POST, "/register") => server.register_client(&read_body(body).await?),
            (&Method::POST, "/token") => {
                self.tally.change_counts(|counters| counters.token_requests += 1);
                let form = read_body(body).await?;
                // A client that leaves meanwhile was given nothing: its refresh token stays good.
                self.shaper.timer.sleep(self.shaper.faults.delay_for(FaultKind::TokenEndpoint, "")).await;
                let authorization = header_text(&head.headers, &AUTHORIZATION);
                server.token_response(&form, authorization, Instant::now())
            }
            (_, "/authorize" | "/register" | "/token" | AUTHORIZATION_METADATA) => {
                return refuse_after_body(body, rejection_response(&Rejection::MethodNotAllowed, None)).await;
            }
            _ => return refuse_after_body(body, Early::new(status_reply(StatusCode::NOT_FOUND))).await,
        };
        Ok(self.oauth_response(answer))
    }

    fn oauth_response(&self, answer: EndpointAnswer) -> Response<Script> {
        let count = |change: fn(&mut crate::counters::Counters)| self.tally.change_counts(change);
        match answer {
            EndpointAnswer::Document(document) => json_reply(StatusCode::OK, &document),
            EndpointAnswer::Registered(client) => {
                count(|counters| counters.registrations += 1);
                without_store(json_reply(StatusCode::CREATED, &client))
            }
            EndpointAnswer::Tokens(tokens) => {
                count(|counters| counters.tokens_issued += 1);
                without_store(json_reply(StatusCode::OK, &tokens))
            }
            EndpointAnswer::Consent(location) => {
                count(|counters| counters.authorizations += 1);
                redirect_response(StatusCode::FOUND, &location)
            }
            EndpointAnswer::Refusal(location) => redirect_response(StatusCode::FOUND, &location),
            EndpointAnswer::Error(error) => {
                let status = match error.code {
                    "invalid_client" => StatusCode::UNAUTHORIZED,
                    _ => StatusCode::BAD_REQUEST,
                };
                let body = json!({"error": error.code, "error_description": error.description});
                without_store(json_reply(status, &body))
            }
        }
    }
}

/// A refusal, once the body is here: a connection that ends with bytes unread is reset, and the reply may go with it.
async fn refuse_after_body(body: Incoming, early: Early) -> Result<Response<Script>, Early> {
    // The refusal takes precedence over any fault of the body.
    let _ = read_body(body).await;
    Err(early)
}

/// The whole body, within limits of size and time.
async fn read_body(body: Incoming) -> Result<Vec<u8>, Early> {
    let too_large = || {
        let limit = LARGEST_BODY;
        Err(rejection_response(&Rejection::BodyTooLarge { limit }, None))
    };
    // A length that is announced need not be waited for.
    if body.size_hint().lower() > LARGEST_BODY as u64 {
        return too_large();
    }
    match timeout(LONGEST_BODY, Limited::new(body, LARGEST_BODY).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes().into()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => too_large(),
        Ok(Err(_)) => Err(problem_response(StatusCode::BAD_REQUEST, "the body broke off")),
        Err(_) => {
            let limit = "the body took longer than 30 s";
            Err(problem_response(StatusCode::REQUEST_TIMEOUT, limit))
        }
    }
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = header_text(headers, &AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// A header's value as text, if it is there and is text.
fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// An HTTP error outside of any JSON-RPC request.
pub(crate) fn problem_response(status: StatusCode, description: &str) -> Early {
    Early::new(json_reply(status, &json!({"error": description})))
}

/// Response to a request that the protocol's own checks refuse: its status and a JSON-RPC error.
pub(crate) fn rejection_response(rejection: &Rejection, id: Option<&Id<'_>>) -> Early {
    let mut body = Vec::new();
    rejection.write_body(id, &mut body);
    let status = StatusCode::from_u16(rejection.status()).unwrap_or(StatusCode::BAD_REQUEST);
    Early::new(plain_json(status, body))
}

/// A redirect; a place that is no header value can only come from a hostile client.
pub(crate) fn redirect_response(status: StatusCode, location: &str) -> Response<Script> {
    match HeaderValue::try_from(location) {
        Ok(location) => {
            let mut response = status_reply(status);
            response.headers_mut().insert(LOCATION, location);
            response
        }
        Err(_) => status_reply(StatusCode::BAD_REQUEST),
    }
}

fn json_reply(status: StatusCode, body: &Value) -> Response<Script> {
    plain_json(status, body.to_string().into_bytes())
}

fn without_store(mut response: Response<Script>) -> Response<Script> {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
