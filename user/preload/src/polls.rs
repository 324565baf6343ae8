//! poll and select.

use std::ffi::{c_int, c_short};
use std::ptr;
use std::slice;

use base::Instant;
use libc::{fd_set, nfds_t, pollfd, sigset_t, size_t, timespec, timeval};
use posix::{Errno, Events, Result};

use crate::answer;
use crate::next;
use crate::numbers::{self, Whose, seen, whose};
use crate::patience;
use crate::ring_hooks;
use crate::shards;
use crate::state::{self, Held};

const NANOS_PER_SEC: u64 = 1_000_000_000;
const NANOS_PER_MILLI: u64 = 1_000_000;
const NANOS_PER_MICRO: u64 = 1000;

fn is_ours(number: c_int) -> bool {
    seen(number) == Whose::Socket
}

/// Whether any is, after all that were inherited are used.
fn has_ours(files: &[pollfd]) -> bool {
    ring_hooks::before_wait();
    let is_ours = |file: &&pollfd| match whose(file.fd) {
        Whose::Socket => true,
        Whose::Ring => {
            ring_hooks::note_polled(file.fd);
            false
        }
        _ => false,
    };
    files.iter().filter(is_ours).count() != 0
}

fn later(nanos: u64) -> Instant {
    Instant::from_nanos(state::now().as_nanos().saturating_add(nanos))
}

fn nanos_of(seconds: i64, nanos: u64) -> u64 {
    let seconds = u64::try_from(seconds).unwrap_or(0);
    seconds.saturating_mul(NANOS_PER_SEC).saturating_add(nanos)
}

/// Waits for any of several files, some of which are ours.
fn poll_all(files: &mut [pollfd], until: Option<Instant>, mask: *const sigset_t) -> Result<usize> {
    let mut theirs: Vec<pollfd> = files.iter().map(kernels_part).collect();
    let mut has_waited = false;
    loop {
        let all = places_of(files);
        let own = if all == 0 {
            0
        } else {
            all.trailing_zeros() as u8
        };
        let mut ours = 0;
        let others = all & !(1 << own);
        for place in patience::places(others) {
            // Of one that has ended sockets are elsewhere, which is seen below.
            let looked = Held::at(place).map(|mut held| turn_and_look(&mut held, files));
            ours += looked.unwrap_or(0);
        }
        let mut held = match Held::at(own) {
            Err(Errno::NETWORK_DOWN) if own != 0 => continue,
            held => held?,
        };
        ours += turn_and_look(&mut held, files);
        let now = held.now();
        let is_over = ours != 0 || until.is_some_and(|until| until <= now);
        let found = match is_over {
            // Without a file of the kernel's there is nothing to ask it.
            true if theirs.iter().all(|file| file.fd < 0) => 0,
            true => patience::poll_files(&mut theirs, Some(0), ptr::null())?,
            false => theirs.iter().filter(|file| file.revents != 0).count(),
        };
        if is_over || found != 0 {
            held.host().expect_answers(ours);
            merge(files, &theirs);
            if has_waited && ours != 0 {
                let alone = that_want_a_home(&mut held, files);
                drop(held);
                alone.into_iter().for_each(shards::settle_alone);
            }
            return Ok(ours + found);
        }
        let is_over = |held: &mut Held| places_of(files) != all || look(held, files) != 0;
        drop(patience::wait_at(
            held,
            others,
            is_over,
            (&mut theirs, None),
            until,
            mask,
        )?);
        has_waited = true;
    }
}

/// The connections here that are to go to the home of the calling thread, which has waited for what they receive.
fn that_want_a_home(held: &mut Held, files: &[pollfd]) -> Vec<c_int> {
    let is_read = |file: &&pollfd| file.revents & libc::POLLIN != 0 && is_ours(file.fd);
    let mut wants_home = |number: c_int| {
        let open = held.host().socket(number.cast_unsigned());
        open.is_ok_and(|open| shards::wants_home(held.host(), &open))
    };
    let read = files.iter().filter(is_read).map(|file| file.fd);
    read.filter(|number| wants_home(*number)).collect()
}

