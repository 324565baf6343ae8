//! select, pselect6.
//!
//! A set is an array of 64-bit words, bit n of the whole for descriptor n.

use alloc::vec::Vec;

use base::{Instant, VirtAddr};
use linux_raw_sys::general::{__NR_pselect6, __NR_select};
use mach::mem::fallible::{self, TryGrow};
use mm::user;
use sync::poll::Events;
use sync::{Error, Restart, Result, Wait};
use vfs::file::Fd;
use vfs::file::poll::{Watched, wait_for_any};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;
use linux_abi::{deadline, sigmask};

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_select,
        name: "select",
        args: &[
            Arg::Int,
            Arg::Address,
            Arg::Address,
            Arg::Address,
            Arg::Address,
        ],
        handler: select,
    },
    Entry {
        number: __NR_pselect6,
        name: "pselect6",
        args: &[
            Arg::Int,
            Arg::Address,
            Arg::Address,
            Arg::Address,
            Arg::Address,
            Arg::Address,
        ],
        handler: pselect,
    },
];

/// Descriptors that a set may cover.
const DESCRIPTORS_MAX: i32 = 1 << 20;

/// The three sets in their order: what each asks for, and what counts as an answer to it
/// (fs/select.c: POLLIN_SET, POLLOUT_SET, POLLEX_SET).
const READ: Events = Events::READABLE
    .union(Events::RDBAND)
    .union(Events::HUP)
    .union(Events::ERR);
const WRITE: Events = Events::WRITABLE.union(Events::WRBAND).union(Events::ERR);
const EXCEPT: Events = Events::PRI;
const SETS: [Events; 3] = [READ, WRITE, EXCEPT];

fn select(call: Call<'_>) -> Outcome {
    let limit = call.optional_addr(4);
    let deadline = deadline::from_timeval(&call, limit)?;
    let outcome = select_until(&call, deadline);
    deadline::tell_remaining_micros(limit, deadline);
    outcome
}

fn pselect(call: Call<'_>) -> Outcome {
    let limit = call.optional_addr(4);
    let deadline = deadline::from_timespec(&call, limit)?;
    if let Some(at) = call.optional_addr(5) {
        let [mask, size] = user::read::<[u64; 2]>(at)?;
        sigmask::exchange(&call, mask, size)?;
    }
    let outcome = select_until(&call, deadline);
    deadline::tell_remaining(limit, deadline);
    outcome
}

fn select_until(call: &Call<'_>, deadline: Instant) -> Outcome {
    let count = call.int(0);
    if !(0..=DESCRIPTORS_MAX).contains(&count) {
        return Err(Errno::EINVAL);
    }
    let words = (count as usize).div_ceil(64);
    let addresses = [1, 2, 3].map(|index| call.optional_addr(index));
    let sets = read_sets(addresses, words, count as u32)?;
    let (numbers, mut files) = watched(call, &sets)?;
    let how = Wait::INTERRUPTIBLE
        .until(deadline)
        .restart(Restart::IfNoHandler);
    wait_for_any(&mut files, how)?;
    store_answers(&numbers, &files, &sets, addresses)
}

type Set = Vec<u64>;

fn read_sets(at: [Option<VirtAddr>; 3], words: usize, count: u32) -> Result<[Set; 3]> {
    let mut sets = [Set::new(), Set::new(), Set::new()];
    for (set, at) in sets.iter_mut().zip(at) {
        set.make_room(words).map_err(|_| Error::OutOfMemory)?;
        for index in 0..words {
            let word = match at {
                Some(at) => user::read::<u64>(at + index as u64 * 8)?,
                None => 0,
            };
            let beyond = count.saturating_sub(index as u32 * 64);
            let known = if beyond >= 64 {
                u64::MAX
            } else {
                (1 << beyond) - 1
            };
            set.push(word & known);
        }
    }
    Ok(sets)
}

fn contains(set: &Set, fd: Fd) -> bool {
    set.get(fd as usize / 64)
        .is_some_and(|word| word >> (fd % 64) & 1 != 0)
}

/// The descriptors in any of the sets, and what they ask for.
fn watched(call: &Call<'_>, sets: &[Set; 3]) -> Result<(Vec<Fd>, Vec<Watched>)> {
    let table = call.thread.files.get();
    let [read, write, except] = sets;
    let (mut numbers, mut files) = (Vec::new(), Vec::new());
    for (index, ((a, b), c)) in read.iter().zip(write).zip(except).enumerate() {
        let mut rest = a | b | c;
        while rest != 0 {
            let fd = index as u32 * 64 + rest.trailing_zeros();
            rest &= rest - 1;
            let open = Some(table.get(fd)?);
            numbers.push(fd);
            files.push(Watched {
                open,
                interest: asked(sets, fd),
                ready: Events::empty(),
            });
        }
    }
    Ok((numbers, files))
}

fn asked(sets: &[Set; 3], fd: Fd) -> Events {
    let asking = sets.iter().zip(SETS).filter(|(set, _)| contains(set, fd));
    asking.fold(Events::empty(), |all, (_, events)| all | events)
}

/// Stores the answers; returns how many bits are set in them.
fn store_answers(
    numbers: &[Fd],
    files: &[Watched],
    asked: &[Set; 3],
    at: [Option<VirtAddr>; 3],
) -> Outcome {
    let mut total = 0;
    for ((set, events), at) in asked.iter().zip(SETS).zip(at) {
        let zeros = set.iter().map(|_| 0);
        let mut answer: Set = fallible::collected(zeros).map_err(|_| Errno::ENOMEM)?;
        for (&fd, file) in numbers.iter().zip(files) {
            if file.ready.intersects(events)
                && contains(set, fd)
                && let Some(word) = answer.get_mut(fd as usize / 64)
            {
                *word |= 1 << (fd % 64);
                total += 1;
            }
        }
        if let Some(at) = at {
            for (index, word) in answer.iter().enumerate() {
                user::write(at + index as u64 * 8, *word)?;
            }
        }
    }
    Ok(total)
}
