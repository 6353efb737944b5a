//! A target's options and its life: start, look at it, stop.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::counters::{Counters, Tally};
use crate::error::TargetError;
use crate::faults::{FaultKind, Faults};
use crate::oauth::{AuthorizationServer, Policy};
use crate::profile::{Authorization, Profile, ResponseMode};
use crate::recorded::RecordedServer;
use crate::reply::Shaper;
use crate::secret::Secret;
use crate::server::{self, OpenListener};
use crate::session::TargetSessions;
use crate::site::{RequiredCredentials, Site};
use crate::timer::Timer;
use crate::tls::Tls;

/// The path of the MCP endpoint.
pub(crate) const ENDPOINT: &str = "/mcp";

/// Everything that a target can be told. Start from [`Options::new`] and change what you need.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whose behaviour the target takes on.
    pub profile: Profile,
    /// Recording that answers every request, instead of the profile's tools. Make these options with
    /// [`Options::of_recording`].
    pub recorded: Option<Arc<RecordedServer>>,
    /// The address to listen on; loopback unless said.
    pub host: IpAddr,
    /// The port; 0 takes any free one.
    pub port: u16,
    /// How long SSE replies stay open after their result, in the profiles that do so.
    pub hold: Duration,
    /// Faults on purpose.
    pub faults: Faults,
    /// Whether to speak TLS, with a self-signed certificate.
    pub tls: bool,
    /// How results are sent; `None` for the profile's own way, or as the recorded server did.
    pub response: Option<ResponseMode>,
    /// Whether to keep sessions for the legacy revisions; 2026-07-28 has none.
    pub sessions: bool,
    /// Whether to tell the time spent in each layer in every reply, not only when asked.
    pub server_timing: bool,
    /// The token that profile `github` compares with. Others ignore it.
    pub bearer_token: Option<Secret>,
    /// How long an OAuth access token is good for, where no fault says less. Clients are told whole seconds.
    pub token_lifetime: Duration,
    /// Origins (`scheme://host:port`) of proxies in front, under which OAuth clients may name the
    /// resource. Not needed where the proxy translates `resource` itself.
    pub public_origins: Vec<String>,
}

impl Options {
    /// The profile's own behaviour, on any free loopback port, without faults.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        let behaviour = profile.behaviour();
        Self {
            profile,
            recorded: None,
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            hold: Duration::from_secs(10),
            faults: Faults::none(),
            tls: false,
            response: None,
            sessions: behaviour.sessions,
            server_timing: false,
            bearer_token: None,
            token_lifetime: Duration::from_secs(3600),
            public_origins: Vec::new(),
        }
    }

    /// Serves a recording on any free loopback port: sessions as the recorded server kept them, no authorization.
    #[must_use]
    pub fn of_recording(recorded: Arc<RecordedServer>) -> Self {
        let sessions = recorded.has_sessions();
        Self { recorded: Some(recorded), sessions, ..Self::new(Profile::Simple) }
    }

    fn check(&self) -> Result<(), TargetError> {
        let authorization = self.profile.behaviour().authorization;
        let token = self.bearer_token.as_ref().filter(|token| !token.is_empty());
        if authorization == Authorization::Bearer && token.is_none() {
            return Err(TargetError::TokenMissing { profile: self.profile });
        }
        let needs = |kind| self.faults.contains(kind).then_some(kind);
        let of_profiles = [FaultKind::Dispatch, FaultKind::Tool, FaultKind::WrongId, FaultKind::OversizedReply];
        if let (Some(kind), Some(_)) = (of_profiles.into_iter().find_map(needs), &self.recorded) {
            return Err(TargetError::FaultOfProfiles { kind });
        }
        if let (Some(kind), false) = (needs(FaultKind::TlsHandshake), self.tls) {
            return Err(TargetError::FaultNeedsTls { kind });
        }
        if let (Some(kind), false) = (needs(FaultKind::SessionLost), self.sessions) {
            return Err(TargetError::FaultNeedsSessions { kind });
        }
        let of_oauth = [FaultKind::ConsentRefused, FaultKind::TokenLifetime, FaultKind::TokenEndpoint];
        let of_oauth = of_oauth.into_iter().find_map(needs);
        match of_oauth {
            Some(kind) if authorization != Authorization::OAuth => {
                Err(TargetError::FaultNeedsOAuth { kind, profile: self.profile })
            }
            _ => Ok(()),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new(Profile::default())
    }
}

/// A running target. Dropping it closes everything at once; [`Target::stop`] lets replies end.
#[derive(Debug)]
pub struct Target {
    url: String,
    certificate_pem: Option<String>,
    tally: Arc<Tally>,
    stop: watch::Sender<bool>,
    server: Option<JoinHandle<()>>,
}

