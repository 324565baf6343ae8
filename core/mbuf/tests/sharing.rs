//! Buffers keep their invariants whatever is shared, cut and joined.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::DeviceAddr;
use mbuf::{
    BLOCK_BYTES, BLOCK_CAPACITY, Chain, ExternalStorage, FreeList, HeapPool, MAGAZINE_BLOCKS,
    Magazine, Mbuf, Pool,
};

fn filled(pool: &HeapPool, headroom: usize, bytes: &[u8]) -> Mbuf {
    let mut buffer = pool.alloc().expect("pool has room");
    buffer.reserve(headroom);
    assert_eq!(buffer.append(bytes), bytes.len());
    buffer
}

/// The bytes of a chain that counts its parts right.
fn collect(chain: &Chain) -> Vec<u8> {
    assert_eq!(chain.slices().count(), chain.parts());
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
            let mut moved = Chain::new();
            front.move_front(cut, &mut moved);
            front.move_front(3, &mut moved);
            assert_eq!(collect(&moved), &model[..(cut + 3).min(40)]);
            assert_eq!(collect(&front), &model[(cut + 3).min(40)..]);
            moved.append(front);
            let mut front = moved;
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

/// Memory of the test's, and whether it has come back.
struct Lender {
    memory: Box<[u8]>,
    returned: Arc<AtomicBool>,
}

// SAFETY: a box does not move its bytes, and nobody writes them.
unsafe impl ExternalStorage for Lender {
    fn memory(&self) -> NonNull<[u8]> {
        NonNull::from(&*self.memory)
    }

    fn device(&self) -> DeviceAddr {
        DeviceAddr(0x1000)
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        self.returned.store(true, Ordering::SeqCst);
    }
}

fn lent(bytes: &[u8]) -> (Mbuf, Arc<AtomicBool>) {
    let returned = Arc::new(AtomicBool::new(false));
    let lender = Lender {
        memory: bytes.into(),
        returned: returned.clone(),
    };
    (Mbuf::lent(lender).expect("memory"), returned)
}

#[test]
fn a_loan_ends_with_its_last_slice() {
    let (mut loan, returned) = lent(b"on loan to a packet");
    loan.advance(3);
    assert_eq!(loan.device_addr(), DeviceAddr(0x1003));
    let mut chain = Chain::from(loan);
    let flying = chain.share(5, 2);
    let front = chain.split_to(4);
    assert_eq!(
        (collect(&front), collect(&flying)),
        (b"loan".to_vec(), b"to".to_vec())
    );
    drop((chain, front));
    assert!(!returned.load(Ordering::SeqCst), "a frame is in flight");
    drop(flying);
    assert!(returned.load(Ordering::SeqCst));
}

#[test]
fn nobody_writes_into_a_loan_or_around_its_slices() {
    let (mut loan, _) = lent(b"0123456789");
    assert!(loan.bytes_mut().is_none() && !loan.is_unique());
    loan.advance(4);
    loan.truncate(2);
    let mut rest = loan.split_to(1);
    for part in [&mut loan, &mut rest] {
        assert_eq!((part.headroom(), part.tailroom()), (0, 0));
        assert!(part.prepend(1).is_none() && part.extend(1).is_none());
        part.shrink_to(1);
        assert_eq!(
            (part.append(b"x"), part.share_with_headroom().headroom()),
            (0, 0)
        );
    }
    let mut chain = Chain::from(rest);
    assert!(chain.prepend(1).is_none());
    assert_eq!((chain.back_room(), chain.append_in_place(b"x")), (0, 0));
    assert_eq!(collect(&chain), b"4");
}

thread_local! {
    /// Which CPU a thread of a test plays.
    static CPU: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// A list of `blocks` with two magazines, for threads that set [`CPU`].
fn list_of_two(blocks: usize) -> &'static FreeList {
    let magazines = Box::leak(Box::new([Magazine::new(), Magazine::new()]));
    // SAFETY: each test lets one thread at a time play a CPU.
    let list = unsafe { FreeList::with_magazines(magazines, || CPU.get()) };
    let list: &'static FreeList = Box::leak(Box::new(list));
    let bytes = blocks * BLOCK_BYTES;
    let memory = vec![0_u128; bytes / 16 + 4].leak();
    let start = memory.as_mut_ptr().cast::<u8>();
    let start = NonNull::new(start.wrapping_add(start.align_offset(64))).expect("memory");
    // SAFETY: leaked, zeroed, aligned to 64 bytes, and long enough.
    unsafe { list.add_region(start, bytes, DeviceAddr(start.addr().get() as u64)) };
    list
}

#[test]
fn blocks_that_a_cpu_frees_stay_with_it_up_to_a_magazine() {
    let list = list_of_two(4 * MAGAZINE_BLOCKS);
    let held: Vec<_> = (0..3 * MAGAZINE_BLOCKS).map(|_| list.alloc()).collect();
    assert_eq!(list.free(), MAGAZINE_BLOCKS);
    drop(held);
    assert_eq!(list.free(), 4 * MAGAZINE_BLOCKS, "all are free again");
    CPU.set(1);
    let others: Vec<_> = std::iter::from_fn(|| list.alloc()).collect();
    CPU.set(0);
    assert!(
        others.len() >= 3 * MAGAZINE_BLOCKS,
        "the rest is everybody's"
    );
    assert_eq!(list.free(), 4 * MAGAZINE_BLOCKS - others.len());
}

#[test]
fn cpus_that_exchange_blocks_lose_none() {
    let list = list_of_two(8 * MAGAZINE_BLOCKS);
    let (give, take) = std::sync::mpsc::channel::<Mbuf>();
    let taker = std::thread::spawn(move || {
        CPU.set(1);
        take.iter().for_each(drop);
    });
    for _ in 0..10_000 {
        match list.alloc() {
            Some(buffer) => give.send(buffer).expect("the taker lives"),
            None => std::thread::yield_now(),
        }
    }
    drop(give);
    taker.join().expect("no panic");
    assert_eq!(list.free(), list.total());
}
