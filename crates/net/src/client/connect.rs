//! Drives the [`Negotiation`] over the instrumented transports.

use std::sync::Arc;

use mcpace_client_protocol::{Agreement, Negotiation, Outgoing, ServerReply, Step};
use tokio::process::Command;

use super::http::Http;
use super::link::Link;
use super::stdio::Stdio;
use super::{Client, ClientError, ServerEndpoint};

impl Client {
    /// Opens the transport and agrees on a revision.
    pub(super) async fn open_link(&self) -> Result<(Link, Agreement), ClientError> {
        let options = &self.options;
        let (mut negotiation, mut step) =
            Negotiation::begin(options.mode(), self.http.is_some(), options.probe_limit, self.era);
        let mut link = self.start_link()?;
        loop {
            step = match step {
                Step::Reopen => {
                    link = self.start_link()?;
                    negotiation.handle_open(link.kind())
                }
                Step::OpenHttpSse => match self.open_http_sse().await {
                    Ok(opened) => {
                        link = opened;
                        negotiation.handle_open(link.kind())
                    }
                    Err(error) => negotiation.handle_failure(error)?,
                },
                Step::Discover { revision, limit } => {
                    self.http_transport().inspect(|http| http.name_revision(Some(revision)));
                    let message = self.profile.discover(self.ids.next_id(), revision);
                    let reply = match limit {
                        Some(limit) => tokio::time::timeout(limit, link.request(&message)).await,
                        None => Ok(link.request(&message).await),
                    };
                    match reply {
                        Ok(reply) => handle_reply(&mut negotiation, reply, &link)?,
                        Err(_) => negotiation.handle_timeout(),
                    }
                }
                Step::Initialize { offer } => {
                    self.http_transport().inspect(|http| http.name_revision(None));
                    let message = self.profile.initialize(self.ids.next_id(), offer);
                    let reply = link.request(&message).await;
                    handle_reply(&mut negotiation, reply, &link)?
                }
                Step::Connected(agreement) => {
                    if agreement.server.revision.is_legacy() {
                        self.begin_session(&link, &agreement).await?;
                    }
                    return Ok((link, *agreement));
                }
            }
        }
    }

    fn http_transport(&self) -> Option<&Arc<Http>> {
        self.http.as_ref()
    }

    fn start_link(&self) -> Result<Link, ClientError> {
        match (&self.endpoint, &self.http) {
            (ServerEndpoint::Stdio { program, args, environment }, _) => {
                let mut command = Command::new(program);
                command.args(args).envs(environment.iter().map(|(name, value)| (name, value)));
                Ok(Link::Stdio(Stdio::start_program(command, self.options.message_limit, &self.sink)?))
            }
            (ServerEndpoint::Http(_), Some(http)) => {
                http.forget_session();
                Ok(Link::Http(Arc::clone(http)))
            }
            (ServerEndpoint::Http(_), None) => Err(ClientError::NotConnected),
        }
    }

    async fn open_http_sse(&self) -> Result<Link, ClientError> {
        let http = self.http_transport().ok_or(ClientError::NotConnected)?;
        http.forget_session();
        Ok(Link::Legacy(Arc::clone(http), http.open_legacy().await?))
    }

    /// A legacy session begins with `notifications/initialized` and, if wanted, the standalone stream.
    async fn begin_session(&self, link: &Link, agreement: &Agreement) -> Result<(), ClientError> {
        self.http_transport().inspect(|http| http.name_revision(Some(agreement.server.revision)));
        link.notify(&Outgoing::initialized()).await?;
        if let (Link::Http(http), true) = (link, self.options.standalone_get) {
            http.listen_stream();
        }
        Ok(())
    }
}

fn handle_reply(
    negotiation: &mut Negotiation,
    reply: Result<ServerReply, ClientError>,
    link: &Link,
) -> Result<Step, ClientError> {
    match reply {
        Ok(reply) => negotiation.handle_reply(reply, &link.address()),
        Err(error) => negotiation.handle_failure(error),
    }
}
