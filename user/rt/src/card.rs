//! A card that a driver in the program moves frames with; the kernel is not asked.
//!
//! While frames come its owner looks at the card's memory and no interrupt is raised; before it waits it
//! arms the card, after a look for as long as that is likely to find frames ([`ArmPoll`]), and waits for its interrupt.
//! What is queued leaves by a write to a register, of an emulated card an exit. So where it takes as long ([`KickCost`]), and while
//! such looks find frames, it may wait for the answers to these, for no longer than [`EXITS_PER_GATHERING`] exits take.

use std::sync::Arc;

use base::{Duration, Instant};
use hal::{Capabilities, FramePort, PortCounters};
use mbuf::{FreeList, Mbuf, Pool, RxFrame, TxFrame};

use crate::arm_poll::ArmPoll;
use crate::exchange::{Count, Counts};
use crate::exit_cost;
use crate::frame_io::FrameIo;
use crate::kick_cost::KickCost;
use crate::look::look_until;
use crate::monotonic_nanos;
use crate::port_mirror::PortMirror;

/// How often the transmit queue is looked after.
const WATCH: Duration = Duration::from_secs(1);

/// Queued frames wait for others for as long as so many exits take at most,
const EXITS_PER_GATHERING: u32 = 128;
/// and no longer than this.
const GATHERING_MOST: Duration = Duration::from_millis(8);
/// After a look in vain for frames whose answers could go along so many are left out.
const LEFT_OUT: u8 = 15;
/// So many frames are much for any card's ring: those of Intel's and of virtio have 256 descriptors, and a frame takes up to 42.
const FRAMES_MAX: u32 = 64;

/// See the module.
pub struct Card {
    port: Box<dyn FramePort + Send>,
    buffers: &'static FreeList,
    /// For who looks on in the machine; without the right to, its frames are seen by nobody.
    mirror: Option<Arc<PortMirror>>,
    is_armed: bool,
    arm_poll: ArmPoll,
    /// When the first of the frames was queued that have not left.
    queued: Option<Instant>,
    /// How long it may wait for others.
    gathering: Duration,
    /// Looks for frames whose answers could go along that are left out.
    looks_left_out: u8,
    /// What an exit takes.
    exit: Duration,
    kick_cost: KickCost,
    /// When the last turn began.
    turned: Instant,
    /// More cannot be in flight: those that were when the card was asked last, and those that were sent since.
    in_flight_max: u32,
    watched: Instant,
    counts: Counts,
}

impl Card {
    /// Around a driver that receives into these buffers.
    pub fn new(port: Box<dyn FramePort + Send>, buffers: &'static FreeList) -> Self {
        Self::with_exits_of(exit_cost::measure(), port, buffers)
    }

