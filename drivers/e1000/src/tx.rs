//! Transmitting: descriptors for the parts of a frame.
//!
//! The card fills in checksums where the last *context* descriptor said. Frames of a
//! kind have theirs in the same place, so a context is written only when that changes.

use hal::{DmaError, PortCounters, Registers, Span};
use intel::{FRAME_BYTES_MAX, Ring, TxRing};
use mbuf::{BLOCK_CAPACITY, ChecksumOffload, Mbuf, Pool, TxFrame};

use crate::descriptor;

/// Parts of a frame at most: each takes a descriptor, so one of more than the ring has could
/// never go out. It is copied into few.
const PARTS_MAX: usize = 16;
const _: () = assert!(FRAME_BYTES_MAX <= BLOCK_CAPACITY, "one buffer holds it");

pub(crate) struct Transmitter<R> {
    pub(crate) ring: TxRing<R>,
    pool: &'static (dyn Pool + Sync),
    /// Where the card fills in checksums.
    context: Option<ChecksumOffload>,
}

impl<R: Registers> Transmitter<R> {
    pub(crate) fn new(ring: Ring<R>, pool: &'static (dyn Pool + Sync)) -> Self {
        Self {
            ring: TxRing::new(ring),
            pool,
            context: None,
        }
    }

    /// Queues a frame; gives it back if there is no room. One that the card cannot send is dropped.
    pub(crate) fn transmit(
        &mut self,
        mut frame: TxFrame,
        counters: &mut PortCounters,
    ) -> Result<(), TxFrame> {
        if !can_describe(&frame) {
            counters.tx_unsupported += 1;
            return Ok(());
        }
        // A context may come before the parts.
        if !self.ring.has_room(frame.chain.parts().min(PARTS_MAX) + 1) {
            counters.tx_queue_full += 1;
            return Err(frame);
        }
        if frame.chain.parts() > PARTS_MAX {
            let Some(gathered) = frame.chain.gathered(self.pool) else {
                counters.tx_no_memory += 1;
                return Err(frame);
            };
            frame.chain = gathered;
        }
        if let Some(checksum) = frame.checksum {
            self.set_context(checksum);
        }
        counters.tx_frames += 1;
        counters.tx_bytes += frame.chain.len() as u64;
        self.describe(frame);
        Ok(())
    }

    #[inline]
    fn set_context(&mut self, checksum: ChecksumOffload) {
        if self.context == Some(checksum) {
            return;
        }
        if let Some(words) = descriptor::context(checksum) {
            self.ring.push(words);
            self.context = Some(checksum);
        }
    }

    #[inline]
    fn describe(&mut self, frame: TxFrame) {
        let mut left = frame.chain.parts();
        let wishes = descriptor::wishes(frame.checksum.is_some(), frame.tag);
        for part in frame.chain.iter() {
            left -= 1;
            let words = descriptor::data(Span::of(part), left == 0, wishes);
            self.ring.push(words);
        }
        self.ring.close(frame.chain);
    }

    /// The card was reset: it has forgotten the ring and its context.
    pub(crate) fn restart(&mut self, counters: &mut PortCounters) -> Result<(), DmaError> {
        self.context = None;
        self.ring.restart(counters)
    }
}

/// Whether the card understands the frame: nobody should ask for what the port's
/// capabilities do not promise.
fn can_describe(frame: &TxFrame) -> bool {
    let fits = |part: &Mbuf| Span::of(part).len() <= descriptor::DATA_BYTES_MAX;
    frame.segment.is_none()
        && (1..=FRAME_BYTES_MAX).contains(&frame.chain.len())
        && frame.chain.iter().all(fits)
        && frame
            .checksum
            .is_none_or(|checksum| descriptor::context(checksum).is_some())
}
