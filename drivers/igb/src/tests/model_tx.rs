//! The model's transmitter: contexts, checksums, segments.

extern crate std;

use std::vec::Vec;

use super::model::Model;
use crate::registers::*;

/// A frame as it goes over the wire; the tag that the card put in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Sent {
    pub(super) bytes: Vec<u8>,
    pub(super) tag: Option<u16>,
}

const KIND_DATA: u64 = 3;
const KIND_CONTEXT: u64 = 2;

/// A context, decoded.
struct Context {
    ethernet: usize,
    ip: usize,
    transport: usize,
    is_v4: bool,
    is_tcp: bool,
    tag: u16,
    segment: usize,
}

impl Context {
    fn of([lengths, rest]: [u64; 2]) -> Self {
        Self {
            ip: (lengths & 0x1ff) as usize,
            ethernet: (lengths >> 9 & 0x7f) as usize,
            tag: (lengths >> 16) as u16,
            is_v4: rest >> 10 & 1 != 0,
            is_tcp: rest >> 11 & 3 == 1,
            transport: (rest >> 40 & 0xff) as usize,
            segment: (rest >> 48) as usize,
        }
    }

    fn start(&self) -> usize {
        self.ethernet + self.ip
    }

    fn field(&self) -> usize {
        self.start() + if self.is_tcp { 16 } else { 6 }
    }
}

impl Model {
    /// Sends the next frame of a queue: several if it is cut.
    pub(super) fn send(&mut self, queue: usize) -> Option<Vec<Sent>> {
        assert_ne!(self.get(TCTL) & TCTL_ENABLE, 0);
        let ring = tx_ring(queue as u16);
        let mut bytes = Vec::new();
        let mut first = None;
        loop {
            let at = self.next(ring)?;
            let [addr, word] = self.words_at(at);
            assert_ne!(word & 1 << 29, 0, "advanced descriptors only");
            let slot = (word >> 36 & 7) as usize;
            if word >> 20 & 0xf == KIND_CONTEXT {
                assert!(bytes.is_empty(), "a context amid a frame");
                self.contexts.insert((queue, slot), [addr, word]);
                continue;
            }
            assert_eq!(word >> 20 & 0xf, KIND_DATA);
            let first = *first.get_or_insert(word);
            bytes.extend(self.read_memory(addr, (word & 0xffff) as usize));
            if word & 1 << 27 != 0 {
                self.write_memory(at + 8, &(1u64 << 32).to_le_bytes());
            }
            if word & 1 << 24 != 0 {
                let context = self.contexts.get(&(queue, slot)).copied();
                return Some(finish(bytes, first, context.map(Context::of)));
            }
        }
    }
}

/// What the card makes of a frame: `word` is the first data descriptor's.
fn finish(mut bytes: Vec<u8>, word: u64, context: Option<Context>) -> Vec<Sent> {
    let payload = (word >> 46) as usize;
    let tag = (word & 1 << 30 != 0).then(|| context.as_ref().expect("a context").tag);
    let has_sum = word & 1 << 41 != 0;
    if word & 1 << 31 == 0 {
        assert_eq!(payload, bytes.len(), "PAYLEN is the frame's length");
        if has_sum {
            let context = context.expect("a context");
            fill(&mut bytes, context.start(), context.field());
        }
        return [Sent { bytes, tag }].into();
    }
    let context = context.expect("a context");
    assert!(has_sum && context.is_tcp);
    assert_eq!(
        word & 1 << 40 != 0,
        context.is_v4,
        "IPv4 headers are summed"
    );
    let headers = context.start() + context.transport;
    assert_eq!(payload, bytes.len() - headers, "PAYLEN is what is cut");
    let cut = bytes.split_off(headers);
    let pieces = cut.chunks(context.segment).enumerate();
    let bytes = pieces.map(|(index, piece)| segment(&bytes, piece, index, &context));
    bytes.map(|bytes| Sent { bytes, tag }).collect()
}

fn segment(headers: &[u8], piece: &[u8], index: usize, context: &Context) -> Vec<u8> {
    let mut bytes = [headers, piece].concat();
    let (ip, start) = (context.ethernet, context.start());
    let transport_len = bytes.len() - start;
    if context.is_v4 {
        assert_eq!(bytes[ip + 2..ip + 4], [0, 0]);
        assert_eq!(bytes[ip + 10..ip + 12], [0, 0]);
        let total = (bytes.len() - ip) as u16;
        bytes[ip + 2..ip + 4].copy_from_slice(&total.to_be_bytes());
        let sum = !sum_of(&bytes[ip..start], 0);
        bytes[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
    } else {
        assert_eq!(bytes[ip + 4..ip + 6], [0, 0]);
        let len = (bytes.len() - ip - 40) as u16;
        bytes[ip + 4..ip + 6].copy_from_slice(&len.to_be_bytes());
    }
    let sequence = u32::from_be_bytes(bytes[start + 4..start + 8].try_into().expect("4 bytes"));
    let sequence = sequence.wrapping_add((index * context.segment) as u32);
    bytes[start + 4..start + 8].copy_from_slice(&sequence.to_be_bytes());
    let sum = !sum_of(&bytes[start..], transport_len as u32);
    bytes[context.field()..][..2].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// "Sum from `start` to the end and store the complement."
fn fill(bytes: &mut [u8], start: usize, field: usize) {
    let sum = !sum_of(&bytes[start..], 0);
    bytes[field..field + 2].copy_from_slice(&sum.to_be_bytes());
}

/// The Internet checksum's sum (RFC 1071).
pub(super) fn sum_of(bytes: &[u8], seed: u32) -> u16 {
    let words = bytes.chunks(2);
    let sum = words.fold(seed, |sum, word| {
        sum + (u32::from(word[0]) << 8) + word.get(1).map_or(0, |low| u32::from(*low))
    });
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}
