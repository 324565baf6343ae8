//! How much may be dirty: Linux's `vm.dirty_*`.
//!
//! From the background threshold on somebody writes back; from the other on those who dirty pages
//! have to write some back themselves, so they come no faster than the disk goes. Shares are of
//! the memory that could hold pages: what is free and what the cache has.

/// A share of memory, or bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Threshold {
    /// In percent.
    Percent(u64),
    /// In bytes.
    Bytes(u64),
}

impl Threshold {
    fn pages(self, available_pages: u64, page_bytes: u64) -> u64 {
        match self {
            Self::Percent(percent) => available_pages / 100 * percent.min(100),
            Self::Bytes(bytes) => bytes / page_bytes,
        }
    }
}

/// What follows from how much is dirty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pressure {
    /// Nothing.
    None,
    /// Somebody is to write back.
    Flush,
    /// Who dirties pages writes back first.
    Wait,
}

/// The two thresholds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirtyLimits {
    /// From here on somebody writes back.
    pub background: Threshold,
    /// From here on writers wait.
    pub most: Threshold,
}

impl DirtyLimits {
    /// Linux's.
    pub const DEFAULT: Self = Self {
        background: Threshold::Percent(10),
        most: Threshold::Percent(20),
    };

    /// What so many dirty pages mean where so many could be.
    pub fn pressure(&self, dirty_pages: u64, available_pages: u64, page_bytes: u64) -> Pressure {
        let most = self.most.pages(available_pages, page_bytes);
        // A background threshold above the other would never be met: Linux halves it.
        let background = match self.background.pages(available_pages, page_bytes) {
            pages if pages >= most => most / 2,
            pages => pages,
        };
        match dirty_pages {
            pages if pages > most => Pressure::Wait,
            pages if pages > background => Pressure::Flush,
            _ => Pressure::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DirtyLimits, Pressure, Threshold};

    #[test]
    fn writers_wait_only_where_somebody_was_to_write_back_before() {
        let limits = DirtyLimits::DEFAULT;
        let pressure = |dirty| limits.pressure(dirty, 1000, 4096);
        assert_eq!(pressure(100), Pressure::None);
        assert_eq!(pressure(101), Pressure::Flush);
        assert_eq!(pressure(200), Pressure::Flush);
        assert_eq!(pressure(201), Pressure::Wait);
    }

    #[test]
    fn a_background_threshold_that_is_too_high_is_half_of_the_other() {
        let limits = DirtyLimits {
            background: Threshold::Percent(50),
            most: Threshold::Bytes(100 * 4096),
        };
        assert_eq!(limits.pressure(51, 1000, 4096), Pressure::Flush);
        assert_eq!(limits.pressure(50, 1000, 4096), Pressure::None);
    }

    #[test]
    fn no_setting_leads_out_of_the_numbers() {
        let limits = DirtyLimits {
            background: Threshold::Percent(u64::MAX),
            most: Threshold::Bytes(u64::MAX),
        };
        assert_eq!(limits.pressure(u64::MAX, u64::MAX, 4096), Pressure::Wait);
        let none = DirtyLimits {
            background: Threshold::Bytes(0),
            most: Threshold::Bytes(0),
        };
        assert_eq!(none.pressure(1, 0, 4096), Pressure::Wait);
    }
}
