//! Failed write-backs, which each open file hears of once (Linux's `errseq_t`).
//!
//! A write-back fails long after its write(2) has returned, and often in nobody's name. So a file
//! counts its failures, and each open file knows up to which of them it has heard. One that nobody
//! has heard of yet is also news to who opens the file afterwards: else a failure between a close
//! and an open would be lost.

/// The failures of one file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Failures {
    count: u32,
    /// Somebody has heard of the last.
    is_told: bool,
}

impl Failures {
    /// None yet.
    pub const fn new() -> Self {
        Self {
            count: 0,
            is_told: false,
        }
    }

    /// One more.
    pub fn note(&mut self) {
        self.count = self.count.wrapping_add(1);
        self.is_told = false;
    }

    /// Up to where an open file that begins now has heard.
    pub fn heard_at_open(&self) -> u32 {
        match self.is_told || self.count == 0 {
            true => self.count,
            false => self.count.wrapping_sub(1),
        }
    }

    /// Whether there is something new for an open file that has heard up to `heard`; now it has.
    pub fn tell(&mut self, heard: &mut u32) -> bool {
        let is_new = *heard != self.count;
        *heard = self.count;
        self.is_told |= is_new;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::Failures;

    #[test]
    fn each_open_file_hears_of_a_failure_once() {
        let mut failures = Failures::new();
        let (mut one, mut other) = (failures.heard_at_open(), failures.heard_at_open());
        assert!(!failures.tell(&mut one));
        failures.note();
        failures.note();
        assert!(failures.tell(&mut one));
        assert!(!failures.tell(&mut one));
        assert!(failures.tell(&mut other));
        failures.note();
        assert!(failures.tell(&mut other));
    }

    #[test]
    fn a_failure_that_nobody_heard_of_is_news_to_who_opens_later() {
        let mut failures = Failures::new();
        failures.note();
        let mut late = failures.heard_at_open();
        assert!(failures.tell(&mut late));
        let mut later = failures.heard_at_open();
        assert!(!failures.tell(&mut later));
    }
}
