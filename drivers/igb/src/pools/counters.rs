//! What virtual functions asked for, by outcome.

/// What was asked of the physical function.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RequestCounters {
    /// Requests that were granted.
    pub granted: u64,
    /// Refused: the function has not begun.
    pub too_early: u64,
    /// Refused: an address that is somebody's, or none.
    pub bad_address: u64,
    /// Refused: no filter is left for the VLAN.
    pub no_filter: u64,
    /// Refused: frames longer than the card takes.
    pub too_long: u64,
    /// Refused: of a kind that is not known.
    pub unknown: u64,
    /// Ignored: the message is an answer.
    pub no_request: u64,
    /// Lost: the function did not let go of the mailbox.
    pub held: u64,
    /// Virtual functions that were reset.
    pub resets: u64,
}

impl RequestCounters {
    /// Requests that came to nothing.
    pub fn refused(&self) -> u64 {
        self.too_early
            + self.bad_address
            + self.no_filter
            + self.too_long
            + self.unknown
            + self.no_request
            + self.held
    }
}