    /// Where an exit takes so long.
    fn with_exits_of(
        exit: Duration,
        port: Box<dyn FramePort + Send>,
        buffers: &'static FreeList,
    ) -> Self {
        Self {
            port,
            buffers,
            mirror: None,
            is_armed: false,
            arm_poll: ArmPoll::new(exit),
            queued: None,
            gathering: Duration::ZERO,
            looks_left_out: 0,
            exit,
            kick_cost: KickCost::default(),
            turned: Instant::START,
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

    /// A function of its own because `bench-echo` counts how often it runs.
    #[inline(never)]
    fn arm_port(&mut self) -> bool {
        self.is_armed = true;
        self.port.arm()
    }

    /// A rest begins, with a look for frames if that is likely to pay, until then at the latest; true if there are any.
    fn finds_frames(&mut self, latest: Instant) -> bool {
        let Some(end) = self.arm_poll.begin(now()) else {
            return false;
        };
        let has_found = look_until(self.port.as_mut(), end.min(latest));
        if has_found {
            self.arm_poll.end(now(), true);
        }
        has_found
    }

    #[cold]
    fn kick_and_measure(&mut self) {
        let before = now();
        self.port.kick();
        self.note_kick(now().since(before));
    }

    fn note_kick(&mut self, time: Duration) {
        if let Some(kick) = self.kick_cost.note(time) {
            let each = kick.min(self.exit);
            self.gathering = (each * EXITS_PER_GATHERING).min(GATHERING_MOST);
        }
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
        self.turned = now;
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
        self.queued.get_or_insert(self.turned);
        self.in_flight_max = self.in_flight_max.saturating_add(1);
        self.counts.count(sent);
    }

    #[inline]
    fn flush(&mut self) -> bool {
        if self.queued.take().is_some() {
            match self.kick_cost.is_unknown() {
                true => self.kick_and_measure(),
                false => self.port.kick(),
            }
        }
        false
    }

    #[inline]
    fn may_gather(&mut self, now: Instant) -> bool {
        let queued = self.queued;
        queued.is_some_and(|queued| now.since(queued) < self.gathering)
    }

    /// A look in vain has held back what peers may wait for, so the next ones are left out. It is no part of the rest, which
    /// begins when that has left.
    fn finds_more(&mut self) -> bool {
        let Some(queued) = self.queued else {
            return false;
        };
        let end = queued + self.gathering;
        if self.looks_left_out != 0 {
            self.looks_left_out -= 1;
            return false;
        }
        let has_found = now() < end && self.finds_frames(end);
        if !has_found {
            self.looks_left_out = LEFT_OUT;
            self.arm_poll.forget();
        }
        has_found
    }

    #[inline]
    fn in_flight(&mut self) -> u32 {
        self.in_flight_max = self.port.unsent() as u32;
        self.in_flight_max
    }

    /// What the card has written of frames that it has sent is not looked at before it matters.
    #[inline]
    fn has_in_flight(&mut self, least: u32) -> bool {
        let least = least.min(FRAMES_MAX);
        self.in_flight_max >= least && self.in_flight() >= least
    }

    fn arm(&mut self) -> bool {
        self.finds_frames(Instant::NEVER) || self.arm_at_once()
    }

    /// What ends such a wait says nothing of how long frames are waited for, so nothing is learned of it.
    fn arm_at_once(&mut self) -> bool {
        self.arm_port()
    }
}

fn now() -> Instant {
    Instant::from_nanos(monotonic_nanos())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::quiet_port::Quiet;

    /// One where an exit takes ten microseconds, and to let frames go took so long.
    fn card(quiet: Quiet, kick_micros: u64) -> Card {
        let buffers = Box::leak(Box::new(FreeList::new()));
        let mut card = Card::with_exits_of(Duration::from_micros(10), Box::new(quiet), buffers);
        card.send(TxFrame::default());
        while card.kick_cost.is_unknown() {
            assert!(!card.may_gather(at(0)), "it is not known whether that pays");
            card.note_kick(Duration::from_micros(kick_micros));
        }
        card.flush();
        card
    }

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(1_000_000) + Duration::from_micros(micros)
    }

    #[test]
    fn who_waits_for_something_else_too_looks_for_no_frames_and_forgets_nothing_of_them() {
        let quiet = Quiet::default();
        let buffers = Box::leak(Box::new(FreeList::new()));
        let mut card = Card::new(Box::new(quiet.clone()), buffers);
        // Frames came soon, over and over.
        let mut time = Instant::from_nanos(1_000_000);
        for _ in 0..100 {
            card.arm_poll.begin(time);
            time += Duration::from_micros(30);
            card.arm_poll.end(time, true);
        }
        for _ in 0..100 {
            assert!(!card.arm_at_once());
            assert_eq!(quiet.looks.swap(0, Relaxed), 0);
            // Something else has come.
            card.begin(now());
            quiet.looks.store(0, Relaxed);
        }
        assert!(!card.arm());
        assert_ne!(quiet.looks.load(Relaxed), 0);
    }

    #[test]
    fn queued_frames_may_wait_for_others_for_some_exits_and_leave_together() {
        let quiet = Quiet::default();
        let mut card = card(quiet.clone(), 200);
        quiet.kicks.store(0, Relaxed);
        card.begin(at(0));
        assert!(!card.may_gather(at(0)), "nothing is queued");
        card.send(TxFrame::default());
        card.begin(at(1000));
        card.send(TxFrame::default());
        assert!(card.may_gather(at(1000)));
        assert!(
            !card.may_gather(at(1280)),
            "the first one has waited for long"
        );
        assert_eq!(quiet.kicks.load(Relaxed), 0);
        card.flush();
        card.flush();
        assert_eq!(quiet.kicks.load(Relaxed), 1);
        card.send(TxFrame::default());
        assert!(card.may_gather(at(1280)));
    }

    #[test]
    fn after_a_look_for_more_in_vain_the_next_ones_are_left_out() {
        let quiet = Quiet::default();
        let mut card = card(quiet.clone(), 200);
        card.gathering = Duration::from_secs(3600);
        // Frames came soon, over and over.
        let mut time = at(0);
        for _ in 0..100 {
            card.arm_poll.begin(time);
            time += Duration::from_micros(30);
            card.arm_poll.end(time, true);
        }
        let mut has_looked = || {
            card.begin(now());
            quiet.looks.store(0, Relaxed);
            card.send(TxFrame::default());
            assert!(!card.finds_more());
            card.flush();
            quiet.looks.load(Relaxed) != 0
        };
        assert!(has_looked());
        assert!((0..LEFT_OUT).all(|_| !has_looked()));
        assert!(has_looked());
    }

    #[test]
    fn what_leaves_without_an_exit_hardly_waits() {
        let mut card = card(Quiet::default(), 1);
        card.begin(at(0));
        card.send(TxFrame::default());
        assert!(!card.may_gather(at(128)));
    }
}