/// Which of the program's hosts have files of ours: a bit for each.
fn places_of(files: &[pollfd]) -> u16 {
    let ours = files.iter().filter(|file| is_ours(file.fd));
    ours.fold(0, |places, file| places | 1 << numbers::place(file.fd))
}

fn turn_and_look(held: &mut Held, files: &mut [pollfd]) -> usize {
    let now = held.now();
    held.host().turn(now);
    look(held, files)
}

/// What the kernel is asked of a file: nothing if it is ours.
fn kernels_part(file: &pollfd) -> pollfd {
    pollfd {
        fd: if is_ours(file.fd) { -1 } else { file.fd },
        events: file.events,
        revents: 0,
    }
}

/// Answers for our files of this host; how many are ready.
fn look(held: &mut Held, files: &mut [pollfd]) -> usize {
    let (mut count, place) = (0, held.place());
    let is_here = |file: &&mut pollfd| is_ours(file.fd) && numbers::place(file.fd) == place;
    for file in files.iter_mut().filter(is_here) {
        let open = held.host().socket(file.fd.cast_unsigned());
        let ready = open.map_or(Events::NVAL, |open| {
            held.host().note_watched(&open);
            open.ready()
        });
        let wanted = Events::from_bits_truncate(u32::from(file.events.cast_unsigned()));
        let told = ready & (wanted | Events::ALWAYS | Events::NVAL);
        file.revents = told.bits() as c_short;
        count += usize::from(!told.is_empty());
    }
    count
}

fn merge(files: &mut [pollfd], theirs: &[pollfd]) {
    for (file, theirs) in files.iter_mut().zip(theirs) {
        if theirs.fd == file.fd {
            file.revents = theirs.revents;
        }
    }
}

/// # Safety
/// **Caller**.
unsafe fn files<'a>(at: *mut pollfd, count: nfds_t) -> &'a mut [pollfd] {
    match at.is_null() {
        true => &mut [],
        // SAFETY: **Caller**.
        false => unsafe { slice::from_raw_parts_mut(at, count as usize) },
    }
}

/// `ppoll(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    at: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: **Caller**.
    let all = unsafe { files(at, count) };
    if !has_ours(all) {
        // SAFETY: **Caller**.
        return unsafe { next::ppoll.get()(at, count, timeout, mask) };
    }
    // SAFETY: **Caller**.
    let limit = unsafe { timeout.as_ref() };
    let until = limit.map(|limit| later(nanos_of(limit.tv_sec, limit.tv_nsec.unsigned_abs())));
    let found = poll_all(all, until, mask).map(|count| count as c_int);
    // SAFETY: **Caller**.
    answer::number_or(found, || unsafe {
        next::ppoll.get()(at, count, timeout, mask)
    })
}

/// `poll(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(at: *mut pollfd, count: nfds_t, timeout_ms: c_int) -> c_int {
    let millis = u64::try_from(timeout_ms).ok();
    let limit = millis.map(|millis| timespec {
        tv_sec: (millis / 1000) as _,
        tv_nsec: (millis % 1000 * NANOS_PER_MILLI) as _,
    });
    let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: **Caller**.
    unsafe { ppoll(at, count, limit, ptr::null()) }
}

/// `poll(2)` of a program that was built to have its memory checked.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __poll_chk(
    at: *mut pollfd,
    count: nfds_t,
    timeout_ms: c_int,
    _room: size_t,
) -> c_int {
    // SAFETY: **Caller**.
    unsafe { poll(at, count, timeout_ms) }
}

/// `ppoll(2)` of such a program.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __ppoll_chk(
    at: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
    _room: size_t,
) -> c_int {
    // SAFETY: **Caller**.
    unsafe { ppoll(at, count, timeout, mask) }
}

