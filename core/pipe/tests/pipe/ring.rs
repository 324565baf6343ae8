//! The pages of a ring: which are there, which are kept, and one that holds both ends.

use crate::world::{Buffer, Bytes, Failing};
use base::{NoMemory, PAGE_BYTES};
use models::Heap;
use pipe::Refusal;

type Ring = pipe::ByteRing<Heap>;

/// Bytes of which no two pages are alike.
fn pattern(start: usize, count: usize) -> Vec<u8> {
    (start..start + count).map(|at| (at % 251) as u8).collect()
}

fn put(ring: &mut Ring, bytes: &[u8]) -> Result<usize, Refusal> {
    ring.put(&mut Bytes(bytes), bytes.len())
}

fn take(ring: &mut Ring, count: usize) -> Vec<u8> {
    let mut buffer = Buffer::new(count);
    let taken = ring.take(&mut buffer, count).expect("there is room");
    assert_eq!(taken, buffer.bytes.len());
    buffer.bytes
}

/// A full ring of `pages` pages, the first of which holds the last `both` bytes too; and what
/// is in it.
fn with_both_ends(pages: usize, both: usize) -> (Ring, Vec<u8>) {
    let mut ring = Ring::new(pages);
    let bytes = pattern(0, pages * PAGE_BYTES + both);
    let (first, last) = bytes.split_at(pages * PAGE_BYTES);
    assert_eq!(put(&mut ring, first), Ok(first.len()));
    ring.skip(both);
    assert_eq!(put(&mut ring, last), Ok(both));
    (ring, bytes[both..].to_vec())
}

#[test]
fn a_page_with_both_ends_stays_when_its_first_bytes_leave() {
    let (mut ring, bytes) = with_both_ends(2, 100);
    assert_eq!(take(&mut ring, PAGE_BYTES), bytes[..PAGE_BYTES]);
    assert_eq!(take(&mut ring, 2 * PAGE_BYTES), bytes[PAGE_BYTES..]);
    assert!(ring.is_empty());
}

#[test]
fn a_ring_that_runs_empty_keeps_one_page_and_gives_the_others_back() {
    let mut ring = Ring::new(4);
    let bytes = pattern(0, 4 * PAGE_BYTES);
    assert_eq!(put(&mut ring, &bytes), Ok(bytes.len()));
    assert_eq!(take(&mut ring, bytes.len()), bytes);
    Heap::refuse_nth(1);
    let again = put(&mut ring, &bytes);
    Heap::refuse_none();
    assert_eq!(again, Ok(PAGE_BYTES), "one page was kept");
}

#[test]
fn a_page_whose_bytes_have_left_is_given_back_though_others_are_full() {
    let mut ring = Ring::new(4);
    let bytes = pattern(0, 4 * PAGE_BYTES);
    assert_eq!(put(&mut ring, &bytes), Ok(bytes.len()));
    ring.skip(3 * PAGE_BYTES);
    Heap::refuse_nth(1);
    let again = put(&mut ring, &bytes);
    Heap::refuse_none();
    assert_eq!(again, Ok(PAGE_BYTES), "one page was kept");
}

#[test]
fn a_ring_that_runs_empty_starts_again_on_a_page() {
    let mut ring = Ring::new(2);
    for bytes in [1, 100, PAGE_BYTES - 1] {
        let bytes = pattern(0, bytes);
        assert_eq!(put(&mut ring, &bytes), Ok(bytes.len()));
        assert_eq!(take(&mut ring, bytes.len()), bytes);
        assert_eq!(ring.head() % PAGE_BYTES as u64, 0);
        assert_eq!(ring.tail(), ring.head());
    }
    let _ = put(&mut ring, &pattern(0, 100));
    ring.skip(40);
    ring.take_back(60);
    assert_eq!(ring.head() % PAGE_BYTES as u64, 0, "all was taken back");
    Heap::refuse_nth(1);
    let whole = put(&mut ring, &pattern(0, PAGE_BYTES));
    Heap::refuse_none();
    assert_eq!(whole, Ok(PAGE_BYTES), "it needs the kept page only");
}

