//! One look after another at the connections of processes.

use std::collections::{BTreeMap, HashMap, HashSet};
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

/// Processes that are watched, descriptors of one process that are read, sockets of the machine that are listed, and
/// connections whose data is read at one look.
const MOST_PROCESSES: usize = 16;
const MOST_DESCRIPTORS: usize = 1024;
const MOST_LISTED: usize = 20_000;
const MOST_READ: usize = 64;

/// Shortest time between two readings of the connections that the kernel destroyed: a machine may end thousands a second.
const DESTROYED_PERIOD: Duration = Duration::from_millis(1);

/// Connections that are noted in all, and short ones that wait for a process that reaches the same address.
const MOST_SOCKETS: u64 = 500_000;
const MOST_UNASSIGNED: usize = 10_000;

/// Number of looks before the last lookup of a descriptor that is no connection. The number doubles with each lookup.
const LAST_RETRY: u32 = 32;

/// The addresses of the two ends: here and there.
type Ends = (SocketAddr, SocketAddr);

struct WatchLoop {
    sink: Arc<Sink>,
    root: u32,
    /// Peer addresses whose connections are left out.
    ignored: HashSet<SocketAddr>,
    diagnostics: SocketDiagnostics,
    destroyed: Option<DestroyedSockets>,
    pids: Vec<u32>,
    searched: Option<Instant>,
    /// The sockets of the processes, by inode.
    sockets: BTreeMap<u32, WatchedSocket>,
    /// The inode from which on the data of connections is read at the next look.
    next_read: u32,
    /// The inodes of connections over TCP.
    inodes: HashMap<Ends, u32>,
    /// Connections that ended before the kernel destroyed them.
    closed_ends: HashSet<Ends>,
    listening: HashSet<u16>,
    /// Destinations that a process was seen to reach.
    known_destinations: HashSet<SocketAddr>,
    /// Short connections to other destinations.
    unassigned_connections: Vec<ShortConnection>,
    noted_sockets: u64,
    exceeded: ExceededLimits,
    last: Option<Nanos>,
}

/// Limits that were exceeded at a look: connections or their data are missing.
#[derive(Default)]
struct ExceededLimits {
    /// The kernel's queue of connections that ended.
    destroyed: bool,
    processes: bool,
    descriptors: bool,
    /// Sockets of the machine that are listed at one look.
    listed: bool,
    /// Connections whose data is read at one look.
    reads: bool,
}

impl ExceededLimits {
    /// A sentence for each limit that was exceeded, with the evidence that is missing.
    fn reasons(&self) -> Vec<String> {
        let reasons = [
            (
                self.destroyed,
                "connections ended faster than they could be read: some that were open for less than a period are missing"
                    .to_owned(),
            ),
            (
                self.processes,
                format!("the server has more than {MOST_PROCESSES} processes: connections of the later ones are missing"),
            ),
            (
                self.descriptors,
                format!("a process has more than {MOST_DESCRIPTORS} descriptors: connections of the later ones are missing"),
            ),
            (
                self.listed,
                format!("the machine has more than {MOST_LISTED} TCP sockets: connections among the later ones are missing"),
            ),
            (
                self.reads,
                format!("more than {MOST_READ} connections were open at once: some waits on them are missing"),
            ),
        ];
        reasons.into_iter().filter_map(|(is_exceeded, reason)| is_exceeded.then_some(reason)).collect()
    }
}

/// The sockets among the descriptors of the processes.
#[derive(Default)]
struct Descriptors {
    /// The processes, by the inodes of their sockets.
    pids: HashMap<u32, u32>,
    /// Processes that have more descriptors than were read.
    incomplete: HashSet<u32>,
}

impl Descriptors {
    /// Whether a process may still have a socket. The descriptor of a connection may be among those that were not read; the
    /// kernel tells when it destroys that connection.
    fn may_have(&self, inode: u32, known: &WatchedSocket) -> bool {
        let is_unread = match known {
            WatchedSocket::Connection(connection) => self.incomplete.contains(&connection.pid),
            WatchedSocket::Other { .. } => false,
        };
        is_unread || self.pids.contains_key(&inode)
    }
}

/// A socket of a process.
enum WatchedSocket {
    Connection(Box<Connection>),
    /// A socket that is no connection made by the process. It is looked up again after `left` more looks.
    Other {
        left: u32,
        of: u32,
    },
}

