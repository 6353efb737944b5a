//! Socket diagnostics over netlink: lists of sockets, one socket, and sockets that the kernel destroys.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::time::Duration;

use mcpace_record::{Nanos, TcpInfo};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with, sockopt,
};
use tokio::net::TcpStream;

use crate::lock::lock_mutex;

/// `struct nlmsghdr`.
const HEADER: usize = 16;
/// `struct inet_diag_req_v2` with its header.
const QUERY: usize = HEADER + 56;
/// `struct inet_diag_msg` with its header: the attributes follow.
const MESSAGE: usize = HEADER + 72;
/// Where the ports are in a query and in its answer.
const QUERY_PORTS: usize = HEADER + 8;
const MESSAGE_PORTS: usize = HEADER + 4;
/// `struct unix_diag_req` with its header, and `struct unix_diag_msg` with its header.
const UNIX_QUERY: usize = HEADER + 24;
const UNIX_MESSAGE: usize = HEADER + 16;
/// `SOCK_DIAG_BY_FAMILY`, `NLMSG_ERROR` and `NLMSG_DONE`.
const BY_FAMILY: u16 = 20;
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// `NLM_F_REQUEST` and `NLM_F_DUMP`.
const REQUEST: u16 = 1;
const DUMP: u16 = 0x300;
/// `INET_DIAG_INFO`, `UNIX_DIAG_NAME` and `UNIX_DIAG_PEER`.
const INFO: u16 = 2;
const UNIX_NAME: u16 = 0;
const UNIX_PEER: u16 = 2;
/// `UDIAG_SHOW_NAME` and `UDIAG_SHOW_PEER`.
const SHOW_NAME_AND_PEER: u32 = 1 | 4;
/// Groups of `SKNLGRP_INET_TCP_DESTROY` and `SKNLGRP_INET6_TCP_DESTROY`.
const DESTROYED_TCP: u32 = 1 | 1 << 2;
/// Bytes of `struct tcp_info` that hold the statistics, and those that count the bytes sent as well (Linux 4.19).
const INFO_SIZE: usize = 192;
const TRAFFIC_SIZE: usize = 208;
/// An answer has some 400 bytes; the kernel sends parts of lists of at most 32 KiB.
const ANSWER_LIMIT: usize = 4096;
const PART_LIMIT: usize = 32 << 10;
/// Bytes of the kernel's queue of sockets that it destroyed: some thousand sockets.
const QUEUE_SIZE: usize = 4 << 20;

/// A channel to the kernel's socket diagnostics.
pub(crate) struct SocketDiagnostics {
    netlink: Mutex<OwnedFd>,
}

/// Query for one TCP socket.
pub(crate) struct SocketQuery([u8; QUERY]);

/// States of TCP sockets (`net/tcp_states.h`) that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TcpState {
    /// The connection is being opened.
    Opening,
    Established,
    /// The program closed it first.
    ClosedHere,
    /// The peer closed it first.
    ClosedByPeer,
    Listening,
    /// The kernel no longer tells.
    Closed,
}

/// A TCP socket as the kernel tells of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpSocket {
    pub(crate) state: TcpState,
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
    /// The number by which processes' descriptors name it; 0 where no process has it.
    pub(crate) inode: u32,
    pub(crate) info: Option<TcpInfo>,
    pub(crate) traffic: Option<TcpTraffic>,
}

/// Data on a TCP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcpTraffic {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// Time since the last byte, in whole milliseconds.
    pub(crate) since_sent: Nanos,
    pub(crate) since_received: Nanos,
}

impl SocketDiagnostics {
    /// `None` where the system has no such channel or refuses it.
    pub(crate) fn open_channel() -> Option<Self> {
        Some(Self { netlink: Mutex::new(open_netlink().ok()?) })
    }

    /// The statistics of the socket, if it still has a peer.
    pub(crate) fn read_statistics(&self, query: &SocketQuery) -> Option<TcpInfo> {
        self.read_socket(query)?.info
    }

