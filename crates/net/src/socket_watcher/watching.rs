//! One look after another at the connections of processes.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpace_record::{EventKind, EvidenceSource, Nanos, SocketCloser, SocketId, SocketTraffic, TcpInfo};

use crate::descendants::watched_pids;
use crate::sampling_thread::Pace;
use crate::socket_diagnostics::{DestroyedSockets, SocketDiagnostics, SocketQuery, TcpSocket, TcpState};
use crate::{Sink, monotonic_now};

/// How often new processes are looked for.
const SEARCH_PERIOD: Duration = Duration::from_millis(100);

/// Processes that are watched, descriptors of one process that are read, and connections whose data is read at one look.
const MOST_PROCESSES: usize = 16;
const MOST_DESCRIPTORS: usize = 1024;
const MOST_READ: usize = 64;

/// Connections that are told in all, and short ones that wait for a process that reaches the same address.
const MOST_SOCKETS: u64 = 500_000;
const MOST_SHORT: usize = 10_000;

/// Looks after which a descriptor is looked up again that was no connection, each time twice as many.
const LAST_RETRY: u32 = 32;

/// The addresses of the two ends: here and there.
type Ends = (SocketAddr, SocketAddr);

struct Watching {
    sink: Arc<Sink>,
    root: u32,
    /// Ports of loopback and addresses whose connections are left out.
    ignored: HashSet<SocketAddr>,
    diagnostics: SocketDiagnostics,
    destroyed: Option<DestroyedSockets>,
    pids: Vec<u32>,
    searched: Option<Instant>,
    /// The sockets of the processes, by inode.
    sockets: HashMap<u32, Known>,
    /// The inodes of connections over TCP.
    inodes: HashMap<Ends, u32>,
    /// Connections that ended before the kernel destroyed them.
    ended: HashSet<Ends>,
    listening: HashSet<u16>,
    /// Destinations that a process was seen to reach.
    reached: HashSet<SocketAddr>,
    /// Short connections to other destinations.
    short: Vec<ShortConnection>,
    told: u64,
    /// Whether the kernel could not tell of all connections that ended.
    lost_some: bool,
    last: Option<Nanos>,
}

/// A socket of a process.
enum Known {
    Connection(Box<Connection>),
    /// No connection that the process made; looked up again after so many looks, of so many.
    Other {
        left: u32,
        of: u32,
    },
}

struct Connection {
    id: SocketId,
    /// `None` for a UNIX socket.
    tcp: Option<(Ends, SocketQuery)>,
    established: bool,
    by: Option<SocketCloser>,
    info: Option<TcpInfo>,
    traffic: SocketTraffic,
}

/// A connection that began and ended between two looks.
struct ShortConnection {
    absent: Option<Nanos>,
    at: Nanos,
    socket: TcpSocket,
    by: Option<SocketCloser>,
}

/// Watches until `pace` ends it.
pub(super) fn watch_until_ended(sink: Arc<Sink>, root: u32, ignored: &[SocketAddr], mut pace: Pace) {
    let missing = |reason: &str| {
        let reason = reason.to_owned();
        sink.note(EventKind::SourceMissing { source: EvidenceSource::Sockets, pid: None, reason });
    };
    let Some(diagnostics) = SocketDiagnostics::open_channel() else {
        missing("the kernel offers no socket diagnostics (NETLINK_SOCK_DIAG)");
        return;
    };
    if let Err(error) = diagnostics.list_sockets() {
        missing(&format!("the kernel lists no sockets: {error}"));
        return;
    }
    let destroyed = DestroyedSockets::open_channel();
    if destroyed.is_none() {
        missing(
            "the kernel does not tell of connections that end: those that are open for less than a period are missing",
        );
    }
    let mut watching = Watching {
        sink: Arc::clone(&sink),
        root,
        ignored: ignored.iter().copied().collect(),
        diagnostics,
        destroyed,
        pids: Vec::new(),
        searched: None,
        sockets: HashMap::new(),
        inodes: HashMap::new(),
        ended: HashSet::new(),
        listening: HashSet::new(),
        reached: HashSet::new(),
        short: Vec::new(),
        told: 0,
        lost_some: false,
        last: None,
    };
    loop {
        let began = Instant::now();
        watching.look();
        if !pace.await_next(began) {
            break;
        }
    }
    watching.look();
    if watching.lost_some {
        missing(
            "connections ended faster than they could be read: some that were open for less than a period are missing",
        );
    }
    if watching.told >= MOST_SOCKETS {
        missing(&format!("more than {MOST_SOCKETS} connections were made; the later ones are left out"));
    }
}

impl Watching {
    fn look(&mut self) {
        let now = Instant::now();
        if self.searched.is_none_or(|searched| now.duration_since(searched) >= SEARCH_PERIOD) {
            self.searched = Some(now);
            self.pids = watched_pids(self.root, MOST_PROCESSES);
        }
        let at = monotonic_now();
        let descriptors = self.read_descriptors();
        self.add_new_sockets(at, &descriptors);
        self.read_traffic(at);
        self.note_destroyed();
        self.note_closed(at, &descriptors);
        self.last = Some(at);
    }