struct Connection {
    id: SocketId,
    pid: u32,
    /// `None` for a UNIX socket.
    tcp: Option<(Ends, SocketQuery)>,
    established: bool,
    by: Option<SocketCloser>,
    info: Option<TcpInfo>,
    traffic: SocketTraffic,
    /// When its data was read last, or the look before it was there.
    last_read: Nanos,
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
    if let Err(error) = diagnostics.list_sockets(MOST_LISTED) {
        missing(&format!("the kernel lists no sockets: {error}"));
        return;
    }
    let destroyed = DestroyedSockets::open_channel();
    if destroyed.is_none() {
        missing(
            "the kernel does not tell of connections that end: those that are open for less than a period are missing",
        );
    }
    let mut watch_loop = WatchLoop {
        sink: Arc::clone(&sink),
        root,
        ignored: ignored.iter().copied().collect(),
        diagnostics,
        destroyed,
        pids: Vec::new(),
        searched: None,
        sockets: BTreeMap::new(),
        next_read: 0,
        inodes: HashMap::new(),
        closed_ends: HashSet::new(),
        listening: HashSet::new(),
        known_destinations: HashSet::new(),
        unassigned_connections: Vec::new(),
        noted_sockets: 0,
        exceeded: ExceededLimits::default(),
        last: None,
    };
    loop {
        let began = Instant::now();
        watch_loop.look();
        if !pace.await_next_with(began, |limit| watch_loop.await_destroyed(limit)) {
            break;
        }
    }
    watch_loop.look();
    watch_loop.exceeded.reasons().iter().for_each(|reason| missing(reason));
    if watch_loop.noted_sockets >= MOST_SOCKETS {
        missing(&format!("more than {MOST_SOCKETS} connections were made; the later ones are left out"));
    }
}

impl WatchLoop {
    fn look(&mut self) {
        let now = Instant::now();
        if self.searched.is_none_or(|searched| now.duration_since(searched) >= SEARCH_PERIOD) {
            self.searched = Some(now);
            self.pids = watched_pids(self.root, MOST_PROCESSES + 1);
            self.exceeded.processes |= self.pids.len() > MOST_PROCESSES;
            self.pids.truncate(MOST_PROCESSES);
        }
        let at = monotonic_now();
        let descriptors = self.read_descriptors();
        self.exceeded.descriptors |= !descriptors.incomplete.is_empty();
        self.add_new_sockets(at, &descriptors);
        self.read_traffic(at);
        self.note_destroyed();
        self.note_closed(at, &descriptors);
        self.last = Some(at);
    }

    fn read_descriptors(&self) -> Descriptors {
        let mut descriptors = Descriptors::default();
        for pid in &self.pids {
            // A process that has ended, or that belongs to another user, has no descriptors to read.
            let Ok(folder) = fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
            for (number, descriptor) in folder.flatten().take(MOST_DESCRIPTORS + 1).enumerate() {
                if number == MOST_DESCRIPTORS {
                    descriptors.incomplete.insert(*pid);
                    break;
                }
                let Ok(target) = fs::read_link(descriptor.path()) else { continue };
                let name = target.to_str().and_then(|target| target.strip_prefix("socket:[")?.strip_suffix(']'));
                if let Some(inode) = name.and_then(|inode| inode.parse().ok()) {
                    descriptors.pids.entry(inode).or_insert(*pid);
                }
            }
        }
        descriptors
    }

