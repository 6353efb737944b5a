//! A line a message, over a pair of streams: a process's stdin and stdout, or two ends within this process.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use mcpace_client_protocol::inbound::PendingRequests;
use mcpace_client_protocol::{Answer, Outgoing};
use mcpace_wire::lines;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use super::process::{Program, ServerProcess};
use super::task::BackgroundTask;
use super::{Back, Outbox};
use crate::ClientError;
use crate::inbound::Inbound;

pub(crate) struct Pipe {
    outbox: Arc<Outbox>,
    shared: Arc<PipeShared>,
    process: Option<ServerProcess>,
    _reading: BackgroundTask,
    _writing: BackgroundTask,
}

struct PipeShared {
    pending: PendingRequests,
    /// Set once a line was longer than the limit.
    oversized: OnceLock<usize>,
}

impl Pipe {
    /// Starts a program; its pipes, its group and its end are ours to see to.
    pub(crate) fn start_program(program: &Program, inbound: &Arc<Inbound>) -> Result<Self, ClientError> {
        let (process, stdin, stdout) = ServerProcess::start_program(program, &inbound.runtime)?;
        Ok(Self::over_streams(stdout, stdin, Some(process), inbound))
    }

    pub(crate) fn within_process(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + 'static,
        inbound: &Arc<Inbound>,
    ) -> Self {
        Self::over_streams(reader, writer, None, inbound)
    }

    fn over_streams(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + 'static,
        process: Option<ServerProcess>,
        inbound: &Arc<Inbound>,
    ) -> Self {
        let outbox = Arc::new(Outbox::new(writer, inbound.limits.unread));
        let shared = Arc::new(PipeShared { pending: PendingRequests::default(), oversized: OnceLock::new() });
        let (read, taken, back) = (Arc::clone(&shared), Arc::clone(inbound), Back::Pipe(Arc::clone(&outbox)));
        let reading =
            BackgroundTask::spawn(&inbound.runtime, async move { read.read_lines(reader, &taken, &back).await });
        let flushed = Arc::clone(&outbox);
        let writing = BackgroundTask::spawn(&inbound.runtime, async move { flushed.write_queued().await });
        Self { outbox, shared, process, _reading: reading, _writing: writing }
    }

    pub(crate) fn name(&self) -> &str {
        self.process.as_ref().map_or("the server", ServerProcess::name)
    }

    pub(crate) fn outbox(&self) -> &Arc<Outbox> {
        &self.outbox
    }

    pub(crate) async fn request(&self, message: &Outgoing) -> Result<Answer, ClientError> {
        let answer = self.shared.pending.expect_answer(message.id.unwrap_or_default());
        self.send(message).await?;
        match answer.await {
            Some(answer) => Ok(answer),
            None => Err(self.lost_answer(message.method).await),
        }
    }

    pub(crate) async fn send(&self, message: &Outgoing) -> Result<(), ClientError> {
        match self.outbox.send_line(&message.body) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::Other => {
                Err(ClientError::BrokeOff { method: message.method.to_owned(), reason: error.to_string() })
            }
            Err(_) => Err(self.lost_answer(message.method).await),
        }
    }

    /// Closes the stream and ends the process.
    pub(crate) async fn close(&self, limit: Duration) {
        self.outbox.close_input();
        if let Some(process) = &self.process {
            process.shut_down(limit).await;
        }
        self.shared.pending.close("the client closed it");
    }

    /// Error of a request that the end of the stream left without an answer.
    async fn lost_answer(&self, method: &str) -> ClientError {
        if let Some(limit) = self.shared.oversized.get() {
            return ClientError::TooLarge { what: "a line of the server", limit: *limit };
        }
        let ended = match &self.process {
            Some(process) => process.end_error().await,
            None => None,
        };
        ended.unwrap_or_else(|| {
            let reason = self.shared.pending.close_reason().unwrap_or_else(|| "it reads no more".to_owned());
            ClientError::BrokeOff { method: method.to_owned(), reason }
        })
    }
}

impl PipeShared {
    async fn read_lines(&self, mut reader: impl AsyncRead + Unpin, inbound: &Arc<Inbound>, back: &Back) {
        let mut decoder = lines::Decoder::new(inbound.limits.message);
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = reader.read(&mut buffer).await.unwrap_or(0);
            decoder.feed(&buffer[..read]);
            loop {
                match decoder.next_line() {
                    // A line that is no message is the server's fault; later lines still count.
                    Ok(Some(line)) => drop(inbound.handle_text(&Bytes::from(line), back, None, Some(&self.pending))),
                    Ok(None) => break,
                    Err(lines::LineError::TooLong { limit }) => {
                        // Set before anybody hears of the end, so that they hear of the reason too.
                        self.oversized.get_or_init(|| limit);
                        return self.pending.close("it wrote a line past the limit");
                    }
                }
            }
            if read == 0 {
                if let Some(line) = decoder.finish() {
                    drop(inbound.handle_text(&Bytes::from(line), back, None, Some(&self.pending)));
                }
                return self.pending.close("it closed its output");
            }
        }
    }
}
