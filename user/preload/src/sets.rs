//! epoll. A set of the program's is two of the same number: the kernel's, and ours for the sockets that
//! are ours (`posix::WatchSet`).

use std::ffi::c_int;
use std::ptr;
use std::slice;
use std::sync::Arc;

use base::Instant;
use libc::{epoll_event, sigset_t};
use posix::{Errno, Event, Events, Result, Trigger, Watch, WatchSet};

use crate::answer;
use crate::ears::Known;
use crate::next;
use crate::numbers::{self, Whose, seen, whose};
use crate::patience::{self, readable};
use crate::ring_hooks;
use crate::shards;
use crate::state::Held;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// `epoll_create(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn epoll_create(size: c_int) -> c_int {
    match size > 0 {
        true => epoll_create1(0),
        false => answer::number(Err(Errno::INVALID)),
    }
}

/// `epoll_create1(2)`. Each set is known from its making on, so that nobody waits for the kernel's alone when
/// the first socket of ours is added.
#[unsafe(no_mangle)]
pub extern "C" fn epoll_create1(flags: c_int) -> c_int {
    let held = Held::open();
    // SAFETY: no memory is passed.
    let number = unsafe { next::epoll_create1.get()(flags) };
    if let Some(mut held) = held.filter(|_| number >= 0)
        && held.host().add_set(number.cast_unsigned()).is_ok()
    {
        numbers::set(number, Whose::Set);
    }
    number
}

/// `epoll_ctl(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_ctl(
    set: c_int,
    operation: c_int,
    number: c_int,
    event: *mut epoll_event,
) -> c_int {
    if whose(number) != Whose::Socket {
        ring_hooks::note_polled(number);
        // SAFETY: **Caller**.
        return unsafe { next::epoll_ctl.get()(set, operation, number, event) };
    }
    // SAFETY: **Caller**.
    let watch = (!event.is_null()).then(|| watch_of(&unsafe { ptr::read_unaligned(event) }));
    let done = control(set, operation, number, watch);
    // SAFETY: **Caller**.
    let again = || unsafe { next::epoll_ctl.get()(set, operation, number, event) };
    answer::done_or(done, again)
}

fn watch_of(event: &epoll_event) -> Watch {
    let bits = event.events;
    Watch {
        interest: Events::from_bits_truncate(bits),
        trigger: Trigger::from_bits_truncate(bits),
        data: event.u64,
    }
}

fn control(set: c_int, operation: c_int, number: c_int, watch: Option<Watch>) -> Result<()> {
    let mut held = Held::of(set)?;
    if seen(set) == Whose::Kernel {
        // One that somebody else has made: the kernel knows whether it is one.
        held.host().add_set(set.cast_unsigned())?;
        numbers::set(set, Whose::Set);
    }
    let members = held.host().set(set.cast_unsigned());
    let members = members.ok_or(Errno::INVALID)?;
    let places = members.places();
    if operation == libc::EPOLL_CTL_ADD {
        drop(held);
        shards::settle(set, &members, number);
        held = Held::of(number)?;
    } else {
        held = Held::or_of(Some(held), number)?;
    }
    change(&mut held, &members, operation, number, watch)?;
    if operation == libc::EPOLL_CTL_DEL && !places.is_power_of_two() {
        drop(held);
        shards::find_places(&members);
        return Ok(());
    }
    // Who waits does it at the hosts of all members.
    if members.may_be_ready() || members.places() != places {
        Held::or_of(Some(held), set)?.parts().1.ring();
    }
    Ok(())
}

/// Does it, with the socket's host.
fn change(
    held: &mut Held,
    members: &Arc<WatchSet>,
    operation: c_int,
    number: c_int,
    watch: Option<Watch>,
) -> Result<()> {
    let (number, host) = (number.cast_unsigned(), held.host());
    let open = host.socket(number)?;
    match (operation, watch) {
        (libc::EPOLL_CTL_ADD, Some(watch)) => {
            members.add(number, &open, watch)?;
            host.note_watched(&open);
        }
        (libc::EPOLL_CTL_MOD, Some(watch)) => {
            members.modify(number, &open, watch)?;
            host.note_watched(&open);
        }
        (libc::EPOLL_CTL_DEL, _) => members.remove(number, &open)?,
        _ => return Err(Errno::INVALID),
    }
    Ok(())
}

