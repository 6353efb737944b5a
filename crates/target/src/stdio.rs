//! A recording over stdio: one client on a pair of byte streams, one JSON text a line.
//!
//! Requests run concurrently, each at its recorded time. `notifications/cancelled` ends a request: in a batch, the array has
//! no answer to it, and the others keep theirs. Memory is bounded by the longest line and by [`MOST_CALLS`]; with as many
//! payloads in flight, the next line is not read. The end of the input is the signal to leave: requests in flight have
//! [`GRACE`] to end.

use std::collections::HashMap;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpace_wire::Revision;
use mcpace_wire::http::{Era, Rejection, RequestHeaders, check_meta};
use mcpace_wire::jsonrpc::{Id, Message, Payload, Request};
use mcpace_wire::lines;
use mcpace_wire::mcp::{CancelledParams, ParamsOutline};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::counters::{Counters, Tally};
use crate::error::TargetError;
use crate::recorded::{RecordedServer, ReplyContent, refusal_message};
use crate::timer::Timer;

const LONGEST_LINE: usize = 4 << 20;
const CHUNK: usize = 64 * 1024;
/// Most payloads in flight.
const MOST_CALLS: usize = 512;
/// Most messages that wait for a slow reader; more make their requests wait.
const MOST_UNWRITTEN: usize = 64;
const GRACE: Duration = Duration::from_secs(5);

/// Answers one client from a recording until the input ends or the client no longer reads. Gives the counts of the
/// client's messages.
///
/// # Errors
///
/// [`TargetError::Timer`] or [`TargetError::Stdio`].
pub async fn serve_recording(
    recorded: Arc<RecordedServer>,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
) -> Result<Counters, TargetError> {
    let timer = Timer::start_thread().map_err(TargetError::Timer)?;
    let (sender, messages) = mpsc::channel(MOST_UNWRITTEN);
    let mut client = StdioClient {
        recorded,
        timer,
        tally: Tally::default(),
        sender,
        calls: JoinSet::new(),
        in_flight: HashMap::new(),
    };
    let mut writing = pin!(write_messages(messages, output));
    let ended = tokio::select! {
        read = client.read_messages(input) => read,
        written = &mut writing => written,
    };
    let StdioClient { tally, sender, mut calls, .. } = client;
    calls.abort_all();
    while calls.join_next().await.is_some() {}
    // With the last sender the writer ends, once everything is written.
    drop(sender);
    let ended = match ended {
        Ok(()) => timeout(GRACE, writing).await.unwrap_or(Ok(())),
        failed => failed,
    };
    match ended {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(TargetError::Stdio(error)),
        _ => Ok(tally.snapshot()),
    }
}

struct StdioClient {
    recorded: Arc<RecordedServer>,
    timer: Timer,
    tally: Tally,
    sender: mpsc::Sender<Vec<u8>>,
    calls: JoinSet<()>,
    /// Cancellations of the requests in flight.
    in_flight: HashMap<Id<'static>, oneshot::Sender<()>>,
}