    /// The inodes of the processes' sockets, each with the process.
    fn read_descriptors(&self) -> HashMap<u32, u32> {
        let mut inodes = HashMap::new();
        for pid in &self.pids {
            // A process that has ended, or that belongs to another user, has no descriptors to read.
            let Ok(folder) = fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
            for descriptor in folder.flatten().take(MOST_DESCRIPTORS) {
                let Ok(target) = fs::read_link(descriptor.path()) else { continue };
                let name = target.to_str().and_then(|target| target.strip_prefix("socket:[")?.strip_suffix(']'));
                if let Some(inode) = name.and_then(|inode| inode.parse().ok()) {
                    inodes.entry(inode).or_insert(*pid);
                }
            }
        }
        inodes
    }

    fn add_new_sockets(&mut self, at: Nanos, descriptors: &HashMap<u32, u32>) {
        let mut due: Vec<(u32, u32, u32)> = Vec::new();
        for (inode, pid) in descriptors {
            match self.sockets.get_mut(inode) {
                None => due.push((*inode, *pid, 1)),
                Some(Known::Other { left: 1, of }) if *of < LAST_RETRY => due.push((*inode, *pid, *of * 2)),
                Some(Known::Other { left, .. }) => *left = left.saturating_sub(1),
                Some(Known::Connection(_)) => {}
            }
        }
        if due.is_empty() || self.told >= MOST_SOCKETS {
            return;
        }
        // A list that cannot be read now is read at the next look.
        let Ok(listed) = self.diagnostics.list_sockets() else { return };
        self.listening =
            listed.iter().filter(|socket| is_listening(socket)).map(|socket| socket.local.port()).collect();
        let by_inode: HashMap<u32, &TcpSocket> = listed.iter().map(|socket| (socket.inode, socket)).collect();
        for (inode, pid, next_retry) in due {
            let known = match by_inode.get(&inode) {
                Some(socket) if self.is_own_connection(socket) => Some(self.open_tcp(at, inode, pid, socket)),
                // A connection that it accepted, or a port at which it listens.
                Some(_) => None,
                None => self.open_unix(at, pid, inode),
            };
            let known = known.map_or(Known::Other { left: next_retry, of: next_retry }, |connection| {
                Known::Connection(Box::new(connection))
            });
            self.sockets.insert(inode, known);
        }
    }

    fn is_own_connection(&self, socket: &TcpSocket) -> bool {
        let is_open = !matches!(socket.state, TcpState::Listening | TcpState::Closed);
        is_open && self.is_outgoing(socket)
    }

    fn is_outgoing(&self, socket: &TcpSocket) -> bool {
        !self.listening.contains(&socket.local.port()) && !self.ignored.contains(&plain_address(socket.peer))
    }

    fn open_tcp(&mut self, at: Nanos, inode: u32, pid: u32, socket: &TcpSocket) -> Connection {
        let ends = (socket.local, socket.peer);
        let id = self.note_opened(at, Some(pid), plain_address(socket.peer).to_string(), self.last);
        self.inodes.insert(ends, inode);
        self.ended.remove(&ends);
        if self.reached.insert(socket.peer) {
            let (now_known, others) = self.short.drain(..).partition(|short| short.socket.peer == socket.peer);
            self.short = others;
            let now_known: Vec<ShortConnection> = now_known;
            now_known.iter().for_each(|short| self.note_short(short));
        }
        let query = SocketQuery::for_addresses(socket.local, socket.peer);
        let (established, info) = (socket.state != TcpState::Opening, socket.info);
        let traffic = SocketTraffic::default();
        Connection { id, tcp: Some((ends, query)), established, by: None, info, traffic }
    }

    fn open_unix(&mut self, at: Nanos, pid: u32, inode: u32) -> Option<Connection> {
        let address = self.diagnostics.unix_destination(inode)?;
        let id = self.note_opened(at, Some(pid), address, self.last);
        let traffic = SocketTraffic::default();
        Some(Connection { id, tcp: None, established: true, by: None, info: None, traffic })
    }

    fn note_opened(&mut self, at: Nanos, pid: Option<u32>, address: String, absent: Option<Nanos>) -> SocketId {
        let socket = SocketId(self.told);
        self.told += 1;
        self.sink.note_at(at, EventKind::SocketOpened { socket, pid, address, absent });
        socket
    }

