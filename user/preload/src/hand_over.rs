//! A socket goes over to the kernel's stack, under its numbers (`docs/bypass.md`, "Handed over to the kernel").
//!
//! # Problem
//! A socket of ours lives in this process's memory. Whoever gets its number without the library, by SCM_RIGHTS or as another
//! program, has the kernel's socket behind it, which knows nothing.
//!
//! # Idea
//! That socket becomes what ours was. All who have the number have it from then on: copies under other numbers, children,
//! whoever it was passed to. So only the kernel's knowledge changes, and no descriptor.
//!
//! | step | if it fails |
//! |---|---|
//! | the link's interface gets the program's address (`kernel_address`) | nothing has happened |
//! | all of the library stands still; what has come is looked at; a connection stands still | |
//! | the kernel's socket is made whole: a connection by `repair`, standing still; a listener listens | the connection goes on here |
//! | the link's frames for it go to the kernel's stack (`docs/rings.md`); what came to our queue until then is dropped | the same |
//! | the kernel's connection goes on, and asks its peer for what was lost meanwhile | the same, with its frames |
//! | the kernel has what was not sent, and ends that were closed | it is reset from here ("CLOSE-Aborted") |
//! | it is forgotten here, without a word to its peer; epoll sets of the program's watch the kernel's | cannot fail |
//!
//! No segment is answered by a reset in between: each stack that could get it knows the connection, standing still.
//!
//! # Not here
//! A card of the program's own. A connection that is being made, or is over. What waits to be read or accepted goes along (`waiting`).

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use libc::epoll_event;
use posix::{Endpoint, Errno, Host, Open, Portable, Result, TcpSnapshot, Transport};

use crate::answer;
use crate::config;
use crate::kernel_address;
use crate::next;
use crate::numbers::{self, Whose, whose};
use crate::repair;
use crate::ring_hooks;
use crate::shards::{self, Stopped};
use crate::state::{self, Port};
use crate::waiting;

/// A socket that has a number, and all its numbers.
type Socket<'a> = (&'a Arc<Open>, &'a [u32]);

/// Hands the socket of a number over; one that is none of ours is the kernel's already.
///
/// Errors: `NOT_SUPPORTED` where it cannot be, which is said on stderr once; it stays ours then.
pub fn hand_over(number: c_int) -> Result<()> {
    // What is another process's is ours for this.
    let handed = match whose(number) {
        Whose::Socket => hand_over_ours(number),
        Whose::Parent => Err(Errno::NETWORK_DOWN),
        _ => return Ok(()),
    };
    handed.map_err(|error| {
        complain(error);
        Errno::NOT_SUPPORTED
    })
}

fn complain(error: Errno) {
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    if !IS_TOLD.swap(true, Relaxed) {
        let why = match error.number() {
            libc::EPERM => "that needs CAP_NET_ADMIN, and CAP_NET_RAW".to_owned(),
            number => std::io::Error::from_raw_os_error(number).to_string(),
        };
        eprintln!("libsietch: a socket cannot go over to the kernel's stack: {why}.");
    }
}

fn hand_over_ours(number: c_int) -> Result<()> {
    let config = config::get().filter(|config| !config.is_card());
    let config = config.ok_or(Errno::NOT_SUPPORTED)?;
    let refused = |error: std::io::Error| {
        let number = error.raw_os_error();
        number.map_or(Errno::NETWORK_DOWN, Errno::from_number)
    };
    kernel_address::ensure(config).map_err(refused)?;
    let mut stopped = shards::stop();
    let host = stopped.states[0].host().ok_or(Errno::NETWORK_DOWN)?;
    host.look_at_all(state::now());
    // It may have gone before we stopped everybody.
    let open = host.socket(number.cast_unsigned())?;
    let all = host.numbers_of(&open);
    let passed = pass(host, (&open, &all), &config.link)?;
    let said = match &passed {
        Passed::Connection(snapshot) => {
            begin_there(&mut stopped, (&open, number), snapshot)?;
            say_the_rest(&mut stopped, (&open, number), snapshot)
        }
        Passed::Other => Ok(()),
    };
    watch_by_kernel(&mut stopped, (&open, &all));
    finish(&mut stopped, (&open, &all), &passed);
    said
}

/// The kernel's connection goes on. Without memory for that it goes on here, with its frames.
fn begin_there(
    stopped: &mut Stopped,
    (open, number): (&Arc<Open>, c_int),
    snapshot: &TcpSnapshot,
) -> Result<()> {
    let began = repair::go_on(number, snapshot);
    let queue = stopped.states[0].queue();
    if began.is_err()
        && let Some(host) = stopped.states[0].host()
    {
        if let (Ok(Some((local, peer))), Some(queue)) = (host.ends(open), queue) {
            // Without the link there is nothing to go on with.
            host.link().move_flow(local, peer, queue).ok();
        }
        host.reattach(open);
        host.flush();
    }
    began
}