    /// The socket, if the kernel still has it.
    pub(crate) fn read_socket(&self, query: &SocketQuery) -> Option<TcpSocket> {
        let mut answer = [0; ANSWER_LIMIT];
        let size = self.ask(&query.0, &mut answer)?;
        query.parse_answer(answer.get(..size)?)
    }

    fn ask(&self, query: &[u8], answer: &mut [u8]) -> Option<usize> {
        let netlink = lock_mutex(&self.netlink);
        send(&*netlink, query, SendFlags::DONTWAIT).ok()?;
        // The kernel has answered when `send` returns.
        Some(recv(&*netlink, answer, RecvFlags::DONTWAIT).ok()?.0)
    }

    /// At most `most` TCP sockets, and whether the kernel has more. Those that only wait for stray segments (TIME_WAIT) do
    /// not count.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn list_sockets(&self, most: usize) -> io::Result<(Vec<TcpSocket>, bool)> {
        let mut sockets = Vec::new();
        let mut is_cut = false;
        let netlink = lock_mutex(&self.netlink);
        let mut part = vec![0; PART_LIMIT];
        for family in [AddressFamily::INET, AddressFamily::INET6] {
            send(&*netlink, &list_query(family), SendFlags::DONTWAIT)?;
            'parts: loop {
                let (size, _) = recv(&*netlink, &mut part[..], RecvFlags::DONTWAIT)?;
                for message in Messages(part.get(..size).unwrap_or_default()) {
                    match u16_at(message, 4) {
                        Some(BY_FAMILY) if sockets.len() < most => sockets.extend(parse_socket(message)),
                        Some(BY_FAMILY) => is_cut = true,
                        Some(DONE) => break 'parts,
                        Some(ERROR) => return Err(io::ErrorKind::PermissionDenied.into()),
                        _ => {}
                    }
                }
            }
        }
        Ok((sockets, is_cut))
    }

    /// Name of the socket that the UNIX socket `inode` has connected to. `None` where `inode` is no such socket, or has been
    /// accepted itself.
    pub(crate) fn unix_destination(&self, inode: u32) -> Option<String> {
        let (name, peer) = self.unix_socket(inode)?;
        match (name, peer) {
            (None, Some(peer)) => self.unix_socket(peer)?.0,
            _ => None,
        }
    }

    /// The name and the peer of a UNIX socket.
    fn unix_socket(&self, inode: u32) -> Option<(Option<String>, Option<u32>)> {
        let mut query = query_header::<UNIX_QUERY>(REQUEST);
        let mut put = |at: usize, bytes: &[u8]| query[at..at + bytes.len()].copy_from_slice(bytes);
        put(HEADER, &[AddressFamily::UNIX.as_raw() as u8]);
        put(HEADER + 4, &u32::MAX.to_ne_bytes());
        put(HEADER + 8, &inode.to_ne_bytes());
        put(HEADER + 12, &SHOW_NAME_AND_PEER.to_ne_bytes());
        // Any cookie.
        put(HEADER + 16, &[0xff; 8]);
        let mut answer = [0; ANSWER_LIMIT];
        let size = self.ask(&query, &mut answer)?;
        let answer = answer.get(..size)?;
        if u16_at(answer, 4)? != BY_FAMILY || u32_at(answer, HEADER + 4)? != inode {
            return None;
        }
        let name = find_attribute(answer.get(UNIX_MESSAGE..)?, UNIX_NAME).and_then(unix_name);
        let peer = find_attribute(answer.get(UNIX_MESSAGE..)?, UNIX_PEER).and_then(|peer| u32_at(peer, 0));
        Some((name, peer.filter(|peer| *peer != 0)))
    }
}

/// The path of a UNIX socket; abstract names begin with `@`.
fn unix_name(name: &[u8]) -> Option<String> {
    let (mark, name) = match name {
        [0, rest @ ..] => ("@", rest),
        path => ("", path),
    };
    let name = String::from_utf8_lossy(name);
    let name = name.trim_end_matches('\0');
    (!name.is_empty()).then(|| format!("{mark}{name}"))
}

