//! epoll(7), past the C library, whose wrappers are points of cancellation and cost a few per cent of a call.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;

use nix::sys::epoll::{Epoll, EpollEvent, EpollTimeout};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use rustix::time::Timespec;

const SECOND_NS: u64 = 1_000_000_000;

/// A TCP socket that doesn't block.
pub(crate) type Socket = TcpStream;

/// Whether a read of fewer bytes than asked for has emptied a socket: then the next event tells of more (epoll(7), Q9).
pub(crate) const SHORT_READ_EMPTIES: bool = true;

/// Waits for sockets and pipes.
pub(crate) struct Poller {
    epoll: Epoll,
    /// Whether epoll_pwait2(2) is missing: Linux has it since 5.11, and filters of system calls may not know it.
    is_old: bool,
}

/// Events of one wait.
pub(crate) struct Events(Vec<epoll::Event>);

/// Changes that an event tells of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Readiness(EventFlags);

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { epoll: Epoll(epoll::create(epoll::CreateFlags::CLOEXEC)?), is_old: false })
    }

    /// Begins to connect: events with `number` tell when there is something new.
    pub(crate) fn connect(&self, address: SocketAddr, number: u64) -> io::Result<Socket> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        self.add(&socket, number, EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP)?;
        Ok(TcpStream::from(socket))
    }

    /// Events with `number` tell when the pipe has something to read.
    pub(crate) fn add_reader(&self, pipe: impl AsFd, number: u64) -> io::Result<()> {
        self.add(pipe, number, EventFlags::IN | EventFlags::RDHUP)
    }

    /// Events with `number` tell when the pipe takes more.
    pub(crate) fn add_writer(&self, pipe: impl AsFd, number: u64) -> io::Result<()> {
        self.add(pipe, number, EventFlags::OUT)
    }

    fn add(&self, descriptor: impl AsFd, number: u64, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll.0, descriptor, epoll::EventData::new_u64(number), flags | EventFlags::ET)?)
    }

    /// Waits for events, or so many nanoseconds.
    pub(crate) fn wait(&mut self, events: &mut Events, longest_ns: u64) -> io::Result<()> {
        let length = Timespec {
            tv_sec: (longest_ns / SECOND_NS).cast_signed(),
            tv_nsec: (longest_ns % SECOND_NS).cast_signed(),
        };
        events.0.clear();
        if !self.is_old {
            match epoll::wait(&self.epoll.0, spare_capacity(&mut events.0), Some(&length)) {
                Ok(_) | Err(Errno::INTR) => return Ok(()),
                Err(Errno::NOSYS | Errno::PERM) => self.is_old = true,
                Err(error) => return Err(error.into()),
            }
        }
        self.wait_by_poll(events, &length)
    }

    /// Waits by ppoll(2), which has nanoseconds too, and takes the events by a second system call.
    fn wait_by_poll(&self, events: &mut Events, length: &Timespec) -> io::Result<()> {
        match poll(&mut [PollFd::new(&self.epoll.0, PollFlags::IN)], Some(length)) {
            Ok(0) | Err(Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut found = vec![EpollEvent::empty(); events.0.capacity()];
        let count = self.epoll.wait(&mut found, EpollTimeout::ZERO)?;
        events.0.extend(found[..count].iter().map(|event| epoll::Event {
            flags: EventFlags::from_bits_retain(event.events().bits().cast_unsigned()),
            data: epoll::EventData::new_u64(event.data()),
        }));
        Ok(())
    }
}

impl Events {
    pub(crate) fn new(most: usize) -> Self {
        Self(Vec::with_capacity(most))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of each event, and what it tells of.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Readiness)> {
        self.0.iter().map(|event| (event.data.u64(), Readiness(event.flags)))
    }
}

impl Readiness {
    /// As if there were something to read.
    pub(crate) const UNREAD: Self = Self(EventFlags::IN.union(EventFlags::RDHUP));

    pub(crate) fn is_readable(self) -> bool {
        self.0.contains(EventFlags::IN)
    }

    pub(crate) fn is_writable(self) -> bool {
        self.0.contains(EventFlags::OUT)
    }

    /// Whether the peer has closed its side, or the connection failed.
    pub(crate) fn is_closed(self) -> bool {
        self.0.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR)
    }
}

/// Reads bytes that have arrived.
pub(crate) fn receive(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::net::recv(socket, buffer, RecvFlags::empty())?.0)
}

/// Sends the bytes that the socket takes.
pub(crate) fn send(socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::net::send(socket, bytes, SendFlags::NOSIGNAL)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_epoll_pwait2_gives_the_same_events() {
        for is_old in [false, true] {
            let mut poller = Poller { is_old, ..Poller::new().unwrap() };
            let mut events = Events::new(8);
            let (reader, writer) = rustix::pipe::pipe().unwrap();
            poller.add_reader(&reader, 7).unwrap();
            poller.wait(&mut events, 1_000).unwrap();
            assert!(events.is_empty());
            rustix::io::write(&writer, b"a").unwrap();
            poller.wait(&mut events, SECOND_NS).unwrap();
            let found: Vec<_> = events.iter().map(|(number, readiness)| (number, readiness.is_readable())).collect();
            assert_eq!((found, poller.is_old), (vec![(7, true)], is_old));
            // An event comes once, until there is more.
            poller.wait(&mut events, 1_000).unwrap();
            assert!(events.is_empty());
        }
    }
}