/// What is asked of a file by its bits in the three sets of select, and which answers set these again.
const ASKED: [c_short; 3] = [libc::POLLIN, libc::POLLOUT, libc::POLLPRI];
const ANSWERS: [c_short; 3] = [
    libc::POLLIN | libc::POLLHUP | libc::POLLERR,
    libc::POLLOUT | libc::POLLERR,
    libc::POLLPRI,
];

const BITS: usize = u64::BITS as usize;

/// The words of a set that has bits for `count` numbers.
///
/// # Safety
/// **Caller**.
unsafe fn words<'a>(set: *mut fd_set, count: usize) -> &'a mut [u64] {
    match set.is_null() {
        true => &mut [],
        // SAFETY: **Caller**.
        false => unsafe { slice::from_raw_parts_mut(set.cast(), count.div_ceil(BITS)) },
    }
}

fn has(words: &[u64], number: usize) -> bool {
    words
        .get(number / BITS)
        .is_some_and(|word| word >> (number % BITS) & 1 != 0)
}

fn asked(sets: &[&mut [u64]; 3], count: usize) -> Vec<pollfd> {
    let of_number = |number: usize| {
        let bits = sets.iter().zip(ASKED).filter(|(set, _)| has(set, number));
        let events = bits.fold(0, |events, (_, asked)| events | asked);
        (events != 0).then_some(pollfd {
            fd: number as c_int,
            events,
            revents: 0,
        })
    };
    (0..count).filter_map(of_number).collect()
}

/// Sets the bits of what is ready, and no others; how many.
fn answer_sets(sets: &mut [&mut [u64]; 3], files: &[pollfd]) -> usize {
    let mut count = 0;
    for (set, (answers, asked)) in sets.iter_mut().zip(ANSWERS.into_iter().zip(ASKED)) {
        set.fill(0);
        let ready = |file: &&pollfd| file.events & asked != 0 && file.revents & answers != 0;
        for file in files.iter().filter(ready) {
            let number = file.fd.cast_unsigned() as usize;
            if let Some(word) = set.get_mut(number / BITS) {
                *word |= 1 << (number % BITS);
                count += 1;
            }
        }
    }
    count
}

/// select by poll, if any file is ours.
fn select_ours(
    sets: &mut [&mut [u64]; 3],
    count: usize,
    nanos: Option<u64>,
    mask: *const sigset_t,
) -> Option<Result<usize>> {
    let mut files = asked(sets, count);
    if !has_ours(&files) {
        return None;
    }
    let found = poll_all(&mut files, nanos.map(later), mask);
    Some(found.map(|_| answer_sets(sets, &files)))
}

/// `select(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    let numbers = usize::try_from(count).unwrap_or(0);
    // SAFETY: **Caller**.
    let mut sets = [read, write, except].map(|set| unsafe { words(set, numbers) });
    // SAFETY: **Caller**.
    let limit = unsafe { timeout.as_ref() };
    let nanos =
        limit.map(|limit| nanos_of(limit.tv_sec, limit.tv_usec.unsigned_abs() * NANOS_PER_MICRO));
    match select_ours(&mut sets, numbers, nanos, ptr::null()) {
        Some(found) if found != Err(Errno::MOVED) => {
            answer::number(found.map(|count| count as c_int))
        }
        // SAFETY: **Caller**.
        _ => unsafe { next::select.get()(count, read, write, except, timeout) },
    }
}

/// `pselect(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let numbers = usize::try_from(count).unwrap_or(0);
    // SAFETY: **Caller**.
    let mut sets = [read, write, except].map(|set| unsafe { words(set, numbers) });
    // SAFETY: **Caller**.
    let limit = unsafe { timeout.as_ref() };
    let nanos = limit.map(|limit| nanos_of(limit.tv_sec, limit.tv_nsec.unsigned_abs()));
    match select_ours(&mut sets, numbers, nanos, mask) {
        Some(found) if found != Err(Errno::MOVED) => {
            answer::number(found.map(|count| count as c_int))
        }
        // SAFETY: **Caller**.
        _ => unsafe { next::pselect.get()(count, read, write, except, timeout, mask) },
    }
}