/// Tells of each TCP socket that the kernel destroys, with its last statistics.
pub(crate) struct DestroyedSockets {
    netlink: OwnedFd,
    buffer: Vec<u8>,
}

impl DestroyedSockets {
    /// `None` where the system doesn't tell.
    pub(crate) fn open_channel() -> Option<Self> {
        let netlink = open_netlink().ok()?;
        // A larger queue than the system allows takes a privilege (socket(7)).
        if sockopt::set_socket_recv_buffer_size_force(&netlink, QUEUE_SIZE).is_err() {
            let _ = sockopt::set_socket_recv_buffer_size(&netlink, QUEUE_SIZE);
        }
        bind(&netlink, &SocketAddrNetlink::new(0, DESTROYED_TCP)).ok()?;
        Some(Self { netlink, buffer: vec![0; ANSWER_LIMIT] })
    }

    /// Waits until a socket is destroyed, at most for `limit`; whether there is one.
    pub(crate) fn await_socket(&self, limit: Duration) -> bool {
        let mut waits_for = [PollFd::new(&self.netlink, PollFlags::IN)];
        let limit = Timespec::try_from(limit).ok();
        poll(&mut waits_for, limit.as_ref()).is_ok_and(|ready| ready > 0)
    }

    /// The next destroyed socket; `None` where there is none now. An error means that some were lost.
    pub(crate) fn next_socket(&mut self) -> io::Result<Option<TcpSocket>> {
        loop {
            let size = match recv(&self.netlink, &mut self.buffer[..], RecvFlags::DONTWAIT) {
                Ok((size, _)) => size,
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let message = self.buffer.get(..size).unwrap_or_default();
            if let Some(socket) = parse_socket(message).filter(|_| u16_at(message, 4) == Some(BY_FAMILY)) {
                return Ok(Some(socket));
            }
        }
    }
}

fn open_netlink() -> io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    Ok(socket_with(family, kind, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?)
}

/// Query for all sockets of a family.
fn list_query(family: AddressFamily) -> [u8; QUERY] {
    // All states but TIME_WAIT.
    tcp_query(REQUEST | DUMP, family, !(1_u32 << 6))
}

/// Query for TCP sockets of a family in these states, with their statistics.
fn tcp_query(flags: u16, family: AddressFamily, states: u32) -> [u8; QUERY] {
    let mut query = query_header(flags);
    query[HEADER..HEADER + 4].copy_from_slice(&[family.as_raw() as u8, 6, 1 << (INFO - 1), 0]);
    query[HEADER + 4..HEADER + 8].copy_from_slice(&states.to_ne_bytes());
    query
}

/// An empty query of `SIZE` bytes behind its `struct nlmsghdr`.
fn query_header<const SIZE: usize>(flags: u16) -> [u8; SIZE] {
    let mut query = [0; SIZE];
    query[..4].copy_from_slice(&(SIZE as u32).to_ne_bytes());
    query[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    query[6..8].copy_from_slice(&flags.to_ne_bytes());
    query
}

impl SocketQuery {
    /// `None` for a socket without a peer.
    pub(crate) fn for_socket(socket: &TcpStream) -> Option<Self> {
        Some(Self::for_addresses(socket.local_addr().ok()?, socket.peer_addr().ok()?))
    }

    pub(crate) fn for_addresses(local: SocketAddr, peer: SocketAddr) -> Self {
        let family = if local.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let scope = if let SocketAddr::V6(address) = local { address.scope_id() } else { 0 };
        // Sockets in every state.
        let mut query = tcp_query(REQUEST, family, u32::MAX);
        let mut put = |at: usize, bytes: &[u8]| query[at..at + bytes.len()].copy_from_slice(bytes);
        put(QUERY_PORTS, &local.port().to_be_bytes());
        put(QUERY_PORTS + 2, &peer.port().to_be_bytes());
        for (at, address) in [(QUERY_PORTS + 4, local.ip()), (QUERY_PORTS + 20, peer.ip())] {
            match address {
                IpAddr::V4(address) => put(at, &address.octets()),
                IpAddr::V6(address) => put(at, &address.octets()),
            }
        }
        put(QUERY_PORTS + 36, &scope.to_ne_bytes());
        // `INET_DIAG_NOCOOKIE`
        put(QUERY_PORTS + 40, &[0xff; 8]);
        Self(query)
    }

    fn parse_answer(&self, answer: &[u8]) -> Option<TcpSocket> {
        let is_answer = u16_at(answer, 4)? == BY_FAMILY
            && answer.get(MESSAGE_PORTS..MESSAGE_PORTS + 4)? == &self.0[QUERY_PORTS..QUERY_PORTS + 4];
        is_answer.then(|| parse_socket(answer))?
    }
}

/// The messages in one part of a list.
struct Messages<'b>(&'b [u8]);

impl<'b> Iterator for Messages<'b> {
    type Item = &'b [u8];

