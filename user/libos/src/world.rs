//! What the stack sees of a queue ([`Env`]).

use std::collections::VecDeque;

use base::Instant;
use inet::{Endpoint, Env, Events, SocketId};
use mbuf::{Chain, Mbuf, TxFrame};
use rt::FrameIo;

use crate::readiness::Readiness;
use crate::station::BATCH_FRAMES;

/// Random words that are asked for at once.
const WORDS: usize = 32;
const WORD_BYTES: usize = size_of::<u64>();

/// The stack's [`Env`]: a queue's clock, frames and packet memory.
pub struct World<P> {
    /// The time of the batch.
    pub(crate) now: Instant,
    /// Frames and packet memory.
    pub(crate) io: P,
    /// Datagrams that came for sockets with nothing queued, in their order, and a batch of frames at
    /// most: the program takes them next, so they see no queue.
    pub(crate) datagrams: VecDeque<(SocketId, Endpoint, Chain)>,
    /// Sockets with something for the program.
    pub(crate) readiness: Readiness,
    random: Vec<u64>,
}

impl<P> World<P> {
    /// Around what moves the frames.
    pub(crate) fn new(io: P) -> Self {
        Self {
            now: Instant::START,
            io,
            datagrams: VecDeque::with_capacity(BATCH_FRAMES),
            readiness: Readiness::default(),
            random: Vec::new(),
        }
    }
}

/// Words that nobody can guess. The system gives them always: it waits for its first ones only.
fn random_words() -> Vec<u64> {
    let mut bytes = [0; WORDS * WORD_BYTES];
    rt::random(&mut bytes).expect("the system has a generator");
    let (words, _) = bytes.as_chunks::<WORD_BYTES>();
    words.iter().map(|word| u64::from_ne_bytes(*word)).collect()
}

impl<P: FrameIo> Env for World<P> {
    #[inline]
    fn now(&self) -> Instant {
        self.now
    }

    fn random(&mut self) -> u64 {
        if self.random.is_empty() {
            self.random = random_words();
        }
        self.random.pop().unwrap_or_default()
    }

    #[inline]
    fn alloc(&mut self) -> Option<Mbuf> {
        self.io.alloc()
    }

    #[inline]
    fn alloc_to_queue(&mut self) -> Option<Mbuf> {
        self.io.alloc_to_queue()
    }

    #[inline]
    fn is_scarce(&self) -> bool {
        self.io.is_scarce()
    }

    #[inline]
    fn transmit(&mut self, frame: TxFrame) {
        self.io.send(frame);
    }

    #[inline]
    fn take_datagram(&mut self, socket: SocketId, from: Endpoint, payload: &mut Chain) -> bool {
        let is_taken = self.datagrams.len() < BATCH_FRAMES && self.readiness.is_udp(socket);
        if is_taken {
            let payload = std::mem::take(payload);
            self.datagrams.push_back((socket, from, payload));
        }
        is_taken
    }

    #[inline]
    fn wake(&mut self, socket: SocketId, _events: Events) {
        self.readiness.note(socket);
    }
}
