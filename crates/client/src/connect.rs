//! Drives the [`Negotiation`] over the client's transports, and begins the session.

use std::sync::Arc;

use mcpace_client_protocol::{Agreement, Negotiation, Outgoing, ServerEra, ServerReply, Step};
use mcpace_wire::Revision;

use crate::ClientError;
use crate::client::ClientInner;
use crate::session::ConnectedSession;
use crate::transport::{HttpSession, LegacySse, Link, Pipe, TargetKind};

impl ClientInner {
    /// Opens the transport and agrees on a revision. The era is worth keeping for the next connection.
    pub(crate) async fn open_session(
        &self,
        known: Option<ServerEra>,
    ) -> Result<(ConnectedSession, ServerEra), ClientError> {
        let probe_limit = self.options.limits.probe_time;
        let (mut negotiation, mut step) =
            Negotiation::begin(self.options.mode, self.http.is_some(), probe_limit, known);
        let mut link = self.open_link().await?;
        loop {
            step = match step {
                Step::Reopen => {
                    link = self.open_link().await?;
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
                    link = self.name_revision(link, Some(revision));
                    let message = self.profile().discover(self.next_id(), revision);
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
                    link = self.name_revision(link, None);
                    let message = self.profile().initialize(self.next_id(), offer);
                    let reply = link.request(&message).await;
                    handle_reply(&mut negotiation, reply, &link)?
                }
                Step::Connected(agreement) => return self.begin_session(link, *agreement).await,
            }
        }
    }

    async fn open_link(&self) -> Result<Link, ClientError> {
        let inbound = &self.inbound;
        match (&self.place, &self.http) {
            (_, Some(http)) => Ok(Link::Http(Arc::new(HttpSession::new(http, inbound, None)))),
            (TargetKind::Program(program), None) => Pipe::start_program(program, inbound).map(Link::Pipe),
            (TargetKind::Pipe(connect), None) => {
                let refused = |error: std::io::Error| ClientError::Connect {
                    address: "the server".to_owned(),
                    reason: error.to_string(),
                };
                let (reader, writer) = tokio::io::split(connect().await.map_err(refused)?);
                Ok(Link::Pipe(Pipe::within_process(reader, writer, inbound)))
            }
            (TargetKind::Http(..), None) => Err(ClientError::Closed),
        }
    }

    async fn open_http_sse(&self) -> Result<Link, ClientError> {
        let http = self.http.as_ref().ok_or(ClientError::Closed)?;
        LegacySse::open(HttpSession::new(http, &self.inbound, None)).await.map(Link::Sse)
    }

    /// The link whose next requests name `revision` in their headers, which only Streamable HTTP does.
    fn name_revision(&self, link: Link, revision: Option<Revision>) -> Link {
        match (&link, &self.http) {
            (Link::Http(_), Some(http)) => Link::Http(Arc::new(HttpSession::new(http, &self.inbound, revision))),
            _ => link,
        }
    }

    /// A legacy session begins with `notifications/initialized` and, if somebody hears it, the standalone stream.
    async fn begin_session(
        &self,
        link: Link,
        agreement: Agreement,
    ) -> Result<(ConnectedSession, ServerEra), ClientError> {
        let Agreement { server, era } = agreement;
        let dialect = self.profile().dialect(server.revision);
        if server.revision.is_modern() {
            return Ok((ConnectedSession::new(link, dialect, server, None), era));
        }
        let link = match link {
            Link::Http(session) => Link::Http(Arc::new(session.with_session(server.revision))),
            link => link,
        };
        link.notify(&Outgoing::initialized()).await?;
        let listening = match &link {
            Link::Http(session) if session.has_session() && session.inbound().callbacks.has_any() => {
                Some(session.listen_stream().await)
            }
            _ => None,
        };
        Ok((ConnectedSession::new(link, dialect, server, listening), era))
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
