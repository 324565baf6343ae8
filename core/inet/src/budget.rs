//! How many answers to unsolicited packets a second may see.
//!
//! Whoever provokes such answers must not learn from a missing one how many others got: a
//! constant limit let blind attackers find connections (CVE-2016-5696). So each second has
//! a limit of its own, between half and the whole, that depends on our secret.

use base::Instant;

use crate::hash::{Key, Salt};

/// What is left of this second's answers.
pub(crate) struct Budget {
    most: u32,
    second: u64,
    left: u32,
}

impl Budget {
    /// At most `most` a second.
    pub const fn new(most: u32) -> Self {
        Self {
            most,
            second: u64::MAX,
            left: 0,
        }
    }

    /// Whether one more may be sent, which then is spent.
    pub fn take(&mut self, key: &Key, now: Instant) -> bool {
        let second = now.as_millis() / 1000;
        if second != self.second {
            self.second = second;
            let noise = key.secret_of(Salt::Budget, second ^ u64::from(self.most) << 48);
            let half = self.most / 2;
            self.left = self.most - half + (noise % (u64::from(half) + 1)) as u32;
        }
        let is_left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent_in(budget: &mut Budget, key: &Key, second: u64) -> u32 {
        (0..1000)
            .filter(|_| budget.take(key, Instant::from_millis(second * 1000)))
            .count() as u32
    }

    #[test]
    fn each_second_has_a_limit_between_half_and_the_whole() {
        let (mut budget, key) = (Budget::new(100), Key([5, 6]));
        let spent: [u32; 20] =
            core::array::from_fn(|second| spent_in(&mut budget, &key, second as u64));
        assert!(spent.iter().all(|spent| (50..=100).contains(spent)));
        assert!(spent.iter().any(|other| *other != spent[0]), "it varies");
    }
}
