//! What a function of the stack may touch besides the socket at hand.

use base::Instant;

use crate::env::Env;
use crate::net::Net;

/// The world and the shared part of the stack, for the length of one event.
pub(crate) struct Context<'a, E: Env> {
    pub env: &'a mut E,
    pub net: &'a mut Net,
    /// Read once per event.
    pub now: Instant,
}
