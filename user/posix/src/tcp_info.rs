//! `struct tcp_info`, laid out as `kernel/linux-net/src/option_value.rs` does for the kernel's sockets.

use base::Duration;
use inet::{State, TcpInfo};

use crate::options::OptionBytes;

/// Bytes up to the last field that we fill, and where fields lie: eight bytes, 24 words of 32 bits, then words of 64.
const BYTES: usize = 152;
const WORDS: usize = 8;
const BYTES_ACKED: usize = 120;
const NOT_SENT_BYTES: usize = 144;

/// What a connection shows.
pub fn encode(info: &TcpInfo) -> OptionBytes {
    let micros = |span: Duration| u32::try_from(span.as_micros()).unwrap_or(u32::MAX);
    let mss = u32::from(info.mss).max(1);
    let words = [
        (0, micros(info.rto)),
        (2, mss),
        (3, mss),
        (4, info.in_flight.div_ceil(mss)),
        (15, micros(info.srtt)),
        (16, micros(info.rttvar)),
        (17, info.ssthresh),
        (18, info.cwnd / mss),
        (23, info.retransmitted),
    ];
    let mut bytes = of_words(info.state, &words);
    put(&mut bytes, 2, &[info.backoff]);
    put(&mut bytes, BYTES_ACKED, &info.delivered.to_ne_bytes());
    let unsent = u32::try_from(info.unsent).unwrap_or(u32::MAX);
    put(&mut bytes, NOT_SENT_BYTES, &unsent.to_ne_bytes());
    bytes
}

/// What a listener shows: connections that wait, and how many may.
pub fn of_listener(waiting: usize, backlog: usize) -> OptionBytes {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    of_words(State::Listen, &[(4, count(waiting)), (5, count(backlog))])
}

fn of_words(state: State, words: &[(usize, u32)]) -> OptionBytes {
    let mut bytes = vec![0; BYTES];
    put(&mut bytes, 0, &[state as u8]);
    for (index, word) in words {
        put(&mut bytes, WORDS + index * 4, &word.to_ne_bytes());
    }
    bytes
}

fn put(bytes: &mut [u8], offset: usize, field: &[u8]) {
    if let Some(place) = bytes.get_mut(offset..offset + field.len()) {
        place.copy_from_slice(field);
    }
}
