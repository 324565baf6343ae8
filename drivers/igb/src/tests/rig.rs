//! A card and its driver.

extern crate std;

use std::vec::Vec;

use hal::sim::SimMemory;
use hal::{FramePort, NicParts, QueuePair, Registers};
use mbuf::FreeList;

use super::model::{Model, Window};
use crate::registers::BYTES;
use crate::{Control, Error, Pair};

pub(super) const MAC: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];

pub(super) struct Rig {
    pub(super) window: Window,
    pub(super) memory: SimMemory,
    pub(super) pool: &'static FreeList,
}

impl Rig {
    pub(super) fn new(buffers: usize) -> Self {
        let memory = SimMemory::new();
        let pool = match buffers {
            0 => std::boxed::Box::leak(std::boxed::Box::default()),
            _ => memory.packet_pool(buffers),
        };
        Self {
            window: Window::new(Model::new(memory.clone()), BYTES),
            memory,
            pool,
        }
    }

    pub(super) fn start(&self, pairs: u16) -> Result<(Vec<Pair<Window>>, Control<Window>), Error> {
        let parts = crate::start(self.window.clone(), &self.memory, self.pool, pairs);
        parts.map(|NicParts { pairs, control }| (pairs, control))
    }

    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Model) -> T) -> T {
        work(&mut self.window.model.borrow_mut())
    }

    /// What the driver did against the rules.
    pub(super) fn assert_no_complaints(&self) {
        self.with(|model| assert_eq!(model.complaints, Vec::<std::string::String>::new()));
    }
}

/// Takes up to 64 frames out of a pair.
pub(super) fn receive(pair: &mut Pair<Window>) -> Vec<Vec<u8>> {
    let mut got = Vec::new();
    pair.receive(64, &mut |frame| {
        got.push(frame.chain.as_single().unwrap().to_vec())
    });
    got
}

/// What the card knows of a frame.
pub(super) struct Noted {
    pub(super) hash: Option<u32>,
    pub(super) tag: Option<u16>,
}

/// As [`receive`], with what the card knows of them.
pub(super) fn receive_noted<R: Registers>(pair: &mut Pair<R>) -> Vec<(Vec<u8>, Noted)> {
    let mut got = Vec::new();
    pair.receive_noted(64, &mut |frame, notes| {
        let (hash, tag) = (notes.hash, frame.tag);
        let bytes = frame.chain.as_single().unwrap().to_vec();
        got.push((bytes, Noted { hash, tag }));
    });
    got
}
