//! The library is exchanged for a newer one while the program serves (`docs/bypass.md`, "Exchanged while it serves").
//!
//! # Problem
//! The stack lies in the program's process, and its calls come to this library. A newer one is to have both, and peers
//! may wait for a moment only: no connection may be lost, and no segment either, for its peer would wait for a timer.
//!
//! # Idea
//! The newer library is loaded beside this one and opens a queue of its own on the same link. It makes all our sockets
//! anew, of a value (`posix`, `checkpoint`), under the same numbers. Then what stands behind our functions is no longer
//! the C library but the newer one, no number is ours any more, and our queue is closed: the program's calls pass
//! through us as those on files do, for a look at a byte.
//!
//! | step | if it fails |
//! |---|---|
//! | load it, and find all functions in it | nothing has happened |
//! | what threads have on queues of their own comes back to one (`shards`) | what came is there, the rest where it was |
//! | it opens its queue; from now on SYNs are its | it closes it |
//! | peers that were about to connect do, for [`HANDSHAKES_MAX`] at most | |
//! | our state is locked, and nobody waits for our queue's frames in the kernel | we go on |
//! | a copy of everything goes over | the copy is thrown away, and we go on |
//! | functions are re-pointed, numbers given up, our queue closed, frames in it passed on | cannot fail |
//! | it serves | cannot fail |
//!
//! Threads that wait in this library wake up, find that the state has moved, and make their call again, which leads
//! to the newer one.
//!
//! Lock order: the newer library's state, then ours.
//!
//! # Not here
//! A card of the program's own, which has one queue; a link that others have queues of, for the frames of our connections
//! would go to them. Both are refused. A library that was loaded stays loaded: its code is a part of the chain.

use std::ffi::{CString, c_int, c_void};
use std::io;
use std::net::Ipv4Addr;
use std::slice;
use std::sync::MutexGuard;
use std::thread;
use std::time::Duration;

use crate::config;
use crate::next;
use crate::patience::Polling;
use crate::ring_hooks;
use crate::shards;
use crate::state::{self, Held, State};
use crate::successor::{Successor, sietch_successor_1};

/// How long peers that have begun to connect have for it, and how often it is looked. Newer peers wait as long, and would ask
/// again after a second (RFC 6298 2.1).
const HANDSHAKES_MAX: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(1);
/// How long threads have to come out of the kernel.
const COMING_MAX: Duration = Duration::from_secs(1);
const COMING_LOOK: Duration = Duration::from_micros(50);

/// A newer library, loaded.
struct Newer {
    successor: &'static Successor,
    /// Its functions, in the order of `next::ALL`.
    functions: Vec<*mut c_void>,
}

/// Exchanges this library for the one at `path`; what was done, as a sentence.
///
/// Errors: why not, as a sentence; the program goes on with this one then.
pub fn exchange(path: &str) -> Result<String, String> {
    let newer = load(path)?;
    if ring_hooks::has_any() {
        return Err("the program has rings of io_uring with its sockets".into());
    }
    look_at_link(&mut state::lock())?;
    let joined = shards::join(bring_home);
    let done = joined.and_then(|()| follow(&newer));
    if done.is_err() {
        shards::part();
    }
    done
}

/// The newer library takes over.
fn follow(newer: &Newer) -> Result<String, String> {
    prepare(newer)?;
    let done = hand_over(newer);
    if done.is_err() {
        if let Ok(mut held) = Held::wait() {
            held.host().take_new_flows_again();
        }
        (newer.successor.renounce)();
    }
    done
}

fn load(path: &str) -> Result<Newer, String> {
    let name = CString::new(path).map_err(|_| "a path has no zero in it")?;
    // SAFETY: the name ends with a zero.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err(format!("{path}: it cannot be loaded"));
    }
    // SAFETY: the handle is of a library that stays loaded, and names end with a zero.
    let find = |name: &std::ffi::CStr| unsafe { libc::dlsym(handle, name.as_ptr()) };
    let successor = find(c"sietch_successor_1").cast_const().cast::<Successor>();
    // SAFETY: **Named**; it is a static of a library that stays loaded.
    let successor: &'static Successor = unsafe { successor.as_ref() }
        .ok_or_else(|| format!("{path}: it is no libsietch.so that can follow this one"))?;
    if std::ptr::eq(successor, &sietch_successor_1) {
        return Err(format!("{path}: it is the library that serves already"));
    }
    let functions: Vec<_> = next::ALL.iter().map(|behind| find(behind.name)).collect();
    match functions.iter().any(|function| function.is_null()) {
        true => Err(format!("{path}: it has fewer functions than this one")),
        false => Ok(Newer {
            successor,
            functions,
        }),
    }
}

