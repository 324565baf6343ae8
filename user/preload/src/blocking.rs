//! Calls that wait for one socket, as POSIX has them: they return when something was done, when the socket must not wait, or when its
//! time is up.

use std::ffi::c_int;
use std::ptr;
use std::sync::Arc;

use base::Instant;
use posix::{Direction, Errno, Host, Open, Result};

use crate::numbers::{self, Whose};
use crate::patience;
use crate::restart;
use crate::shards;
use crate::state::{Held, Port};

/// Whether and which way a call waits.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Whose time limit counts.
    pub direction: Direction,
    /// It must not (MSG_DONTWAIT).
    pub is_impatient: bool,
}

impl Way {
    /// As the socket and a call's flags say.
    pub fn of(direction: Direction, flags: c_int) -> Self {
        Self {
            direction,
            is_impatient: flags & libc::MSG_DONTWAIT != 0,
        }
    }
}

/// Calls `attempt` on a socket until it does not say `AGAIN`, or may not wait. Frames that have come are looked at
/// once before that, and not as long as there are any: peers may send for ever.
pub fn patiently<T>(
    number: c_int,
    way: Way,
    mut attempt: impl FnMut(&mut Host<Port>, &Arc<Open>) -> Result<T>,
) -> Result<T> {
    let mut held = Held::of(number)?;
    let open = held.host().socket(number.cast_unsigned())?;
    let (mut until, mut has_looked, mut has_settled) = (None, false, false);
    loop {
        match attempt(held.host(), &open) {
            Err(Errno::AGAIN) => {}
            // It was handed over to the kernel's stack meanwhile.
            Err(_) if numbers::seen(number) == Whose::Kernel => return Err(Errno::MOVED),
            done => return done,
        }
        let now = held.now();
        let has_news = held.host().look(now) != 0 && !has_looked;
        if has_news || !held.host().is_up() {
            has_looked = true;
            continue;
        }
        let limit = open.timeout_nanos(way.direction);
        let end = *until.get_or_insert_with(|| {
            limit.map(|nanos| Instant::from_nanos(now.as_nanos().saturating_add(nanos)))
        });
        if way.is_impatient || open.is_nonblocking() || end.is_some_and(|end| end <= now) {
            return Err(Errno::AGAIN);
        }
        let came_back = match patience::wait(held, &mut [], end, ptr::null()) {
            // With a time limit Linux' calls do not go on either.
            Err(Errno::INTERRUPTED) if end.is_none() && restart::goes_on() => None,
            came_back => came_back?,
        };
        held = match came_back.filter(|held| held.place() == open.place()) {
            Some(held) => held,
            None => Held::of_open(&open)?,
        };
        if way.direction == Direction::Receive && !has_settled {
            has_settled = true;
            if shards::wants_home(held.host(), &open) {
                drop(held);
                shards::settle_alone(number);
                held = Held::of_open(&open)?;
            }
        }
        has_looked = false;
    }
}
