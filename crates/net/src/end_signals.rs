//! Requests of the system and of the user that this process ends.

use std::future::Future;
use std::io;

/// Completes when a signal asks this process to end: SIGINT, SIGTERM or SIGHUP.
#[cfg(unix)]
pub(crate) fn asked_to_end() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => (),
            _ = terminate.recv() => (),
            _ = hangup.recv() => (),
        }
    })
}

/// Completes when the console asks this process to end: Ctrl-C, Ctrl-Break, or the close of its window.
#[cfg(windows)]
pub(crate) fn asked_to_end() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close};
    let (mut interrupt, mut stop, mut close) = (ctrl_c()?, ctrl_break()?, ctrl_close()?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => (),
            _ = stop.recv() => (),
            _ = close.recv() => (),
        }
    })
}