    fn next(&mut self) -> Option<&'b [u8]> {
        let size = u32_at(self.0, 0)? as usize;
        let message = self.0.get(..size).filter(|_| size >= HEADER)?;
        self.0 = self.0.get(size.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    }
}

/// `struct inet_diag_msg` with its attributes.
fn parse_socket(message: &[u8]) -> Option<TcpSocket> {
    let family = *message.get(HEADER)?;
    let address = |ports: usize, at: usize| -> Option<SocketAddr> {
        let port = u16::from_be_bytes(*message.get(ports..)?.first_chunk()?);
        let bytes: [u8; 16] = *message.get(at..)?.first_chunk()?;
        let ip = match i32::from(family) {
            family if family == i32::from(AddressFamily::INET.as_raw()) => {
                IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]])
            }
            _ => return Some(SocketAddrV6::new(Ipv6Addr::from(bytes), port, 0, u32_at(message, HEADER + 40)?).into()),
        };
        Some(SocketAddr::new(ip, port))
    };
    let state = match *message.get(HEADER + 1)? {
        2 | 3 => TcpState::Opening,
        1 => TcpState::Established,
        4..=6 => TcpState::ClosedHere,
        8 | 9 => TcpState::ClosedByPeer,
        10 => TcpState::Listening,
        _ => TcpState::Closed,
    };
    let info = find_attribute(message.get(MESSAGE..)?, INFO);
    Some(TcpSocket {
        state,
        local: address(MESSAGE_PORTS, HEADER + 8)?,
        peer: address(MESSAGE_PORTS + 2, HEADER + 24)?,
        inode: u32_at(message, HEADER + 68)?,
        info: info.and_then(parse_info),
        traffic: info.and_then(parse_traffic),
    })
}

/// Value of an attribute, in the attributes that follow a message.
fn find_attribute(mut rest: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let size = usize::from(u16_at(rest, 0)?);
        let value = rest.get(4..size)?;
        if u16_at(rest, 2)? == kind {
            return Some(value);
        }
        rest = rest.get(size.next_multiple_of(4)..)?;
    }
}

fn parse_traffic(info: &[u8]) -> Option<TcpTraffic> {
    if info.len() < TRAFFIC_SIZE {
        return None;
    }
    let millis = |at: usize| Some(Nanos::from_millis(u32_at(info, at)?.into()));
    Some(TcpTraffic {
        sent: u64_at(info, 200)?,
        received: u64_at(info, 128)?,
        since_sent: millis(44)?,
        since_received: millis(52)?,
    })
}