#[test]
fn a_put_that_failed_leaves_no_page_behind() {
    let mut ring = Ring::new(1);
    let bytes = pattern(0, 10);
    let mut broken = Failing {
        bytes: &bytes,
        good: 0,
    };
    assert_eq!(ring.put(&mut broken, 10), Err(Refusal::Torn));
    assert!(ring.is_empty());
    // The page is the one that is kept, which a larger ring keeps too.
    assert_eq!(ring.grow(2 * PAGE_BYTES), Ok(()));
    Heap::refuse_nth(1);
    let again = put(&mut ring, &bytes);
    Heap::refuse_none();
    assert_eq!(again, Ok(10));
    assert_eq!(take(&mut ring, 10), bytes);
}

#[test]
fn a_put_that_fails_half_way_keeps_what_came_before() {
    let mut ring = Ring::new(3);
    let bytes = pattern(0, 2 * PAGE_BYTES);
    let mut broken = Failing {
        bytes: &bytes,
        good: PAGE_BYTES,
    };
    let taken = ring.put(&mut broken, bytes.len());
    assert_eq!(taken, Ok(PAGE_BYTES));
    assert_eq!(take(&mut ring, bytes.len()), bytes[..PAGE_BYTES]);
}

#[test]
fn a_ring_grows_around_what_it_has() {
    let half = PAGE_BYTES / 2;
    for (pages, skipped, held) in [
        (2, 0, PAGE_BYTES + half),
        (2, 0, 2 * PAGE_BYTES),
        (2, half, PAGE_BYTES + half),
        (3, PAGE_BYTES + 1, 2 * PAGE_BYTES - 1),
        (2, 0, 0),
    ] {
        let mut ring = Ring::new(pages);
        let bytes = pattern(0, skipped + held);
        assert_eq!(put(&mut ring, &bytes), Ok(bytes.len()));
        ring.skip(skipped);
        let tail = ring.tail();
        assert_eq!(ring.grow(4 * PAGE_BYTES + 1), Ok(()));
        assert_eq!((ring.capacity(), ring.tail()), (8 * PAGE_BYTES, tail));
        let more = pattern(7, ring.room());
        assert_eq!(put(&mut ring, &more), Ok(more.len()));
        assert_eq!(take(&mut ring, held), bytes[skipped..]);
        assert_eq!(take(&mut ring, more.len()), more);
    }
}

#[test]
fn a_page_with_both_ends_becomes_two_when_a_ring_grows() {
    let (mut ring, bytes) = with_both_ends(2, 100);
    assert_eq!(ring.grow(3 * PAGE_BYTES), Ok(()));
    assert_eq!(ring.capacity(), 4 * PAGE_BYTES);
    let more = pattern(9, 2 * PAGE_BYTES);
    assert_eq!(put(&mut ring, &more), Ok(more.len()));
    assert_eq!(take(&mut ring, bytes.len()), bytes);
    assert_eq!(take(&mut ring, more.len()), more);
}

#[test]
fn a_ring_that_cannot_grow_is_as_it_was() {
    for nth in 1..=2 {
        let (mut ring, bytes) = with_both_ends(2, 100);
        Heap::refuse_nth(nth);
        let grown = ring.grow(3 * PAGE_BYTES);
        Heap::refuse_none();
        assert_eq!(grown, Err(NoMemory));
        assert_eq!(ring.capacity(), 2 * PAGE_BYTES);
        assert_eq!(take(&mut ring, 3 * PAGE_BYTES), bytes);
    }
}

#[test]
fn a_ring_that_is_large_enough_does_not_grow() {
    let mut ring = Ring::new(3);
    assert_eq!(ring.grow(3 * PAGE_BYTES), Ok(()));
    assert_eq!(ring.grow(1), Ok(()));
    assert_eq!(ring.capacity(), 3 * PAGE_BYTES);
    assert_eq!(Ring::new(0).capacity(), PAGE_BYTES, "one page at least");
}

#[test]
fn a_ring_shrinks_around_what_it_has_or_not_at_all() {
    let mut ring = Ring::new(4);
    let bytes = pattern(0, 2 * PAGE_BYTES + 10);
    assert_eq!(put(&mut ring, &bytes), Ok(bytes.len()));
    ring.skip(PAGE_BYTES);
    let (head, tail) = (ring.head(), ring.tail());
    assert_eq!(ring.resize(1), Err(Refusal::DoesNotFit));
    assert_eq!(ring.resize(2), Ok(()));
    assert_eq!((ring.head(), ring.tail()), (head, tail), "positions stay");
    assert_eq!(take(&mut ring, bytes.len()), bytes[PAGE_BYTES..]);
}
