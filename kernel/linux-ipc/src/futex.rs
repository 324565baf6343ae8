//! futex(2): the calls behind locks and condition variables.

use base::Instant;
use ipc::futex::pi::{self, LockWait};
use ipc::futex::{self, MATCH_ANY, Operation, Place};
use linux_raw_sys::general::{
    __NR_futex, FUTEX_CLOCK_REALTIME, FUTEX_CMP_REQUEUE, FUTEX_CMP_REQUEUE_PI, FUTEX_LOCK_PI,
    FUTEX_LOCK_PI2, FUTEX_PRIVATE_FLAG, FUTEX_REQUEUE, FUTEX_TRYLOCK_PI, FUTEX_UNLOCK_PI,
    FUTEX_WAIT, FUTEX_WAIT_BITSET, FUTEX_WAIT_REQUEUE_PI, FUTEX_WAKE, FUTEX_WAKE_BITSET,
    FUTEX_WAKE_OP,
};
use sync::{Error, Restart};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;
use linux_abi::{restart, timespec};

/// The calls of this family.
pub const CALLS: &[Entry] = &[Entry {
    number: __NR_futex,
    name: "futex",
    args: &[
        Arg::Address,
        Arg::Flags,
        Arg::Int,
        Arg::Address,
        Arg::Address,
        Arg::Int,
    ],
    handler: futex,
}];

const OPTIONS: u32 = FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME;

fn futex(call: Call<'_>) -> Outcome {
    let private = call.uint(1) & FUTEX_PRIVATE_FLAG != 0;
    let wall = call.uint(1) & FUTEX_CLOCK_REALTIME != 0;
    match call.uint(1) & !OPTIONS {
        FUTEX_WAIT_BITSET => wait(&call, private, call.uint(5), true, wall),
        FUTEX_LOCK_PI2 => lock_pi(call, private, wall),
        FUTEX_WAIT_REQUEUE_PI => wait_requeue_pi(call, private, wall),
        _ if wall => Err(Errno::ENOSYS),
        FUTEX_WAIT => wait(&call, private, MATCH_ANY, false, false),
        FUTEX_LOCK_PI => lock_pi(call, private, true),
        FUTEX_TRYLOCK_PI => {
            pi::lock(place(&call, 0, private)?, LockWait::None)?;
            Ok(0)
        }
        FUTEX_UNLOCK_PI => {
            pi::unlock(place(&call, 0, private)?)?;
            Ok(0)
        }
        FUTEX_CMP_REQUEUE_PI => cmp_requeue_pi(&call, private),
        FUTEX_WAKE => wake(&call, private, MATCH_ANY),
        FUTEX_WAKE_BITSET => wake(&call, private, call.uint(5)),
        FUTEX_REQUEUE => requeue(&call, private, None),
        FUTEX_CMP_REQUEUE => requeue(&call, private, Some(call.uint(5))),
        FUTEX_WAKE_OP => wake_op(&call, private),
        operation => {
            linux_abi::missing::count_option("futex", u64::from(operation));
            Err(Errno::ENOSYS)
        }
    }
}

/// The moment that argument 3 names, by the wall clock or the machine's; none is never.
fn deadline(call: &Call<'_>, wall: bool) -> Result<Instant, Errno> {
    let Some(at) = call.optional_addr(3) else {
        return Ok(Instant::NEVER);
    };
    let span = timespec::read(at)?;
    Ok(match wall {
        true => clock::instant_of_wall(span),
        false => Instant::START + span,
    })
}

fn lock_pi(call: Call<'_>, private: bool, wall: bool) -> Outcome {
    let deadline = deadline(&call, wall)?;
    match pi::lock(place(&call, 0, private)?, LockWait::Until(deadline)) {
        Ok(()) => Ok(0),
        Err(Error::Interrupted(_)) => restart::always(call),
        Err(error) => Err(error.into()),
    }
}

/// The word in argument `index`.
fn place(call: &Call<'_>, index: usize, private: bool) -> Result<Place, Errno> {
    Ok(futex::place_of(call.addr(index), private)?)
}

fn wait_requeue_pi(call: Call<'_>, private: bool, wall: bool) -> Outcome {
    let deadline = deadline(&call, wall)?;
    let (from, to) = (place(&call, 0, private)?, place(&call, 4, private)?);
    if from.key == to.key {
        return Err(Errno::EINVAL);
    }
    match pi::wait_for_requeue(from, call.uint(2), to, deadline) {
        Ok(()) => Ok(0),
        Err(Error::Interrupted(_)) => restart::always(call),
        Err(error) => Err(error.into()),
    }
}

fn cmp_requeue_pi(call: &Call<'_>, private: bool) -> Outcome {
    let (wake_count, move_count) = (call.int(2), call.int(3));
    let (from, to) = (place(call, 0, private)?, place(call, 4, private)?);
    let move_count = usize::try_from(move_count).map_err(|_| Errno::EINVAL)?;
    if wake_count != 1 || from.key == to.key {
        return Err(Errno::EINVAL);
    }
    Ok(pi::cmp_requeue(from, call.uint(5), to, move_count)?)
}

/// How many threads to wake: C's `int`, where at least one is meant.
fn count(number: i32) -> usize {
    usize::try_from(number).unwrap_or(0).max(1)
}

fn wait(call: &Call<'_>, private: bool, bits: u32, absolute: bool, wall: bool) -> Outcome {
    if bits == 0 {
        return Err(Errno::EINVAL);
    }
    let deadline = match call.optional_addr(3) {
        None => Instant::NEVER,
        Some(at) => {
            let span = timespec::read(at)?;
            match (absolute, wall) {
                (true, true) => clock::instant_of_wall(span),
                (true, false) => Instant::START + span,
                (false, _) => call.thread.call_deadline(mach::time::now() + span),
            }
        }
    };
    match futex::wait(place(call, 0, private)?, call.uint(2), bits, deadline) {
        Ok(()) => Ok(0),
        Err(Error::Interrupted(_)) if call.optional_addr(3).is_some() && !absolute => {
            Err(Error::Interrupted(Restart::IfNoHandler).into())
        }
        Err(error) => Err(error.into()),
    }
}

fn wake(call: &Call<'_>, private: bool, bits: u32) -> Outcome {
    if bits == 0 {
        return Err(Errno::EINVAL);
    }
    let key = place(call, 0, private)?.key;
    Ok(futex::wake(key, bits, count(call.int(2))))
}

fn requeue(call: &Call<'_>, private: bool, expected: Option<u32>) -> Outcome {
    let wake_count = usize::try_from(call.int(2)).map_err(|_| Errno::EINVAL)?;
    let move_count = usize::try_from(call.int(3)).map_err(|_| Errno::EINVAL)?;
    let (from, to) = (place(call, 0, private)?, place(call, 4, private)?);
    let (woken, moved) = futex::requeue(from, to.key, wake_count, move_count, expected)?;
    Ok(woken + moved)
}

fn wake_op(call: &Call<'_>, private: bool) -> Outcome {
    let operation = Operation::decode(call.uint(5)).ok_or(Errno::ENOSYS)?;
    let (first, second) = (place(call, 0, private)?, place(call, 4, private)?);
    let (one, two) = (count(call.int(2)), count(call.int(3)));
    Ok(futex::wake_op(first.key, second, &operation, one, two)?)
}
