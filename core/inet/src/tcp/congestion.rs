//! How much may be in flight: slow start and congestion avoidance (RFC 5681).
//!
//! Growth follows the bytes acknowledged (RFC 3465), so that a peer that acknowledges
//! rarely is not slower. Counted in bytes.

/// RFC 6928: ten segments to begin with.
const INITIAL_SEGMENTS: u32 = 10;
const WINDOW_MAX: u32 = 1 << 30;

/// The congestion window.
#[derive(Clone, Copy)]
pub(super) struct Congestion {
    window: u32,
    threshold: u32,
    /// Bytes acknowledged towards the next segment of growth.
    credit: u32,
    mss: u32,
}

impl Congestion {
    pub fn new(mss: u16) -> Self {
        let mss = u32::from(mss);
        Self {
            window: INITIAL_SEGMENTS * mss,
            threshold: WINDOW_MAX,
            credit: 0,
            mss,
        }
    }

    #[inline]
    pub fn window(&self) -> u32 {
        self.window
    }

    pub fn threshold(&self) -> u32 {
        self.threshold
    }

    /// The path takes smaller segments.
    pub fn set_mss(&mut self, mss: u16) {
        self.mss = u32::from(mss);
        self.window = self.window.max(self.mss);
    }

    /// `bytes` have arrived while the window limited us.
    #[inline]
    pub fn grow(&mut self, bytes: u32) {
        if self.window < self.threshold {
            self.window = (self.window + bytes.min(2 * self.mss)).min(WINDOW_MAX);
            return;
        }
        self.credit += bytes.min(self.window);
        if self.credit >= self.window {
            self.credit -= self.window;
            self.window = (self.window + self.mss).min(WINDOW_MAX);
        }
    }

    /// Something was lost while `in_flight` bytes were out, and acknowledgements still come.
    pub fn on_loss(&mut self, in_flight: u32) {
        self.threshold = (in_flight / 2).max(2 * self.mss);
        self.window = self.threshold;
        self.credit = 0;
    }

    /// Nothing comes any more. `is_first`: not again for the same bytes.
    pub fn on_timeout(&mut self, in_flight: u32, is_first: bool) {
        if is_first {
            self.threshold = (in_flight / 2).max(2 * self.mss);
        }
        self.window = self.mss;
        self.credit = 0;
    }

    /// RFC 5681 4.1: after silence the old window says nothing about the path.
    pub fn on_idle(&mut self) {
        self.window = self.window.min(INITIAL_SEGMENTS * self.mss);
        self.credit = 0;
    }
}
