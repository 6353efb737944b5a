//! Channel of a user's requests: a socket, plain or with TLS, or a program's pipes. Nothing here blocks.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ClientConfig;

use crate::outcome::ErrorKind;
use crate::plan::LoadTarget;
use crate::poller::{self, Poller, SHORT_READ_EMPTIES, Socket};
use crate::program_pipes::ProgramPipes;
use crate::system_limits::{acknowledge_now, is_exhausted};
use crate::tls::TlsSocket;

/// A connection, or a process.
#[derive(Debug)]
pub(crate) enum TargetLink {
    Tcp(Socket),
    Tls(Box<TlsSocket>),
    Process(Box<ProgramPipes>),
}

impl TargetLink {
    /// Begins to connect: the event for `number` tells when there is something new.
    pub(crate) fn connect(
        address: SocketAddr,
        tls: Option<(&Arc<ClientConfig>, &str)>,
        poller: &Poller,
        number: u64,
    ) -> io::Result<Self> {
        let socket = poller.connect(address, number)?;
        Ok(match tls {
            None => Self::Tcp(socket),
            Some((config, host)) => Self::Tls(Box::new(TlsSocket::new(socket, config, host)?)),
        })
    }

    /// Starts a program, in a process group of its own.
    pub(crate) fn spawn_program(target: &LoadTarget, poller: &Poller, number: u64) -> io::Result<Self> {
        ProgramPipes::spawn(target, poller, number).map(|process| Self::Process(Box::new(process)))
    }

    /// Whether the connection is there: `None` while it isn't known.
    pub(crate) fn is_connected(&mut self, writable: bool) -> io::Result<Option<()>> {
        let socket = match &*self {
            Self::Tcp(socket) => socket,
            Self::Tls(tls) => &tls.socket,
            Self::Process(_) => return Ok(Some(())),
        };
        if let Some(error) = socket.take_error()? {
            return Err(error);
        }
        if !writable {
            return Ok(None);
        }
        match self {
            Self::Tls(tls) => Ok(tls.continue_handshake()?.then_some(())),
            _ => Ok(Some(())),
        }
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => poller::receive(socket, buffer),
            Self::Tls(tls) => tls.read(buffer),
            Self::Process(process) => process.read(buffer),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => poller::send(socket, bytes),
            Self::Tls(tls) => tls.write(bytes),
            Self::Process(process) => process.write(bytes),
        }
    }

    /// Sends what TLS still has.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if let Self::Tls(tls) = self { tls.flush() } else { Ok(()) }
    }

    /// Whether a read of fewer bytes than asked for has emptied it: then the next event tells of more.
    pub(crate) fn short_read_is_last(&self) -> bool {
        SHORT_READ_EMPTIES && matches!(self, Self::Tcp(_))
    }

    /// Acknowledges what came at once, this time: the kernel takes the wish back by itself.
    pub(crate) fn acknowledge_now(&self) {
        match self {
            Self::Tcp(socket) => acknowledge_now(socket),
            Self::Tls(tls) => acknowledge_now(&tls.socket),
            Self::Process(_) => {}
        }
    }
}

/// Kind of error that a failed attempt to connect counts as.
pub(crate) fn opening_error(error: &io::Error) -> ErrorKind {
    if is_exhausted(error) { ErrorKind::Exhausted } else { ErrorKind::Connect }
}
