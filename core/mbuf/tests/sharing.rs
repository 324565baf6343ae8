//! Buffers keep their invariants whatever is shared, cut and joined.

use mbuf::{BLOCK_CAPACITY, Chain, HeapPool, Mbuf, Pool};

fn filled(pool: &HeapPool, headroom: usize, bytes: &[u8]) -> Mbuf {
    let mut buffer = pool.alloc().expect("pool has room");
    buffer.reserve(headroom);
    assert_eq!(buffer.append(bytes), bytes.len());
    buffer
}

fn collect(chain: &Chain) -> Vec<u8> {
    chain.slices().flatten().copied().collect()
}

#[test]
fn blocks_go_home_when_the_last_slice_goes() {
    let pool = HeapPool::new(2);
    let one = filled(&pool, 0, b"abc");
    let two = one.clone();
    drop(one);
    assert_eq!(pool.used(), 1);
    assert_eq!(two.bytes(), b"abc");
    drop(two);
    assert_eq!(pool.used(), 0);
}

#[test]
fn an_exhausted_pool_says_so() {
    let pool = HeapPool::new(1);
    let held = pool.alloc();
    assert!(held.is_some() && pool.alloc().is_none());
}

#[test]
fn shared_bytes_are_not_writable() {
    let pool = HeapPool::new(1);
    let mut one = filled(&pool, 16, b"abc");
    assert!(one.bytes_mut().is_some());
    let two = one.clone();
    assert!(one.bytes_mut().is_none());
    drop(two);
    assert!(one.bytes_mut().is_some());
}

#[test]
fn a_header_goes_in_front_of_shared_bytes_once() {
    let pool = HeapPool::new(1);
    let mut queued = filled(&pool, 16, b"payload");
    let mut frame = queued.share_with_headroom();
    frame.prepend(3).expect("headroom").copy_from_slice(b"hdr");
    assert_eq!(frame.bytes(), b"hdrpayload");
    assert_eq!(queued.bytes(), b"payload");
    assert_eq!(queued.headroom(), 0, "the headroom has been handed over");
    drop(frame);
    assert_eq!(queued.headroom(), 16, "and is back when the frame is gone");
}

#[test]
fn a_stream_grows_behind_bytes_in_flight() {
    let pool = HeapPool::new(1);
    let mut queued = filled(&pool, 0, b"one");
    let mut flying = queued.clone();
    assert_eq!(flying.append(b"bad"), 0);
    assert_eq!(queued.append(b"two"), 3);
    assert_eq!(
        (flying.bytes(), queued.bytes()),
        (&b"one"[..], &b"onetwo"[..])
    );
}

#[test]
fn a_truncated_slice_never_writes_over_its_sibling() {
    let pool = HeapPool::new(1);
    let mut whole = filled(&pool, 8, b"abcdef");
    let mut front = whole.split_to(3);
    assert_eq!((front.bytes(), whole.bytes()), (&b"abc"[..], &b"def"[..]));
    assert_eq!(front.append(b"x"), 0);
    assert!(whole.prepend(1).is_none());
    assert_eq!(front.headroom(), 8);
    assert_eq!(whole.append(b"ghi"), 3);
    assert_eq!(whole.bytes(), b"defghi");
}

#[test]
fn device_addresses_follow_the_slice() {
    let pool = HeapPool::new(1);
    let mut buffer = filled(&pool, 0, &[0; 100]);
    let start = buffer.device_addr();
    buffer.advance(10);
    assert_eq!(buffer.device_addr() - start, 10);
    assert_eq!(buffer.tailroom(), BLOCK_CAPACITY - 100);
}

#[test]
fn chains_cut_join_and_share_at_any_byte() {
    let pool = HeapPool::new(16);
    let model: Vec<u8> = (0..40).collect();
    for parts in 1..10 {
        for cut in 0..=40 {
            let mut chain = Chain::new();
            for piece in model.chunks(40_usize.div_ceil(parts)) {
                chain.push_back(filled(&pool, 4, piece));
            }
            let shared = chain.share(cut / 2, 20);
            assert_eq!(collect(&shared), &model[cut / 2..(cut / 2 + 20).min(40)]);
            let flying = chain.share_front_with_headroom(cut);
            assert_eq!(collect(&flying), &model[..cut]);
            let mut front = chain.split_to(cut);
            assert_eq!((front.len(), chain.len()), (cut, 40 - cut));
            assert_eq!(collect(&front), &model[..cut]);
            assert_eq!(collect(&chain), &model[cut..]);
            front.append(chain);
            assert_eq!(collect(&front), model);
            front.advance(cut);
            assert_eq!(collect(&front), &model[cut..]);
            let mut copy = [0; 7];
            let copied = front.copy_to_slice(3, &mut copy);
            assert_eq!(
                copy[..copied],
                model[(cut + 3).min(40)..(cut + 3 + copied).min(40)]
            );
        }
    }
    assert_eq!(pool.used(), 0);
}

#[test]
fn a_chain_is_filled_in_place_and_keeps_its_tail() {
    let pool = HeapPool::new(1);
    let mut chain = Chain::from(filled(&pool, 0, b"a"));
    let written = chain.fill_in_place(10, |space| {
        space[..2].copy_from_slice(b"bc");
        2
    });
    assert_eq!(written, 2);
    let flying = chain.share(0, 3);
    assert_eq!(chain.append_in_place(b"d"), 1);
    assert_eq!(
        (collect(&flying), collect(&chain)),
        (b"abc".to_vec(), b"abcd".to_vec())
    );
}