    fn add_new_sockets(&mut self, at: Nanos, descriptors: &Descriptors) {
        let mut due: Vec<(u32, u32, u32)> = Vec::new();
        for (inode, pid) in &descriptors.pids {
            match self.sockets.get_mut(inode) {
                None => due.push((*inode, *pid, 1)),
                Some(WatchedSocket::Other { left: 1, of }) if *of < LAST_RETRY => due.push((*inode, *pid, *of * 2)),
                Some(WatchedSocket::Other { left, .. }) => *left = left.saturating_sub(1),
                Some(WatchedSocket::Connection(_)) => {}
            }
        }
        if due.is_empty() || self.noted_sockets >= MOST_SOCKETS {
            return;
        }
        // A list that cannot be read now is read at the next look.
        let Ok((listed, is_cut)) = self.diagnostics.list_sockets(MOST_LISTED) else { return };
        self.exceeded.listed |= is_cut;
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
            let known = known.map_or(WatchedSocket::Other { left: next_retry, of: next_retry }, |connection| {
                WatchedSocket::Connection(Box::new(connection))
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
        self.closed_ends.remove(&ends);
        if self.known_destinations.insert(socket.peer) {
            let (now_known, others) =
                self.unassigned_connections.drain(..).partition(|short| short.socket.peer == socket.peer);
            self.unassigned_connections = others;
            let now_known: Vec<ShortConnection> = now_known;
            now_known.iter().for_each(|short| self.note_short(short));
        }
        let query = SocketQuery::for_addresses(socket.local, socket.peer);
        let (established, info) = (socket.state != TcpState::Opening, socket.info);
        let traffic = SocketTraffic::default();
        let last_read = self.last.unwrap_or(Nanos::ZERO);
        Connection { id, pid, tcp: Some((ends, query)), established, by: None, info, traffic, last_read }
    }

    fn open_unix(&mut self, at: Nanos, pid: u32, inode: u32) -> Option<Connection> {
        let address = self.diagnostics.unix_destination(inode)?;
        let id = self.note_opened(at, Some(pid), address, self.last);
        let traffic = SocketTraffic::default();
        let last_read = self.last.unwrap_or(Nanos::ZERO);
        Some(Connection { id, pid, tcp: None, established: true, by: None, info: None, traffic, last_read })
    }

    fn note_opened(&mut self, at: Nanos, pid: Option<u32>, address: String, absent: Option<Nanos>) -> SocketId {
        let socket = SocketId(self.noted_sockets);
        self.noted_sockets += 1;
        self.sink.note_at(at, EventKind::SocketOpened { socket, pid, address, absent });
        socket
    }

    /// Notes data that went over the open connections. Where there are many, each look reads the next ones.
    fn read_traffic(&mut self, at: Nanos) {
        let in_turn = self.sockets.range(self.next_read..).chain(self.sockets.range(..self.next_read));
        let is_tcp =
            |known: &WatchedSocket| matches!(known, WatchedSocket::Connection(connection) if connection.tcp.is_some());
        let mut due: Vec<u32> =
            in_turn.filter(|(_, known)| is_tcp(known)).map(|(inode, _)| *inode).take(MOST_READ + 1).collect();
        self.next_read = if due.len() > MOST_READ { due.pop().unwrap_or(0) } else { 0 };
        self.exceeded.reads |= self.next_read > 0;
        for inode in due {
            let Some(WatchedSocket::Connection(connection)) = self.sockets.get_mut(&inode) else { continue };
            let Some((_, query)) = &connection.tcp else { continue };
            let Some(socket) = self.diagnostics.read_socket(query) else { continue };
            connection.established |= socket.state != TcpState::Opening;
            if socket.state == TcpState::ClosedByPeer {
                connection.by = Some(SocketCloser::Peer);
            }
            connection.info = socket.info.or(connection.info);
            let Some(traffic) = socket.traffic else { continue };
            let last = std::mem::replace(&mut connection.last_read, at);
            if (traffic.sent, traffic.received) == (connection.traffic.sent, connection.traffic.received) {
                continue;
            }
            // The kernel counts whole milliseconds; data that is new came after the last reading.
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

    /// Waits for a connection that the kernel destroys, at most until `limit`, and notes those that it destroyed. The time of
    /// an end is thus known better than by the looks.
    fn await_destroyed(&mut self, limit: Duration) {
        match &self.destroyed {
            Some(destroyed) if destroyed.await_socket(limit) => {
                self.note_destroyed();
                std::thread::sleep(DESTROYED_PERIOD.min(limit));
            }
            Some(_) => {}
            None => std::thread::sleep(limit),
        }
    }

    /// Notes the connections that the kernel destroyed since the last time.
    fn note_destroyed(&mut self) {
        let Some(mut destroyed) = self.destroyed.take() else { return };
        loop {
            let socket = match destroyed.next_socket() {
                Ok(Some(socket)) => socket,
                Ok(None) => break,
                // The kernel's queue has a limit; where it overflowed, some ends are known by the descriptors only.
                Err(_) => {
                    self.exceeded.destroyed = true;
                    break;
                }
            };
            let at = monotonic_now();
            let ends = (socket.local, socket.peer);
            if self.closed_ends.remove(&ends) || socket.peer.port() == 0 {
                continue;
            }
            match self.inodes.remove(&ends).and_then(|inode| self.sockets.remove(&inode)) {
                Some(WatchedSocket::Connection(mut connection)) => {
                    connection.established |= was_established(&socket);
                    connection.by = connection.by.or_else(|| self.first_closer(&ends));
                    connection.info = socket.info.or(connection.info);
                    self.note_end(at, &connection);
                }
                _ if self.is_outgoing(&socket) => self.note_or_keep_short(at, socket),
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

    fn note_or_keep_short(&mut self, at: Nanos, socket: TcpSocket) {
        let by = self.first_closer(&(socket.local, socket.peer));
        let short = ShortConnection { absent: self.last, at, socket, by };
        if self.known_destinations.contains(&socket.peer) {
            self.note_short(&short);
        } else if self.unassigned_connections.len() < MOST_UNASSIGNED {
            self.unassigned_connections.push(short);
        }
    }

    fn note_short(&mut self, short: &ShortConnection) {
        if self.noted_sockets >= MOST_SOCKETS {
            return;
        }
        let address = plain_address(short.socket.peer).to_string();
        let socket = self.note_opened(short.at, None, address, short.absent);
        let (established, info) = (was_established(&short.socket), short.socket.info);
        self.sink.note_at(short.at, EventKind::SocketClosed { socket, established, by: short.by, info });
    }

    /// Notes the ends of connections that no process has any longer, and forgets other sockets.
    fn note_closed(&mut self, at: Nanos, descriptors: &Descriptors) {
        let is_gone = |(inode, known): &(&u32, &WatchedSocket)| !descriptors.may_have(**inode, known);
        let gone: Vec<u32> = self.sockets.iter().filter(is_gone).map(|(inode, _)| *inode).collect();
        for inode in gone {
            let Some(WatchedSocket::Connection(mut connection)) = self.sockets.remove(&inode) else { continue };
            if let Some((ends, _)) = connection.tcp.as_ref().map(|(ends, query)| (*ends, query)) {
                connection.by = connection.by.or_else(|| self.first_closer(&ends));
                self.inodes.remove(&ends);
                if self.closed_ends.len() >= MOST_UNASSIGNED {
                    self.closed_ends.clear();
                }
                self.closed_ends.insert(ends);
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
