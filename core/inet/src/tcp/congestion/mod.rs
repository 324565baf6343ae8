//! How much may be in flight, and how fast it may leave.
//!
//! One window, and one of three ways to move it, chosen for each socket:
//!
//! | file | what | source |
//! |---|---|---|
//! | `reno` | halve at a loss, then a segment a round trip | RFC 5681 |
//! | `cubic` | a cubic function of the time since the last loss | RFC 9438 |
//! | `bbr` | a model of the path: its rate and its shortest round trip | draft-cardwell-iccrg-bbr-congestion-control-00 |
//! | `hystart` | when the first slow start ends, for the first two | RFC 9406 |
//!
//! Growth follows the bytes acknowledged (RFC 3465), so that a peer that acknowledges
//! rarely is not slower. Windows are in bytes, rates in bytes a second; arithmetic is in
//! integers, with remainders carried where they add up.

mod bbr;
mod cubic;
mod hystart;
mod reno;

use alloc::boxed::Box;

use base::{Duration, Instant};
use wire::Seq;

use self::bbr::Bbr;
use self::cubic::Cubic;
use self::hystart::HyStart;
use self::reno::Reno;
use super::rate::RateSample;

/// RFC 6928: ten segments to begin with.
const INITIAL_SEGMENTS: u32 = 10;
const WINDOW_MAX: u32 = 1 << 30;
/// RFC 5681 (4): the least threshold, in segments.
const THRESHOLD_SEGMENTS: u32 = 2;

/// The ways to control congestion, by Linux's names of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Algorithm {
    /// RFC 5681.
    Reno,
    /// RFC 9438.
    #[default]
    Cubic,
    /// A model of the path's rate and delay; paced.
    Bbr,
}

impl Algorithm {
    /// All of them, the default first.
    pub const ALL: [Self; 3] = [Self::Cubic, Self::Reno, Self::Bbr];

    /// The name that TCP_CONGESTION takes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|each| each.name() == name)
    }
}

/// What an acknowledgement tells about the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack {
    pub now: Instant,
    /// Bytes that the acknowledgement has moved over.
    pub acked: u32,
    /// Bytes that have arrived.
    pub delivered_bytes: u32,
    /// Bytes still in flight.
    pub in_flight: u32,
    pub una: Seq,
    pub nxt: Seq,
    /// This acknowledgement's round trip, if it has shown one.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time.
    pub smoothed: Duration,
    /// All bytes that have arrived so far.
    pub delivered: u64,
    pub sample: Option<RateSample>,
    /// The window, and not the program or the peer, was what kept bytes back.
    pub is_limited: bool,
    /// Nothing is missing, or all that was is being sent again by slow start.
    pub may_grow: bool,
    pub is_recovering: bool,
}

#[derive(Clone)]
enum Control {
    Reno(Reno),
    /// Nothing to remember before the window has met a limit.
    Cubic(Option<Box<Cubic>>),
    Bbr(Box<Bbr>),
}

/// What the ways to control share.
#[derive(Clone, Copy, Debug)]
struct Window {
    bytes: u32,
    threshold: u32,
    mss: u32,
}

impl Window {
    fn is_slow_start(&self) -> bool {
        self.bytes < self.threshold
    }

    fn add(&mut self, bytes: u32) {
        self.bytes = self.bytes.saturating_add(bytes).min(WINDOW_MAX);
    }

    fn least(&self) -> u32 {
        THRESHOLD_SEGMENTS * self.mss
    }
}

/// The congestion window and what moves it.
#[derive(Clone)]
pub(super) struct Congestion {
    window: Window,
    /// From the first growth to the end of the first slow start.
    hystart: Option<Box<HyStart>>,
    control: Control,
}

