//! Listening: one socket a worker, so that the kernel spreads connections and no worker waits for another; one shared
//! socket where the system can't.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};

use super::ServeError;

/// How many connections may wait to be accepted; the kernel caps it.
const BACKLOG: i32 = 4096;

/// Sockets for `workers` workers, and the address that they have in common; `shared_port` with other processes too.
pub(super) fn bind_workers(
    address: SocketAddr,
    shared_port: bool,
    workers: usize,
) -> Result<(Vec<TcpListener>, SocketAddr), ServeError> {
    let failed = |source| ServeError::Listen { address, source };
    if shared_port {
        let first = bind_socket(address, true).map_err(failed)?;
        let bound = first.local_addr().map_err(failed)?;
        let others = (1..workers).map(|_| bind_socket(bound, true));
        let sockets: io::Result<Vec<_>> = std::iter::once(Ok(first)).chain(others).collect();
        return Ok((sockets.map_err(failed)?, bound));
    }
    // Without SO_REUSEPORT first: with it, an address in use by another of our processes would look free.
    let alone = bind_socket(address, false).map_err(failed)?;
    let bound = alone.local_addr().map_err(failed)?;
    if workers == 1 {
        return Ok((vec![alone], bound));
    }
    // Another process could take the port between these two lines; then the bind fails, and that is said.
    drop(alone);
    let sockets: io::Result<Vec<_>> = (0..workers).map(|_| bind_socket(bound, true)).collect();
    let sockets = match sockets {
        Ok(sockets) => sockets,
        Err(_) => shared_socket(bound, workers).map_err(failed)?,
    };
    Ok((sockets, bound))
}

/// Binds the socket on which this process takes requests from the other processes of its group. A socket file that a predecessor
/// left is not in use and is replaced.
pub(super) fn bind_family(path: &Path) -> Result<UnixListener, ServeError> {
    let failed = |source| ServeError::WorkerSocket { path: path.to_owned(), source };
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// One socket, accepted from by all.
fn shared_socket(address: SocketAddr, workers: usize) -> io::Result<Vec<TcpListener>> {
    let one = bind_socket(address, false)?;
    let mut sockets = Vec::with_capacity(workers);
    for _ in 1..workers {
        sockets.push(one.try_clone()?);
    }
    sockets.push(one);
    Ok(sockets)
}

fn bind_socket(address: SocketAddr, shares_port: bool) -> io::Result<TcpListener> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket: OwnedFd =
        net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if shares_port {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    net::bind(&socket, &address)?;
    net::listen(&socket, BACKLOG)?;
    Ok(TcpListener::from(socket))
}
