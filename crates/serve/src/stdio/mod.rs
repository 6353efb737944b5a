//! stdio: one client on a pair of byte streams, one JSON text a line.
//!
//! Design constraints:
//! - Requests run concurrently. Messages keep their order: all messages of a handler come before its reply.
//! - Memory is bounded: by the longest line, the requests in flight, the bytes of those that wait for their turn, and the
//!   bytes that wait for a slow reader. While the last are too many nothing is read, and a handler that speaks is told so.
//!   Too many requests never keep us from reading: what ends them (answers, cancellations, the end) comes the same way.
//! - The end of the input is the signal to leave: requests in flight may finish within a limit, subscriptions end at once.
//! - A request with the metadata of 2026-07-28 is served by that revision, on its own. `initialize` begins a legacy
//!   session; all that has no such metadata belongs to it. Messages that arrive before the answer to `initialize` wait for it.
//!
//! Nothing but messages is ever written to the output. Deliberately absent: time limits on a reader that pauses. Only its
//! own server waits for it.

mod answer;
mod client;
mod connection;
mod outbox;
mod waiting;

use std::fs::File;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use mcpace_wire::lines;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio_util::sync::CancellationToken;

use self::connection::StdioConnection;
use self::outbox::Outbox;
use crate::{Principal, Server, TransportKind};

/// Bytes asked of the input at once.
const CHUNK: usize = 64 * 1024;

/// The limits of a connection.
#[derive(Clone, Debug)]
pub struct Options {
    /// The longest line taken, in bytes. A longer one is answered with an error and passed over.
    pub line_limit: usize,
    /// Levels of nesting in a message. A deeper one is answered with an error.
    pub nesting_limit: usize,
    /// Requests in flight at once. More wait for their turn, in order.
    pub call_limit: usize,
    /// Bytes of requests that may wait for their turn. More are answered with an error.
    pub waiting_limit: usize,
    /// Bytes that may wait to be written. At the limit nothing is read, and handlers that speak are refused.
    pub queue_limit: usize,
    /// For requests in flight and unwritten replies, from the end of the input on.
    pub drain_limit: Duration,
    /// Whether to tell how long the layers took of requests that don't ask.
    pub timed: bool,
    /// Principal of the client, if the program that serves it knows it, such as for a client in the same process.
    pub principal: Option<Principal>,
    /// Transport that guards see for the requests.
    pub transport: TransportKind,
    /// Cancel it to stop: nothing more is read, requests in flight finish as after the end of the input. Call
    /// [`Server::close`] first where subscriptions should end with their result.
    pub stop: CancellationToken,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            line_limit: 4 * 1024 * 1024,
            nesting_limit: 128,
            call_limit: 512,
            waiting_limit: 8 * 1024 * 1024,
            queue_limit: 8 * 1024 * 1024,
            drain_limit: Duration::from_secs(5),
            timed: false,
            principal: None,
            transport: TransportKind::Stdio,
            stop: CancellationToken::new(),
        }
    }
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The input ended or [`Options::stop`] was cancelled, and every reply was written.
    Finished,
    /// As [`End::Finished`], but the time limit cut off requests in flight or replies.
    CutOff,
    /// The client no longer takes output.
    OutputClosed,
}

