//! VLAN identifiers and tags (IEEE 802.1Q), which lie in the frame.

use core::num::NonZeroU16;

use mbuf::{Chain, Pool};
use wire::ETHERNET_HEADER_BYTES;

/// Bytes of a tag.
pub const TAG_BYTES: usize = 4;
/// The EtherType that announces a tag.
pub const TAG_TYPE: u16 = 0x8100;

const ADDRESSES_BYTES: usize = 12;
const VID_MASK: u16 = 0xfff;

/// A VLAN identifier known to be assignable: 1 to 4094.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct VlanId(NonZeroU16);

impl VlanId {
    /// `None` for 0 (no VLAN) and 4095 (reserved).
    pub fn new(raw: u16) -> Option<Self> {
        NonZeroU16::new(raw)
            .filter(|id| id.get() < VID_MASK)
            .map(Self)
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0.get()
    }
}

/// What stands in the tag of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tag {
    /// No tag, or one with a priority only.
    Untagged,
    /// In this VLAN.
    Vlan(VlanId),
    /// The reserved identifier 4095.
    Reserved,
}

impl Tag {
    /// Of a tag's second half.
    pub(crate) fn from_control(control: u16) -> Self {
        match control & VID_MASK {
            0 => Self::Untagged,
            vid => VlanId::new(vid).map_or(Self::Reserved, Self::Vlan),
        }
    }
}

/// Replaces the first `old` bytes of `frame` by `header`, in place where the buffer is
/// ours, in a buffer from `pool` otherwise. False if there is none; the frame is cut then.
fn replace_front(frame: &mut Chain, old: usize, header: &[u8], pool: &dyn Pool) -> bool {
    frame.advance(old);
    if let Some(space) = frame.prepend(header.len()) {
        space.copy_from_slice(header);
        return true;
    }
    let Some(mut buffer) = pool.alloc() else {
        return false;
    };
    buffer.reserve(header.len());
    let Some(space) = frame.prepend_in(header.len(), buffer) else {
        return false;
    };
    space.copy_from_slice(header);
    true
}

/// Puts a tag with this second half behind the addresses. False if `pool` has no buffer: drop the frame.
pub fn insert(frame: &mut Chain, control: u16, pool: &dyn Pool) -> bool {
    let mut header = [0; ADDRESSES_BYTES + TAG_BYTES];
    frame.copy_to_slice(0, &mut header[..ADDRESSES_BYTES]);
    header[ADDRESSES_BYTES..][..2].copy_from_slice(&TAG_TYPE.to_be_bytes());
    header[ADDRESSES_BYTES + 2..].copy_from_slice(&control.to_be_bytes());
    replace_front(frame, ADDRESSES_BYTES, &header, pool)
}

/// Takes the tag out of a frame that has one. False if `pool` has no buffer: drop the
/// frame.
pub fn strip(frame: &mut Chain, pool: &dyn Pool) -> bool {
    let mut header = [0; ETHERNET_HEADER_BYTES];
    frame.copy_to_slice(0, &mut header[..ADDRESSES_BYTES]);
    frame.copy_to_slice(ADDRESSES_BYTES + TAG_BYTES, &mut header[ADDRESSES_BYTES..]);
    replace_front(frame, ETHERNET_HEADER_BYTES + TAG_BYTES, &header, pool)
}

#[cfg(test)]
mod tests {
    use mbuf::HeapPool;

    use super::*;
    use crate::testing::{bytes_of, chain};

    fn frame(pool: &HeapPool) -> Chain {
        chain(
            pool,
            &core::array::from_fn::<u8, 20, _>(|index| index as u8),
        )
    }

    #[test]
    fn identifiers_0_and_4095_are_not_assignable() {
        assert_eq!(VlanId::new(0), None);
        assert_eq!(VlanId::new(4095), None);
        assert_eq!(VlanId::new(1).map(VlanId::get), Some(1));
        assert_eq!(VlanId::new(4094).map(VlanId::get), Some(4094));
    }

    #[test]
    fn a_tag_goes_in_and_out_without_a_trace() {
        let pool = HeapPool::new(4);
        let mut chain = frame(&pool);
        let before = bytes_of(&chain);
        assert!(insert(&mut chain, 7, &pool));
        let tagged = bytes_of(&chain);
        assert_eq!(tagged[..12], before[..12]);
        assert_eq!(tagged[12..16], [0x81, 0, 0, 7]);
        assert_eq!(tagged[16..], before[12..]);
        assert!(strip(&mut chain, &pool));
        assert_eq!(bytes_of(&chain), before);
    }

    #[test]
    fn a_tag_in_a_shared_frame_leaves_the_other_copy_alone() {
        let pool = HeapPool::new(4);
        let mut chain = frame(&pool);
        let other = chain.share(0, usize::MAX);
        let before = bytes_of(&other);
        assert!(insert(&mut chain, 7, &pool));
        assert_eq!(bytes_of(&other), before);
    }

    #[test]
    fn a_shared_frame_is_not_tagged_when_there_is_no_buffer() {
        let pool = HeapPool::new(1);
        let mut chain = frame(&pool).share(0, usize::MAX);
        let _other = chain.share(0, usize::MAX);
        assert!(!insert(&mut chain, 7, &pool));
    }
}
