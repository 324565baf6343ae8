//! What was dropped, and why.

use serde::{Deserialize, Serialize};

/// Frames and questions that went nowhere, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// Too short or contradictory.
    pub malformed: u64,
    /// From a station or an address that is not the sender's, or in the name of such.
    pub not_the_senders: u64,
    /// Of another network that the sender is on with the same card.
    #[serde(default)]
    pub of_other_networks: u64,
    /// To a station or an address that no member has.
    pub nobody: u64,
    /// Neither IP nor ARP.
    pub other_protocol: u64,
    /// The receiver does not keep up.
    pub queue_full: u64,
    /// The receiver is not connected: it starts, or it ends.
    pub not_connected: u64,
    /// Questions to the host's resolver beyond those that may wait, or that it never answered.
    pub resolver: u64,
    /// A stream that named a frame's length that no frame has; it was cut.
    pub bad_length: u64,
}

impl Drops {
    /// All together.
    pub fn sum(&self) -> u64 {
        self.malformed
            + self.not_the_senders
            + self.of_other_networks
            + self.nobody
            + self.other_protocol
            + self.queue_full
            + self.not_connected
            + self.resolver
            + self.bad_length
    }
}
