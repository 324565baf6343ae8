//! A card that a driver in the program moves frames with; the kernel is not asked.
//!
//! While frames come its owner looks at the card's memory and no interrupt is raised; before it waits it
//! arms the card, after a look for as long as that is likely to find frames ([`ArmPoll`]), and waits for its interrupt.

use std::sync::Arc;

use base::{Duration, Instant};
use hal::{Capabilities, FramePort, PortCounters};
use mbuf::{FreeList, Mbuf, Pool, RxFrame, TxFrame};

use crate::arm_poll::ArmPoll;
use crate::exchange::{Count, Counts};
use crate::exit_cost;
use crate::frame_io::FrameIo;
use crate::look::look_until;
use crate::monotonic_nanos;
use crate::port_mirror::PortMirror;

/// How often the transmit queue is looked after.
const WATCH: Duration = Duration::from_secs(1);

/// See the module.
pub struct Card {
    port: Box<dyn FramePort + Send>,
    buffers: &'static FreeList,
    /// For who looks on in the machine; without the right to, its frames are seen by nobody.
    mirror: Option<Arc<PortMirror>>,
    is_armed: bool,
    arm_poll: ArmPoll,
    has_queued: bool,
    /// More cannot be in flight: those that were when the card was asked last, and those that were sent since.
    in_flight_max: u32,
    watched: Instant,
    counts: Counts,
}

impl Card {
    /// Around a driver that receives into these buffers.
    pub fn new(port: Box<dyn FramePort + Send>, buffers: &'static FreeList) -> Self {
        Self {
            port,
            buffers,
            mirror: None,
            is_armed: false,
            arm_poll: ArmPoll::new(exit_cost::measure()),
            has_queued: false,
            in_flight_max: 0,
            watched: Instant::START,
            counts: Counts::default(),
        }
    }

    /// Shows its frames to who looks on.
    pub fn show_by(&mut self, mirror: Arc<PortMirror>) {
        self.mirror = Some(mirror);
    }

    /// What shows its frames, while somebody looks.
    #[inline]
    fn active_mirror(&self) -> Option<&PortMirror> {
        self.mirror.as_deref().filter(|mirror| mirror.is_watched())
    }

    /// Its station's address.
    pub fn mac(&self) -> [u8; 6] {
        self.port.mac()
    }

    /// The largest payload of a frame.
    pub fn mtu(&self) -> u16 {
        self.port.mtu()
    }

    /// What happened to frames so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// What the driver counted.
    pub fn port_counters(&mut self) -> PortCounters {
        self.port.counters()
    }

    #[cold]
    fn disarm(&mut self) {
        self.is_armed = false;
        self.arm_poll.end(now(), self.port.has_received());
        self.port.disarm();
    }

    /// A rest begins, with a look for frames if that is likely to pay; true if there are any.
    fn finds_frames(&mut self) -> bool {
        let Some(end) = self.arm_poll.begin(now()) else {
            return false;
        };
        let has_found = look_until(self.port.as_mut(), end);
        if has_found {
            self.arm_poll.end(now(), true);
        }
        has_found
    }

    #[cold]
    fn watch(&mut self, now: Instant) {
        self.watched = now;
        // A queue that stood still is reset by the driver, which counts it.
        self.port.watch(now);
    }
}

impl FrameIo for Card {
    fn capabilities(&self) -> Capabilities {
        self.port.capabilities()
    }

    #[inline]
    fn alloc(&self) -> Option<Mbuf> {
        self.buffers.alloc()
    }

    #[inline]
    fn alloc_to_queue(&self) -> Option<Mbuf> {
        self.buffers.alloc_to_queue()
    }

    #[inline]
    fn is_scarce(&self) -> bool {
        self.buffers.is_scarce()
    }

    #[inline]
    fn reclaim(&mut self) {
        self.port.reclaim();
    }

    #[inline]
    fn begin(&mut self, now: Instant) {
        if self.is_armed {
            self.disarm();
        }
        if now.since(self.watched) >= WATCH {
            self.watch(now);
        }
    }

    #[inline]
    fn receive(&mut self, most: usize, frames: &mut Vec<RxFrame>) {
        let had = frames.len();
        self.port.receive(most, &mut |frame| frames.push(frame));
        self.counts
            .add(Count::Received, (frames.len() - had) as u64);
        if let Some(mirror) = self.active_mirror() {
            frames[had..]
                .iter()
                .for_each(|frame| mirror.received(frame));
        }
    }

    #[inline]
    fn has_received(&mut self) -> bool {
        self.port.has_received()
    }

    /// The driver has given buffers already.
    #[inline]
    fn end(&mut self) {}

    #[inline]
    fn send(&mut self, frame: TxFrame) {
        if let Some(mirror) = self.active_mirror() {
            mirror.sent(&frame);
        }
        let sent = match self.port.transmit(frame) {
            Ok(()) => Count::Sent,
            Err(_) => Count::TxFull,
        };
        self.has_queued = true;
        self.in_flight_max = self.in_flight_max.saturating_add(1);
        self.counts.count(sent);
    }

    #[inline]
    fn flush(&mut self) -> bool {
        if std::mem::take(&mut self.has_queued) {
            self.port.kick();
        }
        false
    }

    #[inline]
    fn in_flight(&mut self) -> u32 {
        self.in_flight_max = self.port.unsent() as u32;
        self.in_flight_max
    }

    /// What the card has written of frames that it has sent is not looked at before it matters.
    #[inline]
    fn has_in_flight(&mut self, least: u32) -> bool {
        self.in_flight_max >= least && self.in_flight() >= least
    }

    fn arm(&mut self) -> bool {
        self.finds_frames() || self.arm_at_once()
    }

    /// What ends such a wait says nothing of how long frames are waited for, so nothing is learned of it.
    fn arm_at_once(&mut self) -> bool {
        self.is_armed = true;
        self.port.arm()
    }
}

fn now() -> Instant {
    Instant::from_nanos(monotonic_nanos())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use hal::Stall;

    use super::*;

    /// A card without frames that counts how often it was looked at.
    struct Silent(Arc<AtomicU32>);

    impl FramePort for Silent {
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
            Err(frame)
        }
        fn kick(&mut self) {}
        fn receive(&mut self, _: usize, _: &mut dyn FnMut(RxFrame)) -> usize {
            0
        }
        fn unsent(&mut self) -> usize {
            0
        }
        fn reclaim(&mut self) {}
        fn has_received(&mut self) -> bool {
            self.0.fetch_add(1, Ordering::Relaxed);
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

    #[test]
    fn who_waits_for_something_else_too_looks_for_no_frames_and_forgets_nothing_of_them() {
        let looks = Arc::new(AtomicU32::new(0));
        let buffers = Box::leak(Box::new(FreeList::new()));
        let mut card = Card::new(Box::new(Silent(looks.clone())), buffers);
        // Frames came soon, over and over.
        let mut time = Instant::from_nanos(1_000_000);
        for _ in 0..100 {
            card.arm_poll.begin(time);
            time += Duration::from_micros(30);
            card.arm_poll.end(time, true);
        }
        for _ in 0..100 {
            assert!(!card.arm_at_once());
            assert_eq!(looks.swap(0, Ordering::Relaxed), 0);
            // Something else has come.
            card.begin(now());
            looks.store(0, Ordering::Relaxed);
        }
        assert!(!card.arm());
        assert_ne!(looks.load(Ordering::Relaxed), 0);
    }
}
