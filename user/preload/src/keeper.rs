//! A thread that looks after frames while the program is elsewhere.
//!
//! A program computes, or waits for something that is none of ours: nobody is in the library then, frames lie
//! unseen, and what was left to leave with later answers would lie for as long (`posix`, "When frames leave").
//! The keeper sleeps until frames come, and from then on looks every few milliseconds whether somebody was in the
//! library, until nothing happens any more. While it looks, sends may be left lying; while it sleeps,
//! they leave at once. So a busy program pays for sixty wake-ups a second, and an idle one for none. They come at whole
//! multiples of the period, where the kernel's own alarms are: a hypervisor is asked for one alarm, not for two. What the stack
//! has to do at such a moment is the keeper's while it looks, and no program's that waits.
//!
//! A program that waits for frames itself is woken by the same one. Then the keeper stays out of its way: it looks
//! a period later, and sleeps again at once if the program waits again by then and had little to do meanwhile: few turns, and
//! few sends, for a program may answer many questions of one connection in a turn, and each of these answers would leave alone.
//! Where it finds the program in the library it does not wait for the lock either: what lies there is let go by who has it, and the look is
//! a period later. While the program does much, looks are rarer ([`LookPace`]).

use std::ffi::c_int;
use std::mem;
use std::ptr;
use std::thread;

use base::Instant;
use libc::pollfd;
use posix::{Host, LOOK_NANOS, LookPace, Result, look_after};

use crate::patience::{Polling, poll_files, readable};
use crate::seen;
use crate::state::{self, Held, Port};

/// After so many looks in which nothing happened it sleeps.
const QUIET_LOOKS: u32 = 3;
/// So many turns and sends between two looks are little: a request that came alone takes three or four.
const FEW_STEPS: u64 = 8;

/// Starts one for the host of a place, whose link is gone when `revocation` can be read, and until `bell` rings and the link is a newer
/// library's. Without a thread for it each send leaves at
/// once.
pub fn start(place: u8, descriptor: c_int, revocation: Option<c_int>, bell: c_int) {
    // A number below zero is nobody's, and waited for in vain.
    let revocation = revocation.unwrap_or(-1);
    spawn("sietch", move || keep(place, descriptor, revocation, bell));
}

/// Starts a thread of the library's. The program's handlers of signals are not to run on it.
pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) {
    // SAFETY: all zeros is a set of signals.
    let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { mem::zeroed() };
    // SAFETY: both sets are ours.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
    }
    thread::Builder::new().name(name.into()).spawn(run).ok();
    // SAFETY: as before.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
}

/// As long as there is a link, and it is this library's.
fn keep(place: u8, descriptor: c_int, revocation: c_int, bell: c_int) {
    let is_first = place == 0;
    while let Some(Rest {
        due,
        steps,
        polling,
    }) = rest(place)
    {
        let shown = if is_first { seen::descriptor() } else { -1 };
        let mut files = [descriptor, revocation, bell, shown].map(readable);
        let most = due.map(|due| due.since(state::now()).as_nanos());
        ask(&mut files, most);
        drop(polling);
        // Whatever else ends the wait, it is time to look.
        let [frames, others @ ..] = files.map(|file| file.revents != 0);
        if frames && !others.contains(&true) && is_attended(place) {
            sleep_until_look(look_after(state::now(), 1));
        }
        if !look_until_quiet(place, revocation, steps) {
            break;
        }
    }
    if is_first {
        let _state = state::lock();
        seen::stop();
    }
}

/// The keeper's own call, and how many files are ready. It is a function of its own because `bench-echo` counts how often it
/// runs.
#[inline(never)]
fn ask(files: &mut [pollfd], most_nanos: Option<u64>) -> usize {
    poll_files(files, most_nanos, ptr::null()).unwrap_or(0)
}

/// Whether somebody of the program's is in the library, or waits there for the same frames.
fn is_attended(place: u8) -> bool {
    state::try_lock_at(place).is_none_or(|state| state.bells.are_out())
}

/// Whether the administrator has taken the link away.
fn is_revoked(revocation: c_int) -> bool {
    let mut files = [readable(revocation)];
    revocation >= 0 && ask(&mut files, Some(0)) != 0
}

/// What a keeper that sleeps waits for, and how many steps there were before.
struct Rest {
    due: Option<Instant>,
    steps: u64,
    polling: Polling,
}

/// From now on nobody looks; when something is due that nobody may be there for. `None` without a link.
fn rest(place: u8) -> Option<Rest> {
    let mut held = Held::at(place).ok()?;
    let now = held.now();
    let host = held.host();
    host.watch(false);
    let due = host.next_deadline(now);
    let slack = |due: Instant| Instant::from_nanos(due.as_nanos() + LOOK_NANOS);
    host.link().forget();
    let due = match host.arm() {
        true => Some(now),
        false => due.map(slack),
    };
    let (is_up, steps) = (host.is_up(), host.steps());
    is_up.then(|| Rest {
        due,
        steps,
        polling: Polling::begin(&held),
    })
}

/// Looks, beginning at once; there were so many steps when somebody looked last. False without a link.
fn look_until_quiet(place: u8, revocation: c_int, mut steps: u64) -> bool {
    let (mut quiet, mut pace) = (0, LookPace::default());
    loop {
        let Ok(mut held) = meet(place) else {
            return false;
        };
        let (host, bells) = held.parts();
        if pace.begin_look() && is_revoked(revocation) {
            host.lose_link();
        }
        host.watch(true);
        let now = state::now();
        // A further host that was opened anew has had fewer.
        let steps_since = host.steps().saturating_sub(steps);
        let is_attended = bells.are_out() && steps_since < FEW_STEPS;
        let is_still = steps_since == 0 || is_attended;
        let is_due = host.next_deadline(now).is_some_and(|due| due <= now);
        let has_rested = match is_still || is_due {
            true => host.look_after(now),
            // The program looks itself; what it leaves lying leaves no later than this.
            false => {
                host.flush();
                false
            }
        };
        quiet = match has_rested && is_still {
            true if is_attended => QUIET_LOOKS,
            true => quiet + 1,
            false => 0,
        };
        show(place, host);
        steps = host.steps();
        pace.note(steps_since);
        let next_look = pace.next_look(now);
        host.watch_again_at(next_look);
        if !host.is_up() {
            return false;
        }
        drop(held);
        if quiet >= QUIET_LOOKS {
            return true;
        }
        sleep_until_look(next_look);
    }
}

/// Waits for the host; if the program has it, for a period first, as what lies there leaves without us.
///
/// Errors: those of [`Held::at`].
fn meet(place: u8) -> Result<Held> {
    if let Some(held) = Held::at_or_ask(place)? {
        return Ok(held);
    }
    sleep_until_look(look_after(state::now(), 1));
    Held::at(place)
}

fn show(place: u8, host: &mut Host<Port>) {
    if place == 0 {
        seen::write(host, state::now(), |show| {
            let further = state::further().filter_map(|place| Held::at(place).ok());
            further.for_each(|mut held| show(held.host()));
        });
    }
}

/// Not inlined, for the same reason as [`ask`].
#[inline(never)]
fn sleep_until_look(at: Instant) {
    const NANOS_PER_SEC: u64 = 1_000_000_000;
    let at = at.as_nanos();
    let at = libc::timespec {
        tv_sec: (at / NANOS_PER_SEC) as _,
        tv_nsec: (at % NANOS_PER_SEC) as _,
    };
    // SAFETY: a time is read, and none is written.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const at,
            ptr::null_mut(),
        )
    };
}
