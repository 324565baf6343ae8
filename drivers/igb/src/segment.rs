//! Headers of a TCP frame that the card is to cut into segments (7.2.4).
//!
//! A stack hands over headers as of one large packet. The card writes lengths and the
//! IPv4 checksum into each copy itself, and adds a segment's length to the sum of the pseudo
//! header; so in the original the lengths and the IPv4 checksum are zero and the sum
//! leaves the length out.
//!
//! Headers may be shared with whoever waits to send them again. They are then copied,
//! which is also done where they lie in several buffers: the card wants them in one.

use mbuf::{Chain, Mbuf, Pool, SegmentKind, TxFrame};

use crate::headers::Headers;

/// There is no buffer to copy the headers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NoMemory;

const IP4_LENGTH_AT: usize = 2;
const IP4_CHECKSUM_AT: usize = 10;
const IP6_LENGTH_AT: usize = 4;
const TCP_CHECKSUM_AT: usize = 16;

/// Prepares the headers; on failure nothing has changed.
pub(crate) fn prepare(
    frame: &mut TxFrame,
    headers: Headers,
    pool: &dyn Pool,
) -> Result<(), NoMemory> {
    let transport_len = headers.transport_len(frame).unwrap_or(0);
    let mut front = take_headers(&mut frame.chain, usize::from(headers.end), pool)?;
    if let Some(bytes) = front.bytes_mut() {
        rewrite(bytes, headers, transport_len);
    }
    frame.chain.push_front(front);
    Ok(())
}

/// The headers in a buffer that nobody shares, taken off the chain.
fn take_headers(chain: &mut Chain, len: usize, pool: &dyn Pool) -> Result<Mbuf, NoMemory> {
    let is_whole = |part: &Mbuf| part.is_unique() && part.len() >= len;
    if chain.front().is_some_and(is_whole) {
        return chain.pop_front().ok_or(NoMemory);
    }
    let mut copy = pool.alloc().ok_or(NoMemory)?;
    let bytes = copy.extend(len).ok_or(NoMemory)?;
    chain.copy_to_slice(0, bytes);
    chain.advance(len);
    Ok(copy)
}

/// `bytes` holds the headers, as [`Headers`] found them.
fn rewrite(bytes: &mut [u8], headers: Headers, transport_len: u16) {
    let ip = usize::from(headers.ethernet);
    match headers.kind {
        SegmentKind::Tcp4 => {
            put(bytes, ip + IP4_LENGTH_AT, 0);
            put(bytes, ip + IP4_CHECKSUM_AT, 0);
        }
        SegmentKind::Tcp6 => put(bytes, ip + IP6_LENGTH_AT, 0),
    }
    let at = usize::from(headers.transport) + TCP_CHECKSUM_AT;
    if let Some(field) = bytes.get(at..at + 2) {
        let sum = u16::from_be_bytes([field[0], field[1]]);
        put(bytes, at, without(sum, transport_len));
    }
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(field) = bytes.get_mut(at..at + 2) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}

/// Subtracts in ones' complement.
fn without(sum: u16, part: u16) -> u16 {
    let (sum, carry) = sum.overflowing_add(!part);
    sum.wrapping_add(u16::from(carry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_to_a_sum_can_be_taken_out() {
        let add = |a: u16, b: u16| {
            let (sum, carry) = a.overflowing_add(b);
            sum + u16::from(carry)
        };
        for (sum, part) in [
            (0x1234, 0x20),
            (0xfff0, 0x20),
            (1, 0xfffe),
            (0x8000, 0x8000),
        ] {
            assert_eq!(without(add(sum, part), part), sum);
        }
    }
}