impl Target {
    /// Opens the port and serves from then on, on the tokio runtime that this is called in.
    ///
    /// # Errors
    ///
    /// Options that make no sense together, a port that can't be had, or a machine that refuses
    /// a thread or a certificate.
    pub async fn start(options: Options) -> Result<Self, TargetError> {
        options.check()?;
        let tls = options.tls.then(|| Tls::self_signed(options.host)).transpose()?;
        let timer = Timer::start_thread().map_err(TargetError::Timer)?;
        let (listener, address) = bind_listener(SocketAddr::new(options.host, options.port)).await?;
        let scheme = if options.tls { "https" } else { "http" };
        let origin = format!("{scheme}://{address}");
        let (stop, stopping) = watch::channel(false);
        let tally = Arc::new(Tally::default());
        let (acceptor, certificate_pem) = match tls {
            Some(tls) => (Some(tls.acceptor), Some(tls.certificate_pem)),
            None => (None, None),
        };
        let listening = OpenListener {
            listener,
            acceptor,
            // Two writes show their stall only where Nagle's algorithm is left on.
            nodelay: !options.faults.contains(FaultKind::TwoWrites),
            handshake_delay: options.faults.delay_for(FaultKind::TlsHandshake, ""),
            timer: timer.clone(),
            stopping: stopping.clone(),
        };
        let url = format!("{origin}{ENDPOINT}");
        let site = make_site(options, origin, timer, stopping, Arc::clone(&tally));
        let server = tokio::spawn(server::run_server(listening, Arc::new(site)));
        Ok(Self { url, certificate_pem, tally, stop, server: Some(server) })
    }

    /// The MCP endpoint, for example `http://127.0.0.1:4711/mcp`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The self-signed certificate, where the target speaks TLS; a client takes it as a root.
    #[must_use]
    pub fn certificate_pem(&self) -> Option<&str> {
        self.certificate_pem.as_deref()
    }

    /// Counts of the target so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.tally.snapshot()
    }

    /// Closes the port, cuts every wait short, lets replies end for at most a second, then closes
    /// what is left.
    pub async fn stop(mut self) {
        // Only a server that has ended already has no receiver.
        let _ = self.stop.send(true);
        if let Some(server) = self.server.take() {
            // The server bounds its own end; a panic in it has been reported by tokio.
            let _ = server.await;
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            // The connections are tasks of a set that the server's task owns: they end with it.
            server.abort();
        }
    }
}

async fn bind_listener(address: SocketAddr) -> Result<(TcpListener, SocketAddr), TargetError> {
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::AddrInUse => TargetError::PortInUse { address },
        _ => TargetError::Listen { address, source },
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

fn make_site(
    options: Options,
    origin: String,
    timer: Timer,
    stopping: watch::Receiver<bool>,
    tally: Arc<Tally>,
) -> Site {
    let behaviour = options.profile.behaviour();
    let faulty_lifetime = options.faults.delay_for(FaultKind::TokenLifetime, "");
    let guard = match (behaviour.authorization, options.bearer_token) {
        (Authorization::OAuth, _) => RequiredCredentials::OAuth(Box::new(AuthorizationServer::new(
            &origin,
            ENDPOINT,
            &options.public_origins,
            Policy {
                token_lifetime: if faulty_lifetime.is_zero() { options.token_lifetime } else { faulty_lifetime },
                refuses_consent: options.faults.contains(FaultKind::ConsentRefused),
            },
        ))),
        (Authorization::Bearer, Some(token)) => RequiredCredentials::Bearer(token),
        // `check` has refused a bearer profile without a token.
        (Authorization::None | Authorization::Bearer, _) => RequiredCredentials::Open,
    };
    let lost_after = options.faults.amount_for(FaultKind::SessionLost, "");
    Site {
        origin,
        guard,
        sessions: options.sessions.then(|| TargetSessions::new(lost_after)),
        standalone_stream: match &options.recorded {
            Some(recorded) => recorded.has_standalone_stream(),
            None => behaviour.standalone_stream,
        },
        tools: behaviour.tools,
        recorded: options.recorded,
        response: options.response.unwrap_or(behaviour.response),
        forced_response: options.response,
        server_timing: options.server_timing,
        shaper: Shaper {
            faults: options.faults,
            hold: if behaviour.holds_replies_open { options.hold } else { Duration::ZERO },
            timer,
            stopping,
        },
        refused_for_now: Default::default(),
        tally,
    }
}