    /// Notes data that went over the open connections since the last look.
    fn read_traffic(&mut self, at: Nanos) {
        let last = self.last.unwrap_or(Nanos::ZERO);
        let connections = self.sockets.values_mut().filter_map(|known| match known {
            Known::Connection(connection) => Some(connection),
            Known::Other { .. } => None,
        });
        for connection in connections.filter(|connection| connection.tcp.is_some()).take(MOST_READ) {
            let Some((_, query)) = &connection.tcp else { continue };
            let Some(socket) = self.diagnostics.read_socket(query) else { continue };
            connection.established |= socket.state != TcpState::Opening;
            if socket.state == TcpState::ClosedByPeer {
                connection.by = Some(SocketCloser::Peer);
            }
            connection.info = socket.info.or(connection.info);
            let Some(traffic) = socket.traffic else { continue };
            if (traffic.sent, traffic.received) == (connection.traffic.sent, connection.traffic.received) {
                continue;
            }
            // The kernel counts whole milliseconds; data that is new came after the last look.
            let time =
                |is_new: bool, since: Nanos, before: Nanos| if is_new { at.since(since).max(last) } else { before };
            let before = connection.traffic;
            connection.traffic = SocketTraffic {
                sent: traffic.sent,
                received: traffic.received,
                last_sent: time(traffic.sent != before.sent, traffic.since_sent, before.last_sent),
                last_received: time(traffic.received != before.received, traffic.since_received, before.last_received),
            };
            self.sink.note_at(at, EventKind::SocketTraffic { socket: connection.id, traffic: connection.traffic });
        }
    }

    /// Notes the connections that the kernel destroyed since the last look.
    fn note_destroyed(&mut self) {
        let Some(mut destroyed) = self.destroyed.take() else { return };
        loop {
            let socket = match destroyed.next_socket() {
                Ok(Some(socket)) => socket,
                Ok(None) => break,
                // The kernel's queue has a limit; where it overflowed, some ends are known by the descriptors only.
                Err(_) => {
                    self.lost_some = true;
                    break;
                }
            };
            let at = monotonic_now();
            let ends = (socket.local, socket.peer);
            if self.ended.remove(&ends) || socket.peer.port() == 0 {
                continue;
            }
            let by = self.first_closer(&ends);
            match self.inodes.remove(&ends).and_then(|inode| self.sockets.remove(&inode)) {
                Some(Known::Connection(mut connection)) => {
                    connection.established |= was_established(&socket);
                    connection.by = connection.by.or(by);
                    connection.info = socket.info.or(connection.info);
                    self.note_end(at, &connection);
                }
                _ if self.is_outgoing(&socket) => self.note_or_keep_short(at, socket, by),
                _ => {}
            }
        }
        self.destroyed = Some(destroyed);
    }

    /// The kernel keeps the addresses of a connection for a while at the end that closed it first.
    fn first_closer(&self, ends: &Ends) -> Option<SocketCloser> {
        let left = self.diagnostics.read_socket(&SocketQuery::for_addresses(ends.0, ends.1))?;
        (left.state == TcpState::ClosedHere).then_some(SocketCloser::Program)
    }

    fn note_or_keep_short(&mut self, at: Nanos, socket: TcpSocket, by: Option<SocketCloser>) {
        let short = ShortConnection { absent: self.last, at, socket, by };
        if self.reached.contains(&socket.peer) {
            self.note_short(&short);
        } else if self.short.len() < MOST_SHORT {
            self.short.push(short);
        }
    }

    fn note_short(&mut self, short: &ShortConnection) {
        if self.told >= MOST_SOCKETS {
            return;
        }
        let address = plain_address(short.socket.peer).to_string();
        let socket = self.note_opened(short.at, None, address, short.absent);
        let (established, info) = (was_established(&short.socket), short.socket.info);
        self.sink.note_at(short.at, EventKind::SocketClosed { socket, established, by: short.by, info });
    }

    /// Notes the ends of connections that no process has any longer, and forgets other sockets.
    fn note_closed(&mut self, at: Nanos, descriptors: &HashMap<u32, u32>) {
        let gone: Vec<u32> = self.sockets.keys().filter(|inode| !descriptors.contains_key(inode)).copied().collect();
        for inode in gone {
            let Some(Known::Connection(mut connection)) = self.sockets.remove(&inode) else { continue };
            if let Some((ends, _)) = connection.tcp.as_ref().map(|(ends, query)| (*ends, query)) {
                connection.by = connection.by.or_else(|| self.first_closer(&ends));
                self.inodes.remove(&ends);
                if self.ended.len() >= MOST_SHORT {
                    self.ended.clear();
                }
                self.ended.insert(ends);
            }
            self.note_end(at, &connection);
        }
    }

    fn note_end(&self, at: Nanos, connection: &Connection) {
        let Connection { id: socket, established, by, info, .. } = *connection;
        self.sink.note_at(at, EventKind::SocketClosed { socket, established, by, info });
    }
}

fn is_listening(socket: &TcpSocket) -> bool {
    socket.state == TcpState::Listening
}

/// A connection that ended was established if its round trip was measured.
fn was_established(socket: &TcpSocket) -> bool {
    socket.info.is_some_and(|info| info.min_rtt > Nanos::ZERO)
}

/// An IPv4 address instead of the IPv6 address that stands for it.
fn plain_address(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
