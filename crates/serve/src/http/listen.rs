//! Listening: one socket a worker, so that the kernel spreads connections and no worker waits for another; one shared
//! socket where the system can't. Only Linux spreads connections over the sockets of a port.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

use super::ServeError;

/// How many connections may wait to be accepted; the kernel caps it.
const BACKLOG: i32 = 4096;

/// Whether the system spreads connections over the sockets that share a port.
const SPREADS_CONNECTIONS: bool = cfg!(target_os = "linux");

/// Sockets for `workers` workers, and the address that they have in common; `shared_port` with other processes too.
pub(super) fn bind_workers(
    address: SocketAddr,
    shared_port: bool,
    workers: usize,
) -> Result<(Vec<TcpListener>, SocketAddr), ServeError> {
    let failed = |source| ServeError::Listen { address, source };
    if shared_port && !cfg!(unix) {
        return Err(ServeError::Option {
            option: "shared_port",
            value: "true".to_owned(),
            reason: "processes can't share a port on this system; serve from one process, with more threads",
        });
    }
    if shared_port {
        let first = bind_socket(address, true).map_err(failed)?;
        let bound = first.local_addr().map_err(failed)?;
        if !SPREADS_CONNECTIONS {
            return Ok((share_socket(first, workers).map_err(failed)?, bound));
        }
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
    if !SPREADS_CONNECTIONS {
        return Ok((share_socket(alone, workers).map_err(failed)?, bound));
    }
    // Another process could take the port between these two lines; then the bind fails, and that is said.
    drop(alone);
    let sockets: io::Result<Vec<_>> = (0..workers).map(|_| bind_socket(bound, true)).collect();
    let sockets = match sockets {
        Ok(sockets) => sockets,
        Err(_) => bind_socket(bound, false).and_then(|one| share_socket(one, workers)).map_err(failed)?,
    };
    Ok((sockets, bound))
}

/// One socket, accepted from by all.
fn share_socket(one: TcpListener, workers: usize) -> io::Result<Vec<TcpListener>> {
    let mut sockets = Vec::with_capacity(workers);
    for _ in 1..workers {
        sockets.push(one.try_clone()?);
    }
    sockets.push(one);
    Ok(sockets)
}

fn bind_socket(address: SocketAddr, shares_port: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    // With this option, Windows would let a second program take the port.
    #[cfg(not(windows))]
    socket.set_reuse_address(true)?;
    if shares_port {
        #[cfg(unix)]
        socket.set_reuse_port(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