/// Has the newer library open its queue.
fn prepare(newer: &Newer) -> Result<(), String> {
    let (config, own) = look_at_link(&mut state::lock())?;
    for behind in next::ALL {
        // SAFETY: a name that ends with a zero, and a function of that name and type (**Named**).
        unsafe { (newer.successor.behind)(behind.name.as_ptr(), behind.get()) };
    }
    let link = CString::new(config.link.as_str()).map_err(|_| "the link has no name")?;
    let (host, prefix_len) = (config.address.host(), config.address.prefix_len());
    let gateway = config.gateway.unwrap_or(Ipv4Addr::UNSPECIFIED);
    let mut queue = 0;
    // SAFETY: a name that ends with a zero, and a place for a number.
    let refused = unsafe {
        (newer.successor.prepare)(
            link.as_ptr(),
            host.to_bits(),
            prefix_len,
            gateway.to_bits(),
            &raw mut queue,
        )
    };
    if refused != 0 {
        let why = io::Error::from_raw_os_error(refused);
        return Err(format!("the newer library cannot have the link: {why}"));
    }
    // Of two queues both are among the lowest two.
    if own.max(queue) > 1 {
        (newer.successor.renounce)();
        return Err("other processes have queues of the link".into());
    }
    Ok(())
}

/// What the newer library is to open, and the number of our own queue.
fn look_at_link(state: &mut State) -> Result<(&'static sietch_io::QueueConfig, u16), String> {
    let config = config::get().filter(|_| state.host().is_some_and(|host| host.is_up()));
    let config = config.ok_or("the program has no link")?;
    if state.is_lending() {
        return Err("a child of the program's may still claim its connections".into());
    }
    if state.is_childs {
        return Err("the program shares its link with its parent".into());
    }
    let queue = state.queue();
    let queue = queue.ok_or("the program has a card of its own, whose frames have no other way")?;
    Ok((config, queue))
}

/// Passes everything to a newer library that has its queue.
fn hand_over(newer: &Newer) -> Result<String, String> {
    finish_handshakes()?;
    let mut state = state::lock();
    let begin = state::now();
    let left = bring_home(slice::from_mut(&mut state)).and_then(|()| leave(newer, &mut state));
    let (connections, unmade) = left?;
    for (behind, function) in next::ALL.iter().zip(&newer.functions) {
        behind.set(*function);
    }
    let rest = state.move_on(|frames| {
        for frame in frames {
            // SAFETY: the frame's bytes, as many as is said.
            unsafe { (newer.successor.hear)(frame.as_ptr(), frame.len()) };
        }
    });
    drop(state);
    (newer.successor.serve)();
    let micros = state::now().since(begin).as_nanos() / 1000;
    drop(rest);
    let (millis, tenths) = (micros / 1000, micros % 1000 / 100);
    let unmade = match unmade {
        0 => String::new(),
        unmade => format!(", {unmade} that were being made did not"),
    };
    Ok(format!(
        "{connections} connections moved{unmade}; nothing was answered for {millis}.{tenths} ms"
    ))
}

/// The newer library has the SYNs; who has asked us before is answered by us.
fn finish_handshakes() -> Result<(), String> {
    let end = state::now() + base::Duration::from_nanos(HANDSHAKES_MAX.as_nanos() as u64);
    loop {
        let mut held = Held::wait().map_err(|_| "the program has no link")?;
        let now = state::now();
        let host = held.host();
        host.take_no_new_flows();
        host.turn(now);
        host.flush();
        if host.half_open() == 0 || now >= end {
            return Ok(());
        }
        drop(held);
        thread::sleep(LOOK);
    }
}

/// Copies everything into the newer library: how many connections, and how many were not made yet.
fn leave(newer: &Newer, state: &mut State) -> Result<(usize, usize), String> {
    let host = state.host().ok_or("the program has no link")?;
    host.turn(state::now());
    host.flush();
    let unmade = host.half_open();
    let bytes = host.checkpoint().map_err(|_| "there is no memory for it")?;
    let mut connections = 0;
    // SAFETY: as many bytes as is said, and a place for a number.
    let refused: c_int =
        unsafe { (newer.successor.take)(bytes.as_ptr(), bytes.len(), &raw mut connections) };
    match refused {
        0 => Ok((connections, unmade)),
        error => {
            let why = io::Error::from_raw_os_error(error);
            Err(format!("the newer library cannot have the sockets: {why}"))
        }
    }
}

/// Waits until no thread is in the kernel with a queue's socket of ours, which stays open otherwise. None goes there again
/// while all states that have one are locked.
fn bring_home(states: &mut [MutexGuard<'static, State>]) -> Result<(), String> {
    for state in &mut *states {
        state.bells.ring();
        state.ring_keeper(true);
    }
    let mut waited = Duration::ZERO;
    while Polling::count() != 0 && waited < COMING_MAX {
        thread::sleep(COMING_LOOK);
        waited += COMING_LOOK;
    }
    for state in states {
        state.ring_keeper(false);
    }
    match Polling::count() {
        0 => Ok(()),
        _ => Err("a thread does not come back from its wait".into()),
    }
}
