//! How many frames the host has back, and what to do next about it.
//!
//! The problem: the host asks for so many of the machine's frames, now more and now fewer. Giving all at once would leave
//! the machine without memory that it needs a moment later, and a host that never stops asking must not starve it.
//!
//! The idea: the balloon goes towards what the host asks for in steps of at most [`STEP_FRAMES`], and what is free is
//! looked at before each. Two things stop it short, and it stays short until the host asks again ([`Balloon::ask`]), be it
//! for the same:
//! - the *floor*: frames that stay free whatever the host asks for ([`floor_of`]). Caches shrink once before that counts;
//! - the machine's own need: who finds no memory takes frames back ([`Balloon::take_back`]).
//!
//! Invariants: `held` is what [`Balloon::grew`] and [`Balloon::shrank`] said; a step never leads past the target, nor
//! below the floor as it was at the look.
//!
//! Not here: the frames, the device (`drivers/virtio-balloon`), threads (`kernel/mm`).
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

/// Frames of a step, and so of one request to the device: one MiB.
pub const STEP_FRAMES: usize = 256;

/// At least so many frames of the machine's stay free: 4 MiB.
const FLOOR_MIN: u64 = 1024;
/// One frame in so many stays free.
const FLOOR_SHARE: u64 = 16;

/// Frames that stay free in a machine of `total` frames whose allocator keeps `reserve` to itself.
pub const fn floor_of(total: u64, reserve: u64) -> u64 {
    let share = total / FLOOR_SHARE;
    let least = reserve + FLOOR_MIN;
    if share > least { share } else { least }
}

/// What is to be done next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Give the host so many frames more.
    Grow(usize),
    /// Take so many back.
    Shrink(usize),
    /// Have caches give up what they can, and look again.
    ShrinkCaches,
    /// Nothing, until somebody asks.
    Rest,
}

/// The balloon, in frames; at first an empty one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Balloon {
    target: u64,
    held: u64,
    /// Where it was stopped short, until the host asks again.
    ceiling: Option<u64>,
    /// Since the host asked last.
    have_caches_shrunk: bool,
}

impl Balloon {
    /// The host asks for so many, once more perhaps: what stopped the balloon before is tried again.
    pub fn ask(&mut self, target: u64) {
        self.target = target;
        self.ceiling = None;
        self.have_caches_shrunk = false;
    }

    /// Frames that the host has.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// What to do, where so many frames are free of which `floor` stay so.
    pub fn step(&mut self, free: u64, floor: u64) -> Step {
        let wanted = self.target.min(self.ceiling.unwrap_or(u64::MAX));
        let at_most = |frames: u64| frames.min(STEP_FRAMES as u64) as usize;
        if self.held > wanted {
            return Step::Shrink(at_most(self.held - wanted));
        }
        if self.held == wanted {
            return Step::Rest;
        }
        match at_most((wanted - self.held).min(free.saturating_sub(floor))) {
            0 if self.have_caches_shrunk => {
                self.stop();
                Step::Rest
            }
            0 => {
                self.have_caches_shrunk = true;
                Step::ShrinkCaches
            }
            frames => Step::Grow(frames),
        }
    }

    /// The host has so many more.
    pub fn grew(&mut self, frames: usize) {
        self.held += frames as u64;
    }

    /// It has so many fewer.
    pub fn shrank(&mut self, frames: usize) {
        self.held = self.held.saturating_sub(frames as u64);
    }

    /// The machine needs so many itself, now and until the host asks again.
    pub fn take_back(&mut self, frames: u64) {
        let ceiling = self.held.min(self.ceiling.unwrap_or(u64::MAX));
        self.ceiling = Some(ceiling.saturating_sub(frames));
    }

    /// No more frames are to be had: it grows no further until the host asks again.
    pub fn stop(&mut self) {
        self.ceiling = Some(self.held);
    }
}