/// Bytes that cannot go over are lost, so the connection is reset from here, and over there.
fn say_the_rest(
    stopped: &mut Stopped,
    (open, number): (&Arc<Open>, c_int),
    snapshot: &TcpSnapshot,
) -> Result<()> {
    let said = repair::catch_up(number, snapshot);
    if said.is_err()
        && let Some(host) = stopped.states[0].host()
    {
        host.reset_moved(open);
        repair::shutdown(number, libc::SHUT_RDWR).ok();
    }
    said
}

/// Makes the kernel's socket what ours is, and gives it the frames.
fn pass(host: &mut Host<Port>, (open, all): Socket<'_>, link: &str) -> Result<Passed> {
    let number = all.first().ok_or(Errno::BAD_NUMBER)?.cast_signed();
    for (level, name, value) in host.portable_options(open) {
        // One that the kernel does not take is one that it cannot miss.
        repair::set(number, level, name, &value).ok();
    }
    let portable = host.portable(open)?;
    let passed = make(number, &portable, link).and_then(|()| lead(host, open, &portable));
    if passed.is_ok() {
        waiting::pass(host, (open, number), &portable);
    }
    match (passed, portable) {
        (Ok(()), Portable::Connected(snapshot)) => Ok(Passed::Connection(snapshot)),
        (Err(error), Portable::Connected(_)) => {
            host.reattach(open);
            Err(error)
        }
        (passed, _) => passed.map(|()| Passed::Other),
    }
}

/// What the kernel has now.
enum Passed {
    /// It stands still until it [goes on](repair::go_on).
    Connection(Box<TcpSnapshot>),
    Other,
}

fn make(number: c_int, portable: &Portable, link: &str) -> Result<()> {
    match portable {
        Portable::Unnamed => Ok(()),
        Portable::Named(local) => name(number, *local, link),
        Portable::Listening(local, backlog) => {
            name(number, *local, link)?;
            let backlog = c_int::try_from(*backlog).unwrap_or(c_int::MAX);
            // SAFETY: no memory is passed.
            match unsafe { next::listen.get()(number, backlog) } {
                0 => Ok(()),
                _ => Err(Errno::from_number(answer::errno())),
            }
        }
        Portable::Connected(snapshot) => repair::restore(number, snapshot),
        Portable::Datagrams(local, remote) => {
            repair::bind(number, *local)?;
            repair::connect(number, *remote)
        }
    }
}

/// One that was bound to no address was reached by the link's only, and so it is from now on.
fn name(number: c_int, local: Endpoint, link: &str) -> Result<()> {
    if local.addr.to_canonical().is_unspecified() {
        let (level, name) = (libc::SOL_SOCKET, libc::SO_BINDTODEVICE);
        repair::set(number, level, name, link.as_bytes())?;
    }
    repair::bind(number, local)
}

/// Gives the kernel's stack the frames; what came until then is dropped, for ours stands still.
fn lead(host: &mut Host<Port>, open: &Open, portable: &Portable) -> Result<()> {
    let led = match portable {
        Portable::Unnamed => Ok(()),
        Portable::Connected(_) => match host.ends(open)? {
            Some((local, peer)) => host.link().move_flow_to_stack(local, peer),
            None => Ok(()),
        },
        Portable::Named(local) | Portable::Listening(local, _) | Portable::Datagrams(local, _) => {
            let is_heard =
                open.transport() == Transport::Udp || matches!(portable, Portable::Listening(..));
            match is_heard {
                true => host.link().move_port(open.transport(), local.port, true),
                false => Ok(()),
            }
        }
    };
    led.map_err(|_| Errno::NO_BUFFERS)?;
    host.look_at_all(state::now());
    Ok(())
}

/// The kernel's sets watch the kernel's socket, as the program's have watched ours.
fn watch_by_kernel(stopped: &mut Stopped, (open, all): Socket<'_>) {
    let hosts = stopped.states.iter_mut().filter_map(|state| state.host());
    let sets = hosts.flat_map(|host| host.numbered_sets());
    for (set, its) in sets {
        let Some(set_number) = its.first() else {
            continue;
        };
        for (number, watch) in set.watches(open) {
            // The one by which it was added may be closed since.
            let known = all.contains(&number).then_some(number);
            let Some(number) = known.or(all.first().copied()) else {
                continue;
            };
            let mut event = epoll_event {
                events: watch.interest.bits() | watch.trigger.bits(),
                u64: watch.data,
            };
            let (set, number) = (set_number.cast_signed(), number.cast_signed());
            let add = libc::EPOLL_CTL_ADD;
            // SAFETY: an event of our own.
            unsafe { next::epoll_ctl.get()(set, add, number, &raw mut event) };
        }
    }
}

/// It is none of ours any more. Who waits for it looks again.
fn finish(stopped: &mut Stopped, (open, all): Socket<'_>, passed: &Passed) {
    if let Some(host) = stopped.states[0].host() {
        match passed {
            Passed::Connection(_) => drop(host.forget_moved(open)),
            Passed::Other => all.iter().for_each(|number| host.close(*number)),
        }
    }
    for number in all {
        numbers::set(number.cast_signed(), Whose::Kernel);
        // Who waits is woken below.
        ring_hooks::note_moved(number.cast_signed());
    }
    stopped
        .states
        .iter_mut()
        .for_each(|state| state.bells.ring());
}
