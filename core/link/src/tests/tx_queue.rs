//! Frames wait for a card's room, in order, and not without bound.

use alloc::vec::Vec;

use base::Instant;
use hal::{Capabilities, FramePort, PortCounters, Stall};
use mbuf::{HeapPool, RxFrame, TxFrame};

use crate::testing::{bytes_of, chain};
use crate::tx_queue::{FRAMES_MAX, TxQueue};

/// A card that works frames off when the host lets it, and only those that it was told of.
#[derive(Default)]
struct Card {
    descriptors: usize,
    queued: Vec<TxFrame>,
    told: usize,
    sent: Vec<u32>,
}

impl Card {
    fn with(descriptors: usize) -> Self {
        Self {
            descriptors,
            ..Self::default()
        }
    }

    /// The host has time for so many frames.
    fn work(&mut self, frames: usize) {
        let frames = frames.min(self.told);
        self.told -= frames;
        let sent = self.queued.drain(..frames);
        self.sent.extend(sent.map(|frame| number_of(&frame)));
    }
}

impl FramePort for Card {
    fn mac(&self) -> [u8; 6] {
        [2; 6]
    }
    fn mtu(&self) -> u16 {
        1500
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
    fn transmit(&mut self, frame: TxFrame) -> Result<(), TxFrame> {
        if self.queued.len() == self.descriptors {
            return Err(frame);
        }
        self.queued.push(frame);
        Ok(())
    }
    fn kick(&mut self) {
        self.told = self.queued.len();
    }
    fn receive(&mut self, _: usize, _: &mut dyn FnMut(RxFrame)) -> usize {
        0
    }
    fn unsent(&mut self) -> usize {
        self.queued.len()
    }
    fn reclaim(&mut self) {}
    fn has_received(&mut self) -> bool {
        false
    }
    fn arm(&mut self) -> bool {
        false
    }
    fn disarm(&mut self) {}
    fn counters(&mut self) -> PortCounters {
        PortCounters::default()
    }
    fn watch(&mut self, _: Instant) -> Option<Stall> {
        None
    }
}

fn numbered(pool: &HeapPool, number: u32) -> TxFrame {
    TxFrame {
        chain: chain(pool, &number.to_be_bytes()),
        ..TxFrame::default()
    }
}

fn number_of(frame: &TxFrame) -> u32 {
    let bytes = bytes_of(&frame.chain).try_into();
    u32::from_be_bytes(bytes.expect("a number"))
}

fn send(queue: &mut TxQueue, card: &mut Card, frame: TxFrame) -> Result<(), TxFrame> {
    queue.send(card, frame, || false)
}

#[test]
fn a_burst_beyond_the_cards_room_leaves_whole_and_in_order() {
    let (pool, mut card, mut queue) = (HeapPool::new(2048), Card::with(8), TxQueue::new());
    for number in 0..100 {
        assert!(send(&mut queue, &mut card, numbered(&pool, number)).is_ok());
    }
    assert_eq!(queue.len(), 92);
    while card.sent.len() < 100 {
        card.work(3);
        assert!(queue.flush(&mut card) || queue.is_empty());
        card.kick();
    }
    assert!(card.sent.into_iter().eq(0..100));
}

#[test]
fn a_card_without_room_is_told_of_what_it_has() {
    let (pool, mut card, mut queue) = (HeapPool::new(2048), Card::with(8), TxQueue::new());
    for number in 0..9 {
        assert!(send(&mut queue, &mut card, numbered(&pool, number)).is_ok());
    }
    assert_eq!(card.told, 8, "or it would never have room again");
}

#[test]
fn a_frame_beyond_the_bound_comes_back_until_one_has_left() {
    let (pool, mut card, mut queue) = (HeapPool::new(2048), Card::with(1), TxQueue::new());
    for number in 0..=FRAMES_MAX as u32 {
        assert!(send(&mut queue, &mut card, numbered(&pool, number)).is_ok());
    }
    let back = send(&mut queue, &mut card, numbered(&pool, 4711));
    assert_eq!(back.map_err(|frame| number_of(&frame)), Err(4711));
    assert!(!queue.flush(&mut card), "the card has sent nothing");
    card.work(1);
    assert!(send(&mut queue, &mut card, numbered(&pool, 4712)).is_ok());
    assert_eq!(card.told, 1, "the next one has the place that is free");
    assert_eq!(queue.len(), FRAMES_MAX);
}

#[test]
fn nothing_begins_to_wait_while_memory_is_scarce() {
    let (pool, mut card, mut queue) = (HeapPool::new(2048), Card::with(1), TxQueue::new());
    assert!(send(&mut queue, &mut card, numbered(&pool, 0)).is_ok());
    assert!(queue.send(&mut card, numbered(&pool, 1), || true).is_err());
    assert!(send(&mut queue, &mut card, numbered(&pool, 2)).is_ok());
    assert!(queue.send(&mut card, numbered(&pool, 3), || true).is_err());
    assert_eq!(queue.len(), 1);
}

#[test]
fn a_port_whose_frames_wait_elsewhere_gets_none_again() {
    let (pool, mut card, mut queue) = (HeapPool::new(2048), Card::with(1), TxQueue::none());
    assert!(send(&mut queue, &mut card, numbered(&pool, 0)).is_ok());
    assert!(send(&mut queue, &mut card, numbered(&pool, 1)).is_err());
    assert!(queue.is_empty() && card.told == 0);
}

#[test]
fn those_that_wait_can_be_taken_elsewhere() {
    let (pool, mut card, mut queue) = (HeapPool::new(2048), Card::with(1), TxQueue::new());
    for number in 0..4 {
        assert!(send(&mut queue, &mut card, numbered(&pool, number)).is_ok());
    }
    assert!(queue.take().map(|frame| number_of(&frame)).eq(1..4));
    assert!(queue.is_empty());
}
