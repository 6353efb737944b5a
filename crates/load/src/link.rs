//! Channel of a user's requests: a socket, plain or with TLS, or a program's pipes. Nothing here blocks.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use rustls::ClientConfig;

use crate::outcome::ErrorKind;
use crate::plan::LoadTarget;
use crate::tls::TlsSocket;

/// A connection, or a process.
#[derive(Debug)]
pub(crate) enum TargetLink {
    Tcp(TcpStream),
    Tls(Box<TlsSocket>),
    Process(Box<ProgramPipes>),
}

/// A program that speaks over its pipes.
#[derive(Debug)]
pub(crate) struct ProgramPipes {
    /// Always there, but while it is handed over.
    child: Option<Child>,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
}

/// The bit of an event's number that says that it is about a program's standard input.
pub(crate) const STDIN_BIT: u64 = 1 << 63;

impl TargetLink {
    /// Begins to connect: the event for `number` tells when there is something new.
    pub(crate) fn connect(
        address: SocketAddr,
        tls: Option<(&Arc<ClientConfig>, &str)>,
        epoll: impl AsFd,
        number: u64,
    ) -> io::Result<Self> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let events = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        epoll::add(epoll, &socket, epoll::EventData::new_u64(number), events)?;
        let socket = TcpStream::from(socket);
        Ok(match tls {
            None => Self::Tcp(socket),
            Some((config, host)) => Self::Tls(Box::new(TlsSocket::new(socket, config, host)?)),
        })
    }

    /// Starts a program, in a process group of its own.
    pub(crate) fn spawn_program(target: &LoadTarget, epoll: impl AsFd, number: u64) -> io::Result<Self> {
        let LoadTarget::Stdio { command, env, cwd } = target else { return Err(io::ErrorKind::InvalidInput.into()) };
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).envs(env).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        if let Some(cwd) = cwd {
            command.current_dir(cwd);
        }
        let mut child = command.spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let process = ProgramPipes { child: Some(child), stdin: Some(stdin), stdout };
        rustix::io::ioctl_fionbio(&process.stdout, true)?;
        let events = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        epoll::add(&epoll, &process.stdout, epoll::EventData::new_u64(number), events)?;
        if let Some(stdin) = &process.stdin {
            rustix::io::ioctl_fionbio(stdin, true)?;
            let events = epoll::EventFlags::OUT | epoll::EventFlags::ET;
            epoll::add(&epoll, stdin, epoll::EventData::new_u64(number | STDIN_BIT), events)?;
        }
        Ok(Self::Process(Box::new(process)))
    }

    /// Whether the connection is there: `None` while it isn't known.
    pub(crate) fn is_connected(&mut self, writable: bool) -> io::Result<Option<()>> {
        let socket = match &*self {
            Self::Tcp(socket) => socket,
            Self::Tls(tls) => &tls.socket,
            Self::Process(_) => return Ok(Some(())),
        };
        sockopt::socket_error(socket)?.map_err(io::Error::from)?;
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
            // Past the C library, whose wrappers are points of cancellation and cost a few per cent of a call.
            Self::Tcp(socket) => Ok(rustix::net::recv(&*socket, buffer, RecvFlags::empty())?.0),
            Self::Tls(tls) => tls.read(buffer),
            Self::Process(process) => process.stdout.read(buffer),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => Ok(rustix::net::send(&*socket, bytes, SendFlags::NOSIGNAL)?),
            Self::Tls(tls) => tls.write(bytes),
            Self::Process(process) => match &mut process.stdin {
                Some(stdin) => stdin.write(bytes),
                None => Err(io::ErrorKind::BrokenPipe.into()),
            },
        }
    }

    /// Sends what TLS still has.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if let Self::Tls(tls) = self { tls.flush() } else { Ok(()) }
    }

    /// Whether a read of fewer bytes than asked for has emptied it: then the next event tells of more (epoll(7), Q9).
    pub(crate) fn short_read_is_last(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    /// Acknowledges what came at once, this time: the kernel takes the wish back by itself.
    pub(crate) fn acknowledge_now(&self) {
        let socket = match self {
            Self::Tcp(socket) => socket,
            Self::Tls(tls) => &tls.socket,
            Self::Process(_) => return,
        };
        // An acknowledgement is a wish; a dying socket says so when it is read.
        let _ = sockopt::set_tcp_quickack(socket, true);
    }
}

impl ProgramPipes {
    /// Closes its input, which asks it to end, and hands it over.
    pub(crate) fn ask_to_end(mut self) -> Option<Child> {
        self.stdin = None;
        self.child.take()
    }
}

impl Drop for ProgramPipes {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            end_program(child);
        }
    }
}

/// Whether a program still runs. The descendants of one that has ended are killed before its process id is released:
/// until then, the id of its group belongs to nobody else.
pub(crate) fn is_running(child: &mut Child) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let waited = Pid::from_raw(child.id().cast_signed()).map(|pid| waitid(WaitId::Pid(pid), options));
    if let Some(Ok(None)) = waited {
        return true;
    }
    end_program(child);
    false
}

/// Ends a program that nobody has waited for, and its descendants.
pub(crate) fn end_program(child: &mut Child) {
    if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
        // An empty group is no error.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

/// Kind of error that a failed attempt to connect counts as.
pub(crate) fn opening_error(error: &io::Error) -> ErrorKind {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE | Errno::NFILE | Errno::ADDRNOTAVAIL | Errno::NOBUFS | Errno::NOMEM | Errno::AGAIN) => {
            ErrorKind::Exhausted
        }
        _ => ErrorKind::Connect,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn descendants_of_a_program_that_ends_by_itself_are_killed() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 7777 & echo ready"]).process_group(0).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        while is_running(&mut child) {
            std::thread::yield_now();
        }
        // The descendant holds the pipe open as long as it lives.
        let mut text = String::new();
        stdout.read_to_string(&mut text).unwrap();
        assert_eq!(text, "ready\n");
    }
}
