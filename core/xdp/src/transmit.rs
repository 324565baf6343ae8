//! From the program to a link: the tx ring says where frames are, the completion ring which are sent.
//!
//! A call takes what is in the ring when it is made, in turns. A turn first only reads
//! ([`Sender::read`]): while the link takes no frames, nothing has happened. What the link took is
//! then [completed](Sender::complete), by the addresses that were read, whatever the ring says now.

use base::SharedMemory;

use crate::descriptor::Descriptor;
use crate::ring::{Consumer, Geometry, NEED_WAKEUP, Producer, offset};
use crate::umem::Umem;

/// Entries of a turn.
pub const TURN_FRAMES: usize = 64;

/// The kernel's ends of the tx and completion rings.
#[derive(Debug)]
pub struct Sender {
    umem: Umem,
    ring: Consumer,
    completion: Producer,
    /// Behind the last entry that a call asked to be sent.
    end: u32,
    sent: u64,
    invalid: u64,
    empty: u64,
}

/// What a turn has read.
#[derive(Debug)]
pub struct Turn {
    addresses: [u64; TURN_FRAMES],
    frames: usize,
    entries: u32,
}

impl Turn {
    /// Whether it has read nothing.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }
}

impl Sender {
    /// Both rings are empty.
    pub fn new(umem: Umem, ring: Geometry, completion: Geometry) -> Self {
        Self {
            umem,
            ring: Consumer::new(ring),
            completion: Producer::new(completion),
            end: 0,
            sent: 0,
            invalid: 0,
            empty: 0,
        }
    }

    /// Says in the tx ring that frames are sent when the program calls.
    pub fn ask_for_calls(&self, ring: &impl SharedMemory) {
        ring.store(offset::FLAGS, NEED_WAKEUP);
    }

    /// The program asks that all be sent that is in the ring now.
    pub fn kick(&mut self, ring: &impl SharedMemory) {
        let given = self.ring.given(ring);
        self.end = self.ring.position().wrapping_add(given);
        if given == 0 {
            self.empty += 1;
        }
    }

    /// Entries that were asked for and are not taken yet.
    pub fn asked(&self) -> u32 {
        self.end.wrapping_sub(self.ring.position())
    }

    /// Reads the next entries, as many as a turn takes and the completion ring has room for.
    /// `frame` gets each frame, and ends the turn before it by `false`.
    pub fn read(
        &self,
        ring: &impl SharedMemory,
        completion: &impl SharedMemory,
        mut frame: impl FnMut(Descriptor) -> bool,
    ) -> Turn {
        let mut turn = Turn {
            addresses: [0; TURN_FRAMES],
            frames: 0,
            entries: 0,
        };
        let room = (self.completion.room(completion) as usize).min(TURN_FRAMES);
        let most = self.asked().min(TURN_FRAMES as u32);
        while turn.entries < most {
            let next = self.ring.descriptor(ring, turn.entries);
            if self.umem.holds(next) {
                let place = turn.addresses.get_mut(..room);
                let place = place.and_then(|places| places.get_mut(turn.frames));
                let Some(place) = place.filter(|_| frame(next)) else {
                    break;
                };
                *place = next.address;
                turn.frames += 1;
            }
            turn.entries += 1;
        }
        turn
    }

    /// The link took the frames of a turn: their chunks are the program's again.
    pub fn complete(
        &mut self,
        ring: &impl SharedMemory,
        completion: &impl SharedMemory,
        turn: &Turn,
    ) {
        let sent = turn.addresses.iter().take(turn.frames);
        sent.for_each(|address| self.completion.put_address(completion, *address));
        self.sent += turn.frames as u64;
        self.invalid += u64::from(turn.entries) - turn.frames as u64;
        self.ring.advance(turn.entries);
        self.ring.publish(ring);
        self.completion.publish(completion);
    }

    /// Whether the program has room for a good number of frames: half the ring.
    pub fn is_writable(&self, ring: &impl SharedMemory) -> bool {
        self.ring.given(ring) <= self.ring.entries() / 2
    }

    /// Entries of the tx and completion rings that wait for their other ends.
    pub fn filled(&self, ring: &impl SharedMemory, completion: &impl SharedMemory) -> (u32, u32) {
        (self.ring.given(ring), self.completion.filled(completion))
    }

    /// Frames that the link took, or that its program was not to send.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Entries that were no frames.
    pub fn invalid(&self) -> u64 {
        self.invalid
    }

    /// Calls that found nothing.
    pub fn empty(&self) -> u64 {
        self.empty
    }
}
