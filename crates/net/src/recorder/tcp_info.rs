//! The kernel's statistics of a TCP connection: `struct tcp_info`, through the socket diagnostics of sock_diag(7).
//!
//! `getsockopt(TCP_INFO)` needs unsafe code, which the workspace forbids; a query over netlink returns the same structure
//! and needs none. Systems other than Linux, kernels without socket diagnostics, and kernels whose structure is shorter
//! give no statistics.

#[cfg(target_os = "linux")]
pub(super) use linux::{SocketDiagnostics, SocketQuery};
#[cfg(not(target_os = "linux"))]
pub(super) use none::{SocketDiagnostics, SocketQuery};

#[cfg(target_os = "linux")]
mod linux {
    use std::net::{IpAddr, SocketAddr};
    use std::os::fd::OwnedFd;
    use std::sync::Mutex;

    use mcpace_record::{Nanos, TcpInfo};
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};
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
    /// `SOCK_DIAG_BY_FAMILY`.
    const BY_FAMILY: u16 = 20;
    /// `INET_DIAG_INFO`.
    const INFO: u16 = 2;
    /// Bytes of `struct tcp_info` that hold what is read of it.
    const INFO_SIZE: usize = 192;
    /// An answer has some 400 bytes.
    const ANSWER_LIMIT: usize = 4096;

    /// A channel to the kernel's socket diagnostics.
    pub(in crate::recorder) struct SocketDiagnostics {
        netlink: Mutex<OwnedFd>,
    }

    /// Query for one socket's statistics.
    pub(in crate::recorder) struct SocketQuery([u8; QUERY]);

    impl SocketDiagnostics {
        /// `None` where the system has no such channel or refuses it.
        pub(in crate::recorder) fn open_channel() -> Option<Self> {
            let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
            let netlink = socket_with(family, kind, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG)).ok()?;
            Some(Self { netlink: Mutex::new(netlink) })
        }

        /// The statistics of the socket, if it still has a peer.
        pub(in crate::recorder) fn read_statistics(&self, query: &SocketQuery) -> Option<TcpInfo> {
            let mut answer = [0; ANSWER_LIMIT];
            let size = {
                let netlink = lock_mutex(&self.netlink);
                send(&*netlink, &query.0, SendFlags::DONTWAIT).ok()?;
                // The kernel has answered when `send` returns.
                recv(&*netlink, &mut answer, RecvFlags::DONTWAIT).ok()?.0
            };
            query.parse_answer(answer.get(..size)?)
        }
    }

    impl SocketQuery {
        /// `None` for a socket without a peer.
        pub(in crate::recorder) fn for_socket(socket: &TcpStream) -> Option<Self> {
            Some(Self::for_addresses(socket.local_addr().ok()?, socket.peer_addr().ok()?))
        }

        fn for_addresses(local: SocketAddr, peer: SocketAddr) -> Self {
            let family = if local.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let scope = if let SocketAddr::V6(address) = local { address.scope_id() } else { 0 };
            let mut query = [0; QUERY];
            let mut put = |at: usize, bytes: &[u8]| query[at..at + bytes.len()].copy_from_slice(bytes);
            put(0, &(QUERY as u32).to_ne_bytes());
            put(4, &BY_FAMILY.to_ne_bytes());
            // `NLM_F_REQUEST`
            put(6, &1_u16.to_ne_bytes());
            put(HEADER, &[family.as_raw() as u8, 6, 1 << (INFO - 1), 0]);
            // Sockets in every state.
            put(HEADER + 4, &u32::MAX.to_ne_bytes());
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

        fn parse_answer(&self, answer: &[u8]) -> Option<TcpInfo> {
            let is_answer = u16_at(answer, 4)? == BY_FAMILY
                && answer.get(MESSAGE_PORTS..MESSAGE_PORTS + 4)? == &self.0[QUERY_PORTS..QUERY_PORTS + 4];
            let mut rest = is_answer.then(|| answer.get(MESSAGE..)).flatten()?;
            loop {
                let size = usize::from(u16_at(rest, 0)?);
                let value = rest.get(4..size)?;
                if u16_at(rest, 2)? == INFO {
                    return parse_info(value);
                }
                rest = rest.get(size.next_multiple_of(4)..)?;
            }
        }
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
            assert_eq!(query().parse_answer(&answer), Some(expected));
        }

        #[test]
        fn a_shorter_structure_gives_no_statistics() {
            let answer = answer_with(&query(), &[(INFO, &[0; INFO_SIZE - 1])]);
            assert_eq!(query().parse_answer(&answer), None);
        }

        #[test]
        fn an_answer_about_another_socket_gives_no_statistics() {
            let other =
                SocketQuery::for_addresses("127.0.0.1:4000".parse().unwrap(), "127.0.0.1:5001".parse().unwrap());
            let answer = answer_with(&other, &[(INFO, &[0; INFO_SIZE])]);
            assert_eq!(query().parse_answer(&answer), None);
        }

        #[test]
        fn a_broken_answer_gives_no_statistics() {
            let answer = answer_with(&query(), &[(8, &[1]), (INFO, &[0; INFO_SIZE])]);
            for size in 0..answer.len() {
                assert_eq!(query().parse_answer(&answer[..size]), None, "{size} bytes");
            }
            let mut endless = answer;
            endless[MESSAGE..MESSAGE + 2].copy_from_slice(&0_u16.to_ne_bytes());
            assert_eq!(query().parse_answer(&endless), None);
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
}

#[cfg(not(target_os = "linux"))]
mod none {
    use mcpace_record::TcpInfo;
    use tokio::net::TcpStream;

    /// A channel to statistics that this system does not have.
    pub(in crate::recorder) struct SocketDiagnostics;

    /// Query for one socket's statistics.
    pub(in crate::recorder) struct SocketQuery;

    impl SocketDiagnostics {
        pub(in crate::recorder) fn open_channel() -> Option<Self> {
            None
        }

        pub(in crate::recorder) fn read_statistics(&self, _: &SocketQuery) -> Option<TcpInfo> {
            None
        }
    }

    impl SocketQuery {
        pub(in crate::recorder) fn for_socket(_: &TcpStream) -> Option<Self> {
            None
        }
    }
}
