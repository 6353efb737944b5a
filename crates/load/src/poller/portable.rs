//! mio: kqueue(2) on macOS, AFD on Windows.

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
#[cfg(unix)]
use std::os::fd::{AsFd, AsRawFd as _};
use std::time::Duration;

use mio::{Interest, Token};

/// A TCP socket that doesn't block.
pub(crate) type Socket = mio::net::TcpStream;

/// Whether a read of fewer bytes than asked for has emptied a socket, so that the next event tells of more. On Windows, mio
/// waits for more only after a read that would block.
pub(crate) const SHORT_READ_EMPTIES: bool = cfg!(unix);

// A token holds the number of a user and of its connection, and a bit.
const _: () = assert!(usize::BITS == 64, "the load engine needs a system of 64 bits");

/// Waits for sockets and pipes.
pub(crate) struct Poller(mio::Poll);

/// Events of one wait.
pub(crate) struct Events(mio::Events);

/// Changes that an event tells of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Readiness {
    readable: bool,
    writable: bool,
    closed: bool,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        mio::Poll::new().map(Self)
    }

    /// Begins to connect: events with `number` tell when there is something new.
    pub(crate) fn connect(&self, address: SocketAddr, number: u64) -> io::Result<Socket> {
        let mut socket = Socket::connect(address)?;
        socket.set_nodelay(true)?;
        self.0.registry().register(&mut socket, token(number), Interest::READABLE | Interest::WRITABLE)?;
        Ok(socket)
    }

    /// Events with `number` tell when the pipe has something to read.
    #[cfg(unix)]
    pub(crate) fn add_reader(&self, pipe: impl AsFd, number: u64) -> io::Result<()> {
        self.add(pipe, number, Interest::READABLE)
    }

    /// Events with `number` tell when the pipe takes more.
    #[cfg(unix)]
    pub(crate) fn add_writer(&self, pipe: impl AsFd, number: u64) -> io::Result<()> {
        self.add(pipe, number, Interest::WRITABLE)
    }

    #[cfg(unix)]
    fn add(&self, pipe: impl AsFd, number: u64, interest: Interest) -> io::Result<()> {
        let descriptor = pipe.as_fd().as_raw_fd();
        self.0.registry().register(&mut mio::unix::SourceFd(&descriptor), token(number), interest)
    }

    /// Waits for events, or so many nanoseconds.
    pub(crate) fn wait(&mut self, events: &mut Events, longest_ns: u64) -> io::Result<()> {
        match self.0.poll(&mut events.0, Some(Duration::from_nanos(longest_ns))) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }
}

fn token(number: u64) -> Token {
    Token(number as usize)
}

impl Events {
    pub(crate) fn new(most: usize) -> Self {
        Self(mio::Events::with_capacity(most))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of each event, and what it tells of.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Readiness)> {
        self.0.iter().map(|event| {
            let readiness = Readiness {
                readable: event.is_readable(),
                writable: event.is_writable(),
                closed: event.is_read_closed() || event.is_write_closed() || event.is_error(),
            };
            (event.token().0 as u64, readiness)
        })
    }
}

impl Readiness {
    /// As if there were something to read.
    pub(crate) const UNREAD: Self = Self { readable: true, writable: false, closed: true };

    pub(crate) fn is_readable(self) -> bool {
        self.readable
    }

    pub(crate) fn is_writable(self) -> bool {
        self.writable
    }

    /// Whether the peer has closed its side, or the connection failed.
    pub(crate) fn is_closed(self) -> bool {
        self.closed
    }
}

/// Reads bytes that have arrived.
pub(crate) fn receive(mut socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    socket.read(buffer)
}

/// Sends the bytes that the socket takes.
pub(crate) fn send(mut socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
    socket.write(bytes)
}
