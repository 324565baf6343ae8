//! What a virtual and a physical function say to each other: sixteen words, in the form that
//! Linux's igb and igbvf, and DPDK after them, have agreed on. The datasheet leaves it open.
//!
//! The first word of a request is its kind and eight bits of detail. The answer begins with
//! the same word and says yes or no. A virtual function begins with [`RESET`], and may ask for
//! nothing else before that was granted; whether it still may is in each answer.

/// Words of a message.
pub(crate) const WORDS: usize = 16;
/// A message, with zeros behind what was said.
pub(crate) type Message = [u32; WORDS];

/// Kinds of requests.
pub(crate) const KIND: u32 = 0xffff;
/// Begin anew; the answer says in words 1 and 2 which address the function has.
pub(crate) const RESET: u32 = 0x01;
/// Another address: words 1 and 2.
pub(crate) const SET_MAC: u32 = 0x02;
/// The bits of groups to hear, so many as the detail says, two in each word.
pub(crate) const SET_MULTICAST: u32 = 0x03;
/// Joins a VLAN, or leaves it if the detail is 0: word 1.
pub(crate) const SET_VLAN: u32 = 0x04;
/// The longest frame, with its FCS: word 1.
pub(crate) const SET_LENGTH: u32 = 0x05;

/// Yes.
pub(crate) const YES: u32 = 1 << 31;
/// No.
pub(crate) const NO: u32 = 1 << 30;
/// The function may go on asking.
pub(crate) const MAY_SEND: u32 = 1 << 29;

const DETAIL_SHIFT: u32 = 16;
/// Bits of groups that fit.
pub(crate) const GROUPS_MAX: usize = 30;
/// The bits of a VLAN's identifier.
pub(crate) const VLAN: u32 = 0xfff;

/// A request's detail.
pub(crate) fn detail(first: u32) -> u8 {
    (first >> DETAIL_SHIFT) as u8
}

/// The first word of a request with a detail.
pub(crate) fn with_detail(kind: u32, detail: u8) -> u32 {
    kind | u32::from(detail) << DETAIL_SHIFT
}

/// The address in words 1 and 2.
pub(crate) fn mac(message: &Message) -> [u8; 6] {
    let [a, b, c, d] = message[1].to_le_bytes();
    let [e, f, ..] = message[2].to_le_bytes();
    [a, b, c, d, e, f]
}

/// A message with an address in words 1 and 2.
pub(crate) fn with_mac(first: u32, [a, b, c, d, e, f]: [u8; 6]) -> Message {
    let mut message = [0; WORDS];
    message[0] = first;
    message[1] = u32::from_le_bytes([a, b, c, d]);
    message[2] = u32::from_le_bytes([e, f, 0, 0]);
    message
}

/// The bits of groups that a message lists.
pub(crate) fn groups(message: &Message) -> impl Iterator<Item = u16> {
    let halves = message[1..].iter();
    let halves = halves.flat_map(|word| [*word as u16, (*word >> 16) as u16]);
    halves.take(usize::from(detail(message[0])))
}

/// A message that lists bits of groups, at most [`GROUPS_MAX`].
pub(crate) fn with_groups(bits: &[u16]) -> Message {
    let mut message = [0; WORDS];
    message[0] = with_detail(SET_MULTICAST, bits.len().min(GROUPS_MAX) as u8);
    for (word, pair) in message[1..].iter_mut().zip(bits.chunks(2)) {
        let high = pair.get(1).copied().unwrap_or(0);
        *word = u32::from(pair[0]) | u32::from(high) << 16;
    }
    message
}