impl StdioClient {
    async fn read_messages(&mut self, mut input: impl AsyncRead + Unpin) -> io::Result<()> {
        let mut decoder = lines::Decoder::new(LONGEST_LINE);
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = input.read(&mut chunk).await?;
            decoder.feed(&chunk[..read]);
            loop {
                match decoder.next_line() {
                    Ok(Some(line)) => self.take_line(&line).await,
                    Ok(None) => break,
                    Err(error) => {
                        let rejection = Rejection::NotAllowed(match error {
                            lines::LineError::TooLong { .. } => "the line is longer than 4 MiB",
                        });
                        self.refuse(&rejection).await;
                    }
                }
            }
            if read == 0 {
                break;
            }
        }
        if let Some(line) = decoder.finish() {
            self.take_line(&line).await;
        }
        let all_ended = async { while self.calls.join_next().await.is_some() {} };
        // Calls that are still waiting for their recorded time are aborted by the caller.
        let _ = timeout(GRACE, all_ended).await;
        Ok(())
    }

    async fn take_line(&mut self, line: &[u8]) {
        let received = Instant::now();
        let payload = match Payload::parse(line) {
            Ok(payload) => payload,
            Err(error) => return self.refuse(&error.into()).await,
        };
        self.tally.count_messages(&payload, &self.recorded);
        let mut replies = Vec::new();
        self.in_flight.retain(|_, cancel| !cancel.is_closed());
        for message in payload.messages() {
            match message {
                Message::Request(request) => {
                    let (cancel, cancelled) = oneshot::channel();
                    self.in_flight.insert(request.id.clone().into_owned(), cancel);
                    let (notices, answer) = self.reply_to(request, received).unwrap_or_else(|rejection| {
                        (Vec::new(), (received, rejection_message(&rejection, Some(&request.id))))
                    });
                    replies.push(StdioReply { notices, answer, cancelled });
                }
                Message::Notification(_) if message.method() == Some("notifications/cancelled") => {
                    let params = message.params().and_then(|params| serde_json::from_str(params.get()).ok());
                    self.cancel_request(params);
                }
                _ => {}
            }
        }
        if replies.is_empty() {
            return;
        }
        while self.calls.len() >= MOST_CALLS {
            self.calls.join_next().await;
        }
        while self.calls.try_join_next().is_some() {}
        self.calls.spawn(send_replies(replies, payload.is_batch(), self.timer.clone(), self.sender.clone()));
    }

    /// Notifications and the answer of a request, by the rules of its revision.
    fn reply_to(&self, request: &Request<'_>, received: Instant) -> Result<(Vec<TimedBytes>, TimedBytes), Rejection> {
        let outline = ParamsOutline::parse_routing(request.params).unwrap_or_default();
        let is_modern = Era::of(&RequestHeaders::default(), &outline) == Era::Modern;
        if is_modern {
            check_meta(&outline, Revision::MODERN)?;
        }
        let reply = self.recorded.reply_to(request, is_modern);
        self.tally.count_match(reply.closeness);
        let answer = match reply.answer {
            ReplyContent::Message(bytes, _) => bytes,
            ReplyContent::Status(refusal) => refusal_message(&request.id, &refusal),
        };
        let notices = reply.notices.into_iter().map(|(at, bytes)| (received + at, bytes)).collect();
        Ok((notices, (received + reply.at, answer)))
    }

    fn cancel_request(&mut self, params: Option<CancelledParams>) {
        let id = params.and_then(|params| params.request_id);
        if let Some(cancel) = id.and_then(|id| self.in_flight.remove(&id)) {
            // It fails where the request was answered meanwhile.
            let _ = cancel.send(());
        }
    }

    async fn refuse(&self, rejection: &Rejection) {
        // The writer ends only with the connection.
        let _ = self.sender.send(rejection_message(rejection, None)).await;
    }
}

fn rejection_message(rejection: &Rejection, id: Option<&Id<'_>>) -> Vec<u8> {
    let mut body = Vec::new();
    rejection.write_body(id, &mut body);
    body
}

/// A message, and when it goes out.
type TimedBytes = (Instant, Vec<u8>);

/// Messages for one request.
struct StdioReply {
    notices: Vec<TimedBytes>,
    answer: TimedBytes,
    /// Resolves when the client cancels the request, and fails when it can no longer do so.
    cancelled: oneshot::Receiver<()>,
}

impl StdioReply {
    /// Sends the notifications at their times, and returns the answer at its time; `None` where the client cancelled the
    /// request.
    async fn send_notices(self, timer: &Timer, sender: &mpsc::Sender<Vec<u8>>) -> Option<Vec<u8>> {
        let (due, answer) = self.answer;
        let send_all = async {
            for (due, bytes) in self.notices {
                timer.sleep(due.saturating_duration_since(Instant::now())).await;
                sender.send(bytes).await.ok()?;
            }
            timer.sleep(due.saturating_duration_since(Instant::now())).await;
            Some(answer)
        };
        tokio::select! {
            Ok(()) = self.cancelled => None,
            answer = send_all => answer,
        }
    }
}

/// Sends the notifications of a payload's requests at their times, and the answer, or all of a batch as an array at the time
/// of the last.
async fn send_replies(replies: Vec<StdioReply>, is_batch: bool, timer: Timer, sender: mpsc::Sender<Vec<u8>>) {
    let mut calls = JoinSet::new();
    for (number, reply) in replies.into_iter().enumerate() {
        let (timer, sender) = (timer.clone(), sender.clone());
        calls.spawn(async move { reply.send_notices(&timer, &sender).await.map(|answer| (number, answer)) });
    }
    let mut answers: Vec<(usize, Vec<u8>)> = calls.join_all().await.into_iter().flatten().collect();
    answers.sort_unstable_by_key(|(number, _)| *number);
    let answers: Vec<Vec<u8>> = answers.into_iter().map(|(_, answer)| answer).collect();
    if answers.is_empty() {
        return;
    }
    let message = answers.join(&b',');
    let message = if is_batch { [b"[", message.as_slice(), b"]"].concat() } else { message };
    // The writer ends only with the connection.
    let _ = sender.send(message).await;
}

async fn write_messages(mut messages: mpsc::Receiver<Vec<u8>>, mut output: impl AsyncWrite + Unpin) -> io::Result<()> {
    while let Some(message) = messages.recv().await {
        let mut line = Vec::with_capacity(message.len() + 1);
        lines::encode_line(&message, &mut line);
        output.write_all(&line).await?;
        output.flush().await?;
    }
    Ok(())
}
