//! A plan made ready to run: everything that can be worked out before the first call is.

use std::net::SocketAddr;
use std::sync::Arc;

use memchr::memmem::Finder;
use rustls::ClientConfig;

use crate::address::TargetAddress;
use crate::outcome::OutcomeKind;
use crate::plan::{LoadModel, LoadTarget, OperationKind, Order, Plan, PlanError, SessionMode};
use crate::random::Random;
use crate::request::{MessageBody, RequestHead};
use crate::tls;

/// Plan made ready to run. All threads read it, and none changes it.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) plan: Plan,
    pub(crate) address: Option<TargetAddress>,
    /// The target's numbers, in the order in which they are tried.
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) tls: Option<Arc<ClientConfig>>,
    /// The plan's operations.
    pub(crate) calls: Vec<PreparedRequest>,
    /// Up to which point of the sum of all weights an operation is chosen.
    chances: Vec<f64>,
    pub(crate) initialize: PreparedRequest,
    pub(crate) initialized: PreparedRequest,
    pub(crate) delete: Option<RequestHead>,
    pub(crate) warm_up_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) timeout_ns: u64,
    pub(crate) think_ns: u64,
    pub(crate) drain_ns: u64,
}

/// A request, ready but for what differs from call to call.
#[derive(Debug)]
pub(crate) struct PreparedRequest {
    pub(crate) body: MessageBody,
    pub(crate) head: Option<RequestHead>,
    pub(crate) expect: Option<Finder<'static>>,
}

/// Purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestPurpose {
    /// The plan's operation of this number.
    Operation(u16),
    Initialize,
    Initialized,
    Delete,
}

impl Program {
    /// Makes a plan ready. `Err` is a sentence for the user: names are looked up and certificates read here.
    pub(crate) fn new(plan: Plan) -> Result<Self, String> {
        let (address, addresses, tls) = match &plan.target {
            LoadTarget::Http { url, ca, insecure, .. } => {
                let address = TargetAddress::parse(url).map_err(|error| error.to_string())?;
                let unknown = |why: String| format!("the target's name {} can't be looked up: {why}", address.host);
                let addresses = address.resolve().map_err(|error| unknown(error.to_string()))?;
                if addresses.is_empty() {
                    return Err(unknown("it has no address".to_owned()));
                }
                let tls = address.secure.then(|| tls::client_config(ca.as_deref(), *insecure)).transpose()?;
                (Some(address), addresses, tls)
            }
            LoadTarget::Stdio { .. } => (None, Vec::new(), None),
        };
        let call = |body: MessageBody, expect: Option<&String>| PreparedRequest {
            head: address.as_ref().map(|address| RequestHead::post_head(&plan, address, &body)),
            body,
            expect: expect.map(|text| Finder::new(text.as_bytes()).into_owned()),
        };
        let compiled = plan.operations.iter().map(|operation| {
            Ok(call(MessageBody::compile_operation(operation, plan.revision, &plan.data)?, operation.expect.as_ref()))
        });
        let calls = compiled.collect::<Result<Vec<_>, PlanError>>().map_err(|error| error.to_string())?;
        let chances = plan.operations.iter().scan(0.0, |sum, operation| {
            *sum += operation.weight;
            Some(*sum)
        });
        let ns = |seconds: f64| (seconds * 1e9).round() as u64;
        Ok(Self {
            calls,
            chances: chances.collect(),
            initialize: call(MessageBody::initialize(plan.revision), None),
            initialized: call(MessageBody::initialized(), None),
            delete: address.as_ref().map(|address| RequestHead::delete_head(&plan, address)),
            warm_up_ns: ns(plan.warm_up_s),
            end_ns: ns(plan.load_s()),
            timeout_ns: ns(plan.timeout_s),
            think_ns: ns(plan.think_s),
            drain_ns: ns(plan.drain_s),
            address,
            addresses,
            tls,
            plan,
        })
    }

    /// Chooses an operation: by the weights, or the one whose turn it is for a user.
    pub(crate) fn choose_operation(&self, random: &mut Random, turn: &mut u16) -> u16 {
        if self.plan.order == Order::Sequence {
            let chosen = *turn;
            *turn = if usize::from(chosen) + 1 < self.calls.len() { chosen + 1 } else { 0 };
            return chosen;
        }
        let [.., total] = self.chances.as_slice() else { return 0 };
        if self.chances.len() == 1 {
            return 0;
        }
        let point = random.unit_float() * total;
        self.chances.iter().position(|chance| point < *chance).unwrap_or_default() as u16
    }

    pub(crate) fn is_http(&self) -> bool {
        self.address.is_some()
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.plan.model, LoadModel::Open { .. })
    }

    pub(crate) fn has_sessions(&self) -> bool {
        self.plan.session != SessionMode::None
    }

    /// Whether a call that is due then counts.
    pub(crate) fn is_measured(&self, due_ns: u64) -> bool {
        (self.warm_up_ns..self.end_ns).contains(&due_ns)
    }

    /// How many rows the outcome's operations have.
    pub(crate) fn row_count(&self) -> usize {
        self.calls.len() + 3
    }

    /// The row of a request.
    pub(crate) fn request_row(&self, what: RequestPurpose) -> usize {
        match what {
            RequestPurpose::Operation(number) => usize::from(number),
            RequestPurpose::Initialize => self.calls.len(),
            RequestPurpose::Initialized => self.calls.len() + 1,
            RequestPurpose::Delete => self.calls.len() + 2,
        }
    }

    /// The names of the rows. The session's own come last.
    pub(crate) fn row_names(&self) -> Vec<(String, OutcomeKind)> {
        let kind = |kind| match kind {
            OperationKind::Call => OutcomeKind::Call,
            OperationKind::List => OutcomeKind::List,
            OperationKind::Ping => OutcomeKind::Ping,
            OperationKind::Raw => OutcomeKind::Raw,
        };
        let own = self.plan.operations.iter().map(|operation| (operation.name.clone(), kind(operation.kind)));
        let session = [
            ("initialize", OutcomeKind::Initialize),
            ("initialized", OutcomeKind::Initialized),
            ("delete", OutcomeKind::Delete),
        ];
        own.chain(session.map(|(name, kind)| (name.to_owned(), kind))).collect()
    }
}
