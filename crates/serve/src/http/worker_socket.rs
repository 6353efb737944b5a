//! Sockets between the processes of a worker group, which are Unix sockets.
//!
//! Windows has none that the standard library can use, so a worker group can't be made there.

#[cfg(not(unix))]
pub(super) use missing::{WorkerListener, connect_worker};
#[cfg(unix)]
pub(super) use unix::{WorkerListener, connect_worker};

#[cfg(unix)]
mod unix {
    use std::io;
    use std::os::unix::net::UnixListener;
    use std::path::Path;

    use tokio::net::UnixStream;

    use crate::http::ServeError;

    /// Socket on which this process takes requests from the other processes of its group.
    pub(in crate::http) struct WorkerListener(UnixListener);

    impl WorkerListener {
        /// Binds the socket. A socket file that a predecessor left is not in use and is replaced.
        pub(in crate::http) fn bind(path: &Path) -> Result<Self, ServeError> {
            let failed = |source| ServeError::WorkerSocket { path: path.to_owned(), source };
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
            let listener = UnixListener::bind(path).map_err(failed)?;
            listener.set_nonblocking(true).map_err(failed)?;
            Ok(Self(listener))
        }

        /// Registers the socket with the reactor of this thread.
        pub(in crate::http) fn register(self) -> io::Result<tokio::net::UnixListener> {
            tokio::net::UnixListener::from_std(self.0)
        }
    }

    /// Connects to the process that listens at `path`.
    pub(in crate::http) async fn connect_worker(path: &Path) -> io::Result<UnixStream> {
        UnixStream::connect(path).await
    }
}

#[cfg(not(unix))]
mod missing {
    use std::convert::Infallible;
    use std::io;
    use std::path::Path;

    use tokio::io::DuplexStream;

    use crate::http::ServeError;

    /// Nothing: the system has no Unix sockets.
    pub(in crate::http) struct WorkerListener(Infallible);

    fn unsupported() -> io::Error {
        let why = "this system has no Unix sockets; serve from one process, with more threads";
        io::Error::new(io::ErrorKind::Unsupported, why)
    }

    impl WorkerListener {
        /// Always an error.
        pub(in crate::http) fn bind(path: &Path) -> Result<Self, ServeError> {
            Err(ServeError::WorkerSocket { path: path.to_owned(), source: unsupported() })
        }

        /// Never called.
        pub(in crate::http) fn register(self) -> io::Result<Self> {
            match self.0 {}
        }

        /// Never called.
        pub(in crate::http) async fn accept(&self) -> io::Result<(DuplexStream, ())> {
            match self.0 {}
        }
    }

    /// Always an error.
    pub(in crate::http) async fn connect_worker(_: &Path) -> io::Result<DuplexStream> {
        Err(unsupported())
    }
}