impl Congestion {
    /// `entropy` spreads what flows would otherwise do in step.
    pub fn new(algorithm: Algorithm, mss: u16, entropy: u32) -> Self {
        let mss = u32::from(mss);
        Self {
            window: Window {
                bytes: INITIAL_SEGMENTS * mss,
                threshold: WINDOW_MAX,
                mss,
            },
            hystart: None,
            control: match algorithm {
                Algorithm::Reno => Control::Reno(Reno::default()),
                Algorithm::Cubic => Control::Cubic(None),
                Algorithm::Bbr => Control::Bbr(Box::new(Bbr::new(entropy))),
            },
        }
    }

    pub fn algorithm(&self) -> Algorithm {
        match self.control {
            Control::Reno(_) => Algorithm::Reno,
            Control::Cubic(_) => Algorithm::Cubic,
            Control::Bbr(_) => Algorithm::Bbr,
        }
    }

    /// The program wants another; the window stays.
    pub fn change(&mut self, algorithm: Algorithm, entropy: u32) {
        if algorithm != self.algorithm() {
            let fresh = Self::new(algorithm, self.window.mss as u16, entropy);
            self.control = fresh.control;
        }
    }

    #[inline]
    pub fn window(&self) -> u32 {
        self.window.bytes
    }

    pub fn threshold(&self) -> u32 {
        self.window.threshold
    }

    /// The path takes smaller segments.
    pub fn set_mss(&mut self, mss: u16) {
        self.window.mss = u32::from(mss);
        self.window.bytes = self.window.bytes.max(self.window.mss);
    }

    /// Set by a gradual reduction.
    pub fn set_window(&mut self, bytes: u32) {
        self.window.bytes = bytes.clamp(self.window.mss, WINDOW_MAX);
    }

    /// Whether a model of the path sets the window: it wants to hear of each acknowledgement,
    /// and `recovery` leaves the window alone.
    #[inline]
    pub fn is_model(&self) -> bool {
        matches!(self.control, Control::Bbr(_))
    }

    /// Something has arrived.
    #[inline]
    pub fn on_ack(&mut self, ack: &Ack) {
        if let Control::Bbr(bbr) = &mut self.control {
            bbr.on_ack(&mut self.window, ack);
            return;
        }
        if !ack.may_grow || !ack.is_limited {
            return;
        }
        if self.window.is_slow_start() {
            self.slow_start(ack);
            return;
        }
        match &mut self.control {
            Control::Reno(reno) => reno.grow(&mut self.window, ack.acked),
            Control::Cubic(cubic) => cubic.get_or_insert_default().grow(&mut self.window, ack),
            Control::Bbr(_) => {}
        }
    }

    fn slow_start(&mut self, ack: &Ack) {
        let is_first = self.window.threshold == WINDOW_MAX;
        if is_first {
            let hystart = self.hystart.get_or_insert_default();
            let growth = hystart.growth(ack, self.window.mss);
            self.window.add(growth);
            if hystart.is_over() {
                self.window.threshold = self.window.bytes;
                self.hystart = None;
            }
        } else {
            self.window.add(ack.acked.min(2 * self.window.mss));
        }
        self.window.bytes = self
            .window
            .bytes
            .min(self.window.threshold.max(self.window.mss));
    }

    /// `lost` bytes were lost, or something was marked, while `in_flight` were out, and
    /// acknowledgements still come.
    pub fn on_loss(&mut self, in_flight: u32, lost: u32) {
        match &mut self.control {
            Control::Reno(reno) => reno.on_loss(&mut self.window, in_flight),
            Control::Cubic(cubic) => {
                let cubic = cubic.get_or_insert_default();
                cubic.on_loss(&mut self.window, in_flight);
            }
            Control::Bbr(bbr) => bbr.on_loss(&mut self.window, in_flight, lost),
        }
    }

    /// All that was in flight at the loss has arrived.
    pub fn on_recovered(&mut self) {
        match &mut self.control {
            Control::Bbr(bbr) => bbr.on_recovered(&mut self.window),
            _ => self.set_window(self.window.threshold),
        }
    }