/// `epoll_wait(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_wait(
    set: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout_ms: c_int,
) -> c_int {
    // SAFETY: **Caller**.
    unsafe { epoll_pwait(set, events, most, timeout_ms, ptr::null()) }
}

/// `epoll_pwait(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait(
    set: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout_ms: c_int,
    mask: *const sigset_t,
) -> c_int {
    ring_hooks::before_wait();
    let room = usize::try_from(most).unwrap_or(0);
    if seen(set) != Whose::Set || room == 0 || events.is_null() {
        // SAFETY: **Caller**.
        return unsafe { next::epoll_pwait.get()(set, events, most, timeout_ms, mask) };
    }
    // SAFETY: **Caller**: there is room for so many.
    let told = unsafe { slice::from_raw_parts_mut(events, room) };
    let found = wait(set, told, u64::try_from(timeout_ms).ok(), mask);
    // SAFETY: **Caller**.
    let again = || unsafe { next::epoll_pwait.get()(set, events, most, timeout_ms, mask) };
    answer::number_or(found.map(|count| count as c_int), again)
}

fn wait(
    set: c_int,
    events: &mut [epoll_event],
    limit_millis: Option<u64>,
    mask: *const sigset_t,
) -> Result<usize> {
    let mut held = Held::of(set)?;
    let begin = held.now().as_nanos();
    let until = limit_millis.map(|millis| Instant::from_nanos(begin + millis * NANOS_PER_MILLI));
    let members = held
        .host()
        .set(set.cast_unsigned())
        .ok_or(Errno::BAD_NUMBER)?;
    shards::note_waiting(&members);
    loop {
        let now = held.now();
        // What was staged is let go below, or by the wait.
        let taken = held.host().look(now);
        let others = members.places() & !(1 << held.place());
        if others != 0 {
            held = turn_others(held, others, set)?;
        }
        let mut ours = 0;
        members.collect(events.len(), |event| {
            events[ours] = told(event);
            ours += 1;
        });
        if ours != 0 {
            held.host().turn_to_answer(ours, taken);
            let is_kernels_turn = ours < events.len() && members.pace.is_due(now);
            drop(held);
            return Ok(match is_kernels_turn {
                // What is wrong with its part is for a call that has nothing to tell.
                true => ours + kernels(set, &mut events[ours..]).unwrap_or(0),
                false => ours,
            });
        }
        let known = Known::of(set, &members, members.pace.is_due(now));
        let mut files = [readable(set)];
        let is_over = |_: &mut Held| members.may_be_ready();
        let waited_for = (&mut files[..], Some(&known));
        let came_back = patience::wait_at(held, others, is_over, waited_for, until, mask)?;
        if known.was_asked.get() {
            members.pace.note_asked(now);
        }
        held = Held::or_of(came_back, set)?;
        if files[0].revents != 0 {
            drop(held);
            let found = kernels(set, events)?;
            if found != 0 {
                return Ok(found);
            }
            // Another thread was faster.
            held = Held::of(set)?;
        }
        if until.is_some_and(|until| until <= held.now()) && !members.may_be_ready() {
            return Ok(0);
        }
    }
}

/// Looks after frames of other hosts, which have members of the set.
#[cold]
fn turn_others(held: Held, others: u16, set: c_int) -> Result<Held> {
    drop(held);
    for place in patience::places(others) {
        // One that has ended has none.
        if let Ok(mut held) = Held::at(place) {
            let now = held.now();
            held.host().turn(now);
        }
    }
    Held::of(set)
}

/// What is ready of the kernel's part now.
///
/// Errors: `BAD_ADDRESS` if nothing could be told there.
fn kernels(set: c_int, events: &mut [epoll_event]) -> Result<usize> {
    let most = c_int::try_from(events.len()).unwrap_or(c_int::MAX);
    // SAFETY: there is room for so many.
    let found = unsafe { next::epoll_pwait.get()(set, events.as_mut_ptr(), most, 0, ptr::null()) };
    match usize::try_from(found) {
        Err(_) if answer::errno() == libc::EFAULT => Err(Errno::BAD_ADDRESS),
        found => Ok(found.unwrap_or(0)),
    }
}

fn told(event: Event) -> epoll_event {
    epoll_event {
        events: event.events.bits(),
        u64: event.data,
    }
}