fn parse_info(info: &[u8]) -> Option<TcpInfo> {
    if info.len() < INFO_SIZE {
        return None;
    }
    let micros = |value: u64| Nanos(value.saturating_mul(1000));
    // The kernel's word for "never measured".
    let min_rtt = u32_at(info, 148)?;
    Some(TcpInfo {
        rtt: micros(u32_at(info, 68)?.into()),
        min_rtt: micros(if min_rtt == u32::MAX { 0 } else { min_rtt.into() }),
        retransmitted: u32_at(info, 100)?,
        unacknowledged: u32_at(info, 24)?,
        rwnd_limited: micros(u64_at(info, 176)?),
        sndbuf_limited: micros(u64_at(info, 184)?),
        segments_out: u32_at(info, 136)?,
        segments_in: u32_at(info, 140)?,
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer_with(query: &SocketQuery, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut answer = vec![0; MESSAGE];
        answer[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        answer[MESSAGE_PORTS..MESSAGE_PORTS + 4].copy_from_slice(&query.0[QUERY_PORTS..QUERY_PORTS + 4]);
        for (kind, value) in attributes {
            answer.extend((value.len() as u16 + 4).to_ne_bytes());
            answer.extend(kind.to_ne_bytes());
            answer.extend_from_slice(value);
            answer.resize(answer.len().next_multiple_of(4), 0);
        }
        answer
    }

    fn query() -> SocketQuery {
        SocketQuery::for_addresses("127.0.0.1:4000".parse().unwrap(), "127.0.0.1:5000".parse().unwrap())
    }

    #[test]
    fn statistics_are_found_behind_other_attributes() {
        let mut info = [0; INFO_SIZE];
        info[68..72].copy_from_slice(&250_u32.to_ne_bytes());
        info[148..152].copy_from_slice(&u32::MAX.to_ne_bytes());
        info[184..192].copy_from_slice(&7_u64.to_ne_bytes());
        let answer = answer_with(&query(), &[(8, &[1]), (INFO, &info)]);
        let expected = TcpInfo { rtt: Nanos(250_000), sndbuf_limited: Nanos(7000), ..TcpInfo::default() };
        assert_eq!(query().parse_answer(&answer).unwrap().info, Some(expected));
    }

    #[test]
    fn a_shorter_structure_gives_no_statistics() {
        let answer = answer_with(&query(), &[(INFO, &[0; INFO_SIZE - 1])]);
        assert_eq!(query().parse_answer(&answer).unwrap().info, None);
    }

    #[test]
    fn an_answer_about_another_socket_gives_no_statistics() {
        let other = SocketQuery::for_addresses("127.0.0.1:4000".parse().unwrap(), "127.0.0.1:5001".parse().unwrap());
        let answer = answer_with(&other, &[(INFO, &[0; INFO_SIZE])]);
        assert!(query().parse_answer(&answer).is_none());
    }

    #[test]
    fn a_broken_answer_gives_no_statistics() {
        let answer = answer_with(&query(), &[(8, &[1]), (INFO, &[0; INFO_SIZE])]);
        for size in 0..answer.len() {
            let statistics = query().parse_answer(&answer[..size]).and_then(|socket| socket.info);
            assert_eq!(statistics, None, "{size} bytes");
        }
        let mut endless = answer;
        endless[MESSAGE..MESSAGE + 2].copy_from_slice(&0_u16.to_ne_bytes());
        assert_eq!(query().parse_answer(&endless).unwrap().info, None);
    }

    #[test]
    fn a_list_of_sockets_is_cut_at_its_limit() {
        let diagnostics = SocketDiagnostics::open_channel().unwrap();
        let _open: Vec<_> = (0..3).map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let (some, is_cut) = diagnostics.list_sockets(2).unwrap();
        assert_eq!((some.len(), is_cut), (2, true));
        let (all, is_cut) = diagnostics.list_sockets(usize::MAX).unwrap();
        assert_eq!((all.len() >= 3, is_cut), (true, false));
    }

    #[tokio::test]
    async fn sockets_of_both_families_have_statistics() {
        let diagnostics = SocketDiagnostics::open_channel().unwrap();
        for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let Ok(listener) = tokio::net::TcpListener::bind(address).await else { continue };
            let port = listener.local_addr().unwrap().port();
            let host = if address.starts_with("[::1]") { "[::1]" } else { "127.0.0.1" };
            let (client, accepted) = tokio::join!(TcpStream::connect(format!("{host}:{port}")), listener.accept());
            for socket in [&client.unwrap(), &accepted.unwrap().0] {
                let info = diagnostics.read_statistics(&SocketQuery::for_socket(socket).unwrap());
                assert!(info.unwrap().segments_in > 0, "{address}");
            }
        }
    }
}
