//! Readings of a reference, and the speed that follows from two of them.

/// A counter whose speed is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reference {
    /// Counts per second.
    pub hertz: u64,
    /// Width of the counter; it starts again at 2^bits. At most 64.
    pub bits: u32,
}

impl Reference {
    /// Counts from one value to the next, if the counter did not start again twice.
    pub fn elapsed(&self, from: u64, to: u64) -> u64 {
        to.wrapping_sub(from) & (u64::MAX >> (64 - self.bits))
    }

    /// Counts from one value to the next: of those that are possible, what is nearest to
    /// `expected`.
    pub fn elapsed_near(&self, from: u64, to: u64, expected: u64) -> u64 {
        let seen = self.elapsed(from, to);
        if self.bits == 64 {
            return seen;
        }
        let round = 1u64 << self.bits;
        let behind = expected.saturating_add(round / 2).saturating_sub(seen);
        seen.saturating_add(behind & !(round - 1))
    }
}

/// A reference's value, and our own counter just before and just after it was read. What
/// lies between may be anything: the host stops CPUs when it likes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// Our counter before.
    pub before: u64,
    /// The reference.
    pub count: u64,
    /// Our counter after.
    pub after: u64,
}

impl Reading {
    /// Ticks within which the reference had the value.
    pub fn width(&self) -> u64 {
        self.after.wrapping_sub(self.before)
    }

    /// The likeliest moment.
    pub fn middle(&self) -> u64 {
        self.before.wrapping_add(self.width() / 2)
    }

    /// The narrower of two.
    pub fn narrower(self, other: Self) -> Self {
        match other.width() < self.width() {
            true => other,
            false => self,
        }
    }
}

/// The speed of our counter, and how far it may be off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    /// Ticks per second.
    pub hertz: u64,
    /// Parts per billion by which it may be off either way.
    pub doubt_ppb: u64,
}

impl Rate {
    /// What two readings and `counts` of the reference between them say; `None` if that is
    /// nothing.
    pub fn between(hertz: u64, counts: u64, start: Reading, end: Reading) -> Option<Self> {
        let least = end.before.wrapping_sub(start.after);
        let most = end.after.wrapping_sub(start.before);
        // As a wide bracket swallowed the other reading, the least is below zero.
        if counts == 0 || most > i64::MAX as u64 || least > most {
            return None;
        }
        let middle = least + (most - least) / 2;
        let measured = u128::from(middle) * u128::from(hertz) / u128::from(counts);
        let bracket = parts_per_billion((most - least).div_ceil(2), middle);
        // Either reading may be off by a part of a count.
        let granularity = parts_per_billion(1, counts);
        Some(Self {
            hertz: u64::try_from(measured).ok().filter(|&hertz| hertz != 0)?,
            doubt_ppb: bracket.saturating_add(granularity),
        })
    }

    /// Whether both can be true.
    pub fn agrees_with(&self, other: &Self) -> bool {
        let apart = parts_per_billion(
            self.hertz.abs_diff(other.hertz),
            self.hertz.max(other.hertz),
        );
        apart <= self.doubt_ppb.saturating_add(other.doubt_ppb)
    }
}

fn parts_per_billion(part: u64, whole: u64) -> u64 {
    let scaled = u128::from(part) * 1_000_000_000 / u128::from(whole.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