/// Why a connection could not go on. The environment's fault.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// Reading failed.
    #[error("could not read from the client: {0}")]
    Read(#[source] io::Error),
    /// Writing failed, for another reason than that the client closed its end.
    #[error("could not write to the client: {0}")]
    Write(#[source] io::Error),
    /// The system refuses a runtime.
    #[error("could not start a runtime: {0}")]
    Runtime(#[source] io::Error),
}

/// Serves this process's stdin and stdout until the client leaves; blocks. Never waits for a read or write that the system
/// holds up, so the process can exit as soon as this returns.
///
/// # Errors
/// [`StdioError`].
pub fn run(server: Server, options: Options) -> Result<End, StdioError> {
    run_until_end(serve(server, options))
}

/// [`run`], on other files than this process's stdin and stdout.
///
/// # Errors
/// [`StdioError`].
pub fn run_files(server: Server, options: Options, input: File, output: File) -> Result<End, StdioError> {
    let (input, output) = (tokio::fs::File::from_std(input), tokio::fs::File::from_std(output));
    run_until_end(serve_streams(server, options, input, output))
}

fn run_until_end(serving: impl Future<Output = Result<End, StdioError>>) -> Result<End, StdioError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(StdioError::Runtime)?;
    let end = runtime.block_on(serving);
    runtime.shutdown_background();
    end
}

/// Serves this process's stdin and stdout until the client leaves. A runtime that is dropped afterwards waits for a read of
/// stdin that is still under way: shut it down in the background, as [`run`] does.
///
/// # Errors
/// [`StdioError`].
pub async fn serve(server: Server, options: Options) -> Result<End, StdioError> {
    serve_streams(server, options, tokio::io::stdin(), tokio::io::stdout()).await
}

/// Serves one client on any pair of streams until it leaves.
///
/// # Errors
/// [`StdioError`].
pub async fn serve_streams(
    server: Server,
    options: Options,
    input: impl AsyncRead,
    output: impl AsyncWrite,
) -> Result<End, StdioError> {
    let outbox = Outbox::new(options.queue_limit);
    let mut connection = StdioConnection::new(server, &options, outbox.clone());
    let mut output = std::pin::pin!(output);
    let mut writing = std::pin::pin!(outbox.write_to(&mut output));
    let read = {
        let mut taking = std::pin::pin!(take_all(&mut connection, &options, input));
        tokio::select! {
            read = &mut taking => Ok(read),
            written = &mut writing => Err(written),
        }
    };
    let read = match read {
        Ok(read) => read,
        Err(written) => {
            connection.end_connection();
            return ended_by_output(written);
        }
    };
    connection.hear_no_more();
    let drained = tokio::time::timeout(options.drain_limit, async {
        let finished = async {
            connection.join_finished().await;
            outbox.close();
        };
        let ((), written) = tokio::join!(finished, &mut writing);
        written
    });
    let drained = drained.await;
    connection.end_connection();
    match drained {
        _ if read.is_err() => read.map(|()| End::Finished),
        Ok(Ok(())) => Ok(End::Finished),
        Ok(written) => ended_by_output(written),
        Err(_) => Ok(End::CutOff),
    }
}

/// Takes lines until the input ends, then what is left of them.
async fn take_all(
    connection: &mut StdioConnection,
    options: &Options,
    input: impl AsyncRead,
) -> Result<(), StdioError> {
    let mut input = std::pin::pin!(input);
    let mut decoder = lines::Decoder::new(options.line_limit);
    let mut chunk = vec![0; CHUNK];
    loop {
        loop {
            tokio::select! {
                biased;
                () = options.stop.cancelled() => return Ok(()),
                () = connection.wait_for_room() => {}
            }
            match decoder.next_line() {
                Ok(Some(line)) => connection.take_body(Bytes::from(line)),
                Ok(None) => break,
                Err(error) => connection.refuse_line(&error),
            }
        }
        let read = tokio::select! {
            biased;
            () = options.stop.cancelled() => return Ok(()),
            () = connection.wait_for_slot() => continue,
            read = input.read(&mut chunk) => read,
        };
        match read.map_err(StdioError::Read)? {
            0 => break,
            length => decoder.feed(&chunk[..length]),
        }
    }
    if let Some(line) = decoder.finish() {
        connection.take_body(Bytes::from(line));
    }
    Ok(())
}

fn ended_by_output(written: io::Result<()>) -> Result<End, StdioError> {
    match written {
        Ok(()) => Ok(End::OutputClosed),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(End::OutputClosed),
        Err(error) => Err(StdioError::Write(error)),
    }
}
