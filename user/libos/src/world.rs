//! What the stack sees of a queue ([`Env`]).

use base::Instant;
use inet::{Env, Events, SocketId};
use mbuf::{Mbuf, TxFrame};
use rt::FrameIo;

use crate::readiness::Readiness;

/// Random words that are asked for at once.
const WORDS: usize = 32;
const WORD_BYTES: usize = size_of::<u64>();

/// The stack's [`Env`]: a queue's clock, frames and packet memory.
pub struct World<P> {
    /// The time of the batch.
    pub(crate) now: Instant,
    /// Frames and packet memory.
    pub(crate) io: P,
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
    fn wake(&mut self, socket: SocketId, _events: Events) {
        self.readiness.note(socket);
    }
}