    /// Nothing comes any more. `is_first`: not again for the same bytes.
    pub fn on_timeout(&mut self, in_flight: u32, is_first: bool) {
        match &mut self.control {
            Control::Reno(reno) if is_first => reno.on_loss(&mut self.window, in_flight),
            Control::Cubic(cubic) if is_first => {
                let cubic = cubic.get_or_insert_default();
                cubic.on_loss(&mut self.window, in_flight);
            }
            Control::Bbr(bbr) => bbr.on_loss(&mut self.window, in_flight, in_flight),
            _ => {}
        }
        // RFC 5681 (4): the loss window is one segment.
        self.window.bytes = self.window.mss;
    }

    /// Nothing was lost since `before` (RFC 4015; RFC 9438 4.9.2).
    pub fn undo(&mut self, before: &Self) {
        if let Control::Bbr(bbr) = &mut self.control {
            bbr.on_recovered(&mut self.window);
            return;
        }
        self.control = before.control.clone();
        self.window.bytes = self.window.bytes.max(before.window.bytes);
        self.window.threshold = self.window.threshold.max(before.window.threshold);
    }

    /// RFC 5681 4.1: after silence the old window says nothing about the path.
    pub fn on_idle(&mut self) {
        match &mut self.control {
            Control::Cubic(Some(cubic)) => cubic.on_idle(),
            Control::Cubic(None) | Control::Reno(_) => {}
            // The model lasts, and pacing spreads what leaves.
            Control::Bbr(_) => return,
        }
        let initial = INITIAL_SEGMENTS * self.window.mss;
        self.window.bytes = self.window.bytes.min(initial);
    }

    /// Bytes a second at which segments may leave; `None` for as fast as the window allows.
    #[inline]
    pub fn pacing_rate(&self) -> Option<u64> {
        match &self.control {
            Control::Bbr(bbr) => Some(bbr.pacing_rate()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const MSS: u32 = 1000;

    /// An acknowledgement of a segment at the limit of the window.
    pub(super) fn ack(now: Instant, acked: u32) -> Ack {
        Ack {
            now,
            acked,
            delivered_bytes: acked,
            in_flight: 0,
            una: Seq(0),
            nxt: Seq(0),
            rtt: None,
            smoothed: Duration::from_millis(100),
            delivered: 0,
            sample: None,
            is_limited: true,
            may_grow: true,
            is_recovering: false,
        }
    }

    fn congestion(algorithm: Algorithm) -> Congestion {
        Congestion::new(algorithm, MSS as u16, 0)
    }

    #[test]
    fn names_are_linux_s() {
        for each in Algorithm::ALL {
            assert_eq!(Algorithm::named(each.name()), Some(each));
        }
        assert_eq!(Algorithm::named("vegas"), None);
    }

    #[test]
    fn slow_start_adds_what_is_acknowledged_and_only_if_the_window_limits() {
        // RFC 5681 3.1, RFC 3465; RFC 7661 for the limit.
        let mut reno = congestion(Algorithm::Reno);
        reno.on_ack(&ack(Instant::START, 2000));
        assert_eq!(reno.window(), 12_000);
        let idle = Ack {
            is_limited: false,
            ..ack(Instant::START, 2000)
        };
        reno.on_ack(&idle);
        assert_eq!(reno.window(), 12_000);
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_halves_the_threshold_once() {
        // RFC 5681 (4).
        let mut reno = congestion(Algorithm::Reno);
        reno.on_timeout(10_000, true);
        assert_eq!((reno.window(), reno.threshold()), (1000, 5000));
        reno.on_timeout(1000, false);
        assert_eq!((reno.window(), reno.threshold()), (1000, 5000));
    }

    #[test]
    fn an_undone_loss_leaves_no_trace() {
        for algorithm in [Algorithm::Reno, Algorithm::Cubic] {
            let mut flow = congestion(algorithm);
            flow.on_ack(&ack(Instant::START, 2000));
            let before = flow.clone();
            flow.on_timeout(10_000, true);
            flow.undo(&before);
            let restored = (flow.window(), flow.threshold());
            assert_eq!(restored, (before.window(), before.threshold()));
        }
    }
}
