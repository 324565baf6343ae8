//! The ephemeral ports that a queue's stack takes its own from, so that answers come home.
//!
//! All together are the range that a stack has by itself (Linux's `ip_local_port_range`). Half of it is the first
//! queue's, because most programs have no other; the others have equal parts of the rest.

use core::ops::RangeInclusive;

use super::QUEUES_MAX;

const FIRST: u16 = 32768;
const LAST: u16 = 60999;
const PORTS: u16 = LAST - FIRST + 1;
/// Of the first queue.
const HALF: u16 = PORTS / 2;
/// Of each other queue.
const PART: u16 = HALF / (QUEUES_MAX - 1);
const OTHERS_FIRST: u16 = FIRST + HALF;

/// The ports of a queue; `None` for one that cannot be.
pub fn share(queue: u16) -> Option<RangeInclusive<u16>> {
    match queue {
        0 => Some(FIRST..=OTHERS_FIRST - 1),
        1..QUEUES_MAX => {
            let first = OTHERS_FIRST + (queue - 1) * PART;
            Some(first..=first + PART - 1)
        }
        _ => None,
    }
}

/// The queue that has a port.
pub(super) fn queue_of(port: u16) -> Option<u16> {
    let queue = match port.checked_sub(FIRST)? {
        ..HALF => 0,
        far => (far - HALF) / PART + 1,
    };
    (queue < QUEUES_MAX).then_some(queue)
}
