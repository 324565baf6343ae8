//! A socket as the words of a row.

use core::net::{IpAddr, Ipv4Addr};

use base::Duration;

use super::{PAYLOAD_WORDS, Payload};
use crate::addr::{Endpoint, Transport};
use crate::socket::SocketEntry;
use crate::tcp::{Algorithm, ConnectionEntry, State, TcpInfo};

/// No number.
const NOBODY: u32 = u32::MAX;

const TCP: u8 = 1;
const UDP: u8 = 2;

/// Flags.
const HAS_INFO: u8 = 1;
const HAS_TIMESTAMPS: u8 = 2;
const HAS_SACK: u8 = 4;

/// What a row says.
#[derive(Clone, Copy, Debug)]
pub struct StackRow {
    /// The program's number of the socket, if it has it still.
    pub number: Option<u32>,
    /// The socket.
    pub socket: SocketEntry,
}

impl StackRow {
    /// The words of it; `None` of another family than IPv4.
    pub fn encode(&self) -> Option<Payload> {
        let SocketEntry {
            transport,
            connection,
            info,
            buffers,
        } = self.socket;
        let IpAddr::V4(remote) = connection.remote.addr else {
            return None;
        };
        let kind = match transport {
            Transport::Tcp => TCP,
            Transport::Udp => UDP,
        };
        let mut words = [0; PAYLOAD_WORDS];
        let flags = info.map_or(0, |info| flags_of(&info));
        let [low, high] = connection.local.port.to_ne_bytes();
        let [first, second] = connection.remote.port.to_ne_bytes();
        let head = [
            u32::from_ne_bytes([kind, connection.state as u8, low, high]),
            self.number.unwrap_or(NOBODY),
            remote.to_bits(),
            u32::from_ne_bytes([first, second, flags, 0]),
            short(connection.unread),
            short(connection.unacked),
            buffers[0],
            buffers[1],
        ];
        let tail = info.map_or([0; 19], |info| words_of(&info));
        let all = head.into_iter().chain(tail);
        words.iter_mut().zip(all).for_each(|(to, from)| *to = from);
        Some(words)
    }

    /// What the words say of a socket of the address `local`; `None` if that cannot be.
    pub fn decode(words: &Payload, local: Ipv4Addr) -> Option<Self> {
        let [kind, state, low, high] = words[0].to_ne_bytes();
        let [first, second, flags, _] = words[3].to_ne_bytes();
        let state = state_of(state)?;
        let transport = match kind {
            TCP => Transport::Tcp,
            UDP => Transport::Udp,
            _ => return None,
        };
        let local = Endpoint::v4(local, u16::from_ne_bytes([low, high]));
        let remote = Endpoint::v4(
            Ipv4Addr::from_bits(words[2]),
            u16::from_ne_bytes([first, second]),
        );
        let is_alone = remote.port == 0 && remote.addr.is_unspecified();
        let is_possible = match (transport, state) {
            (Transport::Tcp, State::Closed) => false,
            (Transport::Tcp, State::Listen) | (Transport::Udp, State::Closed) => is_alone,
            (Transport::Tcp, _) | (Transport::Udp, State::Established) => remote.port != 0,
            (Transport::Udp, _) => false,
        };
        let has_info = flags & HAS_INFO != 0 && transport == Transport::Tcp;
        (is_possible && local.port != 0).then(|| Self {
            number: Some(words[1]).filter(|number| *number != NOBODY),
            socket: SocketEntry {
                transport,
                connection: ConnectionEntry {
                    socket: None,
                    state,
                    local,
                    remote,
                    unread: words[4] as usize,
                    unacked: words[5] as usize,
                },
                info: has_info.then(|| info_of(words, state, flags)),
                buffers: [words[6], words[7]],
            },
        })
    }
}

fn short(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn state_of(number: u8) -> Option<State> {
    use State::*;
    let all = [
        Established,
        SynSent,
        SynReceived,
        FinWait1,
        FinWait2,
        TimeWait,
        Closed,
        CloseWait,
        LastAck,
        Listen,
        Closing,
    ];
    all.into_iter().find(|state| *state as u8 == number)
}

fn flags_of(info: &TcpInfo) -> u8 {
    let bit = |is_set, bit| if is_set { bit } else { 0 };
    HAS_INFO | bit(info.has_timestamps, HAS_TIMESTAMPS) | bit(info.has_sack, HAS_SACK)
}

fn words_of(info: &TcpInfo) -> [u32; 19] {
    let micros = |span: Duration| u32::try_from(span.as_micros()).unwrap_or(u32::MAX);
    let [low, high] = info.mss.to_ne_bytes();
    let (theirs, ours) = info.window_scales;
    let algorithm = Algorithm::ALL.iter().position(|one| *one == info.algorithm);
    let paced = info.pacing_rate.unwrap_or(0);
    [
        micros(info.srtt),
        micros(info.rttvar),
        micros(info.rto),
        info.cwnd,
        info.ssthresh,
        u32::from_ne_bytes([low, high, theirs, ours]),
        info.in_flight,
        short(info.unsent),
        info.peer_window,
        u32::from_ne_bytes([info.backoff, algorithm.unwrap_or(0) as u8, 0, 0]),
        info.retransmitted,
        info.delivered as u32,
        (info.delivered >> 32) as u32,
        info.delivery_rate as u32,
        (info.delivery_rate >> 32) as u32,
        paced as u32,
        (paced >> 32) as u32,
        micros(info.min_rtt),
        info.lost,
    ]
}

fn info_of(words: &Payload, state: State, flags: u8) -> TcpInfo {
    let micros = |word: u32| Duration::from_micros(word.into());
    let long = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let [low, high, theirs, ours] = words[13].to_ne_bytes();
    let [backoff, algorithm, ..] = words[17].to_ne_bytes();
    let algorithm = Algorithm::ALL.get(usize::from(algorithm));
    let paced = long(words[23], words[24]);
    TcpInfo {
        state,
        srtt: micros(words[8]),
        rttvar: micros(words[9]),
        rto: micros(words[10]),
        cwnd: words[11],
        ssthresh: words[12],
        mss: u16::from_ne_bytes([low, high]),
        in_flight: words[14],
        unsent: words[15] as usize,
        unread: words[4] as usize,
        peer_window: words[16],
        backoff,
        retransmitted: words[18],
        delivered: long(words[19], words[20]),
        delivery_rate: long(words[21], words[22]),
        pacing_rate: Some(paced).filter(|rate| *rate != 0),
        min_rtt: micros(words[25]),
        lost: words[26],
        algorithm: algorithm.copied().unwrap_or_default(),
        has_timestamps: flags & HAS_TIMESTAMPS != 0,
        has_sack: flags & HAS_SACK != 0,
        window_scales: (theirs, ours),
    }
}
