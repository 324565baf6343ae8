//! A SYN that may be answered later.

use core::num::NonZeroU16;

use mbuf::Chain;
use wire::{Seq, TcpFlags, TcpOptions, Timestamps};

use super::segment::Segment;

/// All of a SYN that opening needs.
#[derive(Clone, Copy)]
pub(super) struct Syn {
    seq: Seq,
    clock: u32,
    window: u16,
    mss: Option<NonZeroU16>,
    scale: Option<u8>,
    has_clock: bool,
    has_sack: bool,
}

impl Syn {
    pub fn new(syn: &Segment) -> Self {
        let options = &syn.options;
        Self {
            seq: syn.seq,
            clock: options.timestamps.map_or(0, |stamp| stamp.value),
            window: syn.window,
            mss: options.mss.and_then(NonZeroU16::new),
            scale: options.window_scale,
            has_clock: options.timestamps.is_some(),
            has_sack: options.sack_permitted,
        }
    }

    /// The SYN again, without bytes that may have been behind it and without the offer of ECN.
    pub fn segment(&self) -> Segment {
        let timestamps = self.has_clock.then_some(Timestamps {
            value: self.clock,
            echo: 0,
        });
        Segment {
            seq: self.seq,
            ack: Seq(0),
            flags: TcpFlags::SYN,
            window: self.window,
            options: TcpOptions {
                mss: self.mss.map(NonZeroU16::get),
                window_scale: self.scale,
                sack_permitted: self.has_sack,
                timestamps,
                ..TcpOptions::default()
            },
            is_marked: false,
            payload: Chain::new(),
        }
    }
}
