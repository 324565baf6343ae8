//! Buffers go to the kernel and come back, whole, and none is lost.

use base::SharedMemory;
use mbuf::{Chain, HeapPool, Mbuf, Pool};
use rt::simulated::{SimulatedKernel, SimulatedRing};
use rt::{Count, Exchange};

const CHUNKS: usize = 32;
const ENTRIES: u32 = 8;

fn world() -> (SimulatedKernel, Exchange<SimulatedRing>) {
    let (kernel, mut exchange) = SimulatedKernel::new(CHUNKS, 4, ENTRIES).unwrap();
    exchange.supply();
    (kernel, exchange)
}

fn frame(number: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| number.wrapping_add(at as u8)).collect()
}

fn filled(mut buffer: Mbuf, bytes: &[u8]) -> Mbuf {
    assert_eq!(buffer.append(bytes), bytes.len());
    buffer
}

fn take<M: SharedMemory>(exchange: &mut Exchange<M>) -> Option<Mbuf> {
    let taken = exchange.take();
    exchange.received();
    taken
}

#[test]
fn a_received_frame_is_a_buffer_where_the_kernel_wrote_it() {
    let (mut kernel, mut exchange) = world();
    assert_eq!(exchange.umem().free(), CHUNKS - ENTRIES as usize);
    for len in [14, 60, 1514, 1792] {
        assert!(kernel.deliver(&mut exchange, &frame(1, len)));
        let buffer = take(&mut exchange).unwrap();
        assert_eq!(buffer.bytes(), frame(1, len));
        assert_eq!(
            exchange.umem().offset_of(&buffer),
            Some(buffer.device_addr().0)
        );
        assert!(buffer.is_unique());
    }
    assert!(!kernel.deliver(&mut exchange, &frame(1, 1793)));
    assert!(take(&mut exchange).is_none());
}

#[test]
fn a_program_that_keeps_its_frames_gets_no_more_until_it_lets_go() {
    let (mut kernel, mut exchange) = world();
    let mut kept = Vec::new();
    for number in 0..CHUNKS {
        assert!(kernel.deliver(&mut exchange, &frame(number as u8, 100)));
        kept.extend(take(&mut exchange));
        exchange.supply();
    }
    assert!(!kernel.deliver(&mut exchange, &frame(0, 100)));
    for (number, buffer) in kept.iter().enumerate() {
        assert_eq!(buffer.bytes(), frame(number as u8, 100));
    }
    kept.clear();
    exchange.supply();
    assert!(kernel.deliver(&mut exchange, &frame(0, 100)));
}

#[test]
fn a_frame_in_one_piece_is_sent_from_where_it_lies() {
    let (mut kernel, mut exchange) = world();
    let free = exchange.umem().free();
    let buffer = filled(exchange.umem().alloc().unwrap(), &frame(9, 60));
    exchange.stage_frame(Chain::from(buffer));
    assert!(kernel.transmit(&exchange, 64).is_empty());
    assert!(exchange.submit());
    assert_eq!(exchange.in_flight(), 1);
    assert_eq!(kernel.transmit(&exchange, 64), [frame(9, 60)]);
    assert_eq!(exchange.umem().free(), free - 1);
    exchange.complete();
    assert_eq!((exchange.in_flight(), exchange.umem().free()), (0, free));
    assert_eq!(exchange.counts().get(Count::Gathered), 0);
}

#[test]
fn pieces_and_foreign_memory_are_gathered_and_counted() {
    let (mut kernel, mut exchange) = world();
    let foreign = HeapPool::new(2);
    let bytes = frame(3, 300);
    let mut torn = Chain::from(filled(exchange.umem().alloc().unwrap(), &bytes[..50]));
    torn.push_back(filled(foreign.alloc().unwrap(), &bytes[50..]));
    exchange.stage_frame(torn);
    exchange.stage_frame(Chain::from(filled(foreign.alloc().unwrap(), &bytes)));
    exchange.submit();
    assert_eq!(kernel.transmit(&exchange, 64), [bytes.clone(), bytes]);
    assert_eq!(exchange.counts().get(Count::Gathered), 2);
    assert_eq!(foreign.used(), 0);
}

#[test]
fn a_buffer_that_is_sent_twice_stays_until_the_kernel_has_read_both() {
    let (mut kernel, mut exchange) = world();
    let free = exchange.umem().free();
    let mut kept = filled(exchange.umem().alloc().unwrap(), &frame(5, 80));
    for _ in 0..2 {
        exchange.stage_frame(Chain::from(kept.clone()));
    }
    exchange.submit();
    assert_eq!(kernel.transmit(&exchange, 1).len(), 1);
    exchange.complete();
    assert!(kept.bytes_mut().is_none(), "one of them was not read yet");
    assert_eq!(kernel.transmit(&exchange, 1), [frame(5, 80)]);
    exchange.complete();
    assert!(kept.bytes_mut().is_some());
    drop(kept);
    assert_eq!(exchange.umem().free(), free);
}

#[test]
fn what_cannot_be_sent_is_dropped_for_a_reason() {
    let (mut kernel, mut exchange) = world();
    let foreign = HeapPool::new(40);
    let alone = |len| Chain::from(filled(foreign.alloc().unwrap(), &frame(0, len)));
    exchange.stage_frame(alone(13));
    let mut long = alone(1900);
    long.append(alone(1900));
    exchange.stage_frame(long);
    for _ in 0..ENTRIES + 3 {
        exchange.stage_frame(alone(60));
    }
    exchange.submit();
    let counts = exchange.counts().clone();
    assert_eq!(counts.get(Count::BadLength), 2);
    assert_eq!(counts.get(Count::TxFull), 3);
    assert_eq!(counts.get(Count::Sent), u64::from(ENTRIES));
    assert_eq!(kernel.transmit(&exchange, 64).len(), ENTRIES as usize);
    exchange.complete();
    let kept: Vec<_> = std::iter::from_fn(|| exchange.umem().alloc()).collect();
    exchange.stage_frame(alone(60));
    assert_eq!(exchange.counts().get(Count::NoChunk), 1);
    drop(kept);
}

#[test]
fn a_buffer_may_outlive_its_exchange() {
    let (mut kernel, mut exchange) = world();
    assert!(kernel.deliver(&mut exchange, &frame(7, 200)));
    let buffer = take(&mut exchange).unwrap();
    drop(exchange);
    assert_eq!(buffer.bytes(), frame(7, 200));
}
