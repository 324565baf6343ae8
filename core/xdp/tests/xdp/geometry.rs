//! Which rings and which memory there may be.

use xdp::{Entry, Geometry, Refusal, Umem, UmemRequest};

use crate::world::request;

fn refusal(change: impl FnOnce(&mut UmemRequest)) -> Option<Refusal> {
    let mut wanted = request();
    change(&mut wanted);
    Umem::check(&wanted).err()
}

#[test]
fn rings_are_powers_of_two_within_their_limit() {
    let is_possible = |entries| Geometry::check(entries, Entry::Address).is_some();
    for entries in [1, 2, 2048, 1 << 16] {
        assert!(is_possible(entries), "{entries}");
    }
    for entries in [0, 3, 1 << 17, u32::MAX] {
        assert!(!is_possible(entries), "{entries}");
    }
}

#[test]
fn a_ring_is_as_large_as_that_of_linux() {
    let bytes = |entry| Geometry::check(64, entry).unwrap().bytes();
    assert_eq!(bytes(Entry::Address), 320 + 64 * 8);
    assert_eq!(bytes(Entry::Descriptor), 320 + 64 * 16);
}

#[test]
fn chunks_are_aligned_and_of_one_of_two_sizes() {
    assert_eq!(refusal(|_| {}), None);
    assert_eq!(refusal(|wanted| wanted.chunk_bytes = 4096), None);
    for chunk_bytes in [0, 1024, 3000, 8192] {
        let refused = Some(Refusal::ChunkBytes(chunk_bytes));
        assert_eq!(refusal(|wanted| wanted.chunk_bytes = chunk_bytes), refused);
    }
    assert_eq!(refusal(|wanted| wanted.flags = 1), Some(Refusal::Flags(1)));
}

#[test]
fn memory_is_whole_chunks_from_a_page_on() {
    let refused = Some(Refusal::Address(0x10_0800));
    assert_eq!(refusal(|wanted| wanted.address = 0x10_0800), refused);
    for bytes in [0, 2047, 4097, 1 << 40] {
        let refused = Some(Refusal::Bytes(bytes));
        assert_eq!(refusal(|wanted| wanted.bytes = bytes), refused);
    }
    let at_the_end = |wanted: &mut UmemRequest| wanted.address = !4095;
    assert!(refusal(at_the_end).is_some());
}

#[test]
fn a_chunk_has_room_for_a_frame_behind_what_is_kept_free() {
    let most = 2048 - 256 - 1;
    assert_eq!(refusal(|wanted| wanted.headroom = most), None);
    for headroom in [most + 1, u32::MAX] {
        let refused = Some(Refusal::Headroom(headroom));
        assert_eq!(refusal(|wanted| wanted.headroom = headroom), refused);
    }
}
