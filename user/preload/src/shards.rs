//! Hosts for threads: a program whose threads wait for connections of their own has a stack and a queue for each.
//!
//! # Problem
//! Threads that share a stack wait for each other at its lock, and each frame wakes all that wait for any.
//!
//! # Idea
//! A thread that waits for an epoll set has a *home*, one of the program's hosts, and so has the set. When the first
//! connection is added to a set it is found out whose it is: the thread that waits there, or else the one that adds it.
//! From then on each connection that is added to the set is shifted to the set's home (`posix`, `shifting`), with its
//! frames (`docs/rings.md`, "Several queues"), so its thread needs the lock and the queue of nobody else.
//!
//! A connection that no set has goes to the home of the thread that has waited for it a second time, by a call that receives, by
//! poll or by select.
//!
//! - The first host is that of the *acceptor*, the thread that first waits for listeners, and of all sockets that are not so:
//!   listeners, datagrams, connections of a single request. Programs of one thread have it alone.
//! - As many further hosts are opened as there are CPUs and threads want one. More threads share these; so they do when
//!   the link has no queue left, or no memory, and on a card, which has one queue.
//! - Before a fork sockets come back to the first host, because a child may have them of it, and before the library is exchanged
//!   all comes back and the further hosts end.
//!
//! Lock order: this module's, then the states'.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use posix::{Host, Open, Result, WatchSet};

use crate::config;
use crate::numbers::{self, Whose};
use crate::patience::Polling;
use crate::state::{self, Held, PLACES, Port, State, current_thread, lock_at};

/// Threads that are remembered; further ones get a home for each set.
const THREADS_MAX: usize = 64;

/// Who has which home.
struct Homes {
    threads: Vec<(usize, u8)>,
    /// Further hosts that are open, and how many there may be; that is found out first.
    opened: u8,
    most: Option<u8>,
    /// Whose turn it is to be shared.
    shared: u8,
    /// Nothing is shifted: the library is about to be exchanged.
    is_pinned: bool,
}

static HOMES: Mutex<Homes> = Mutex::new(Homes::new());
/// The thread whose home is the first host.
static ACCEPTOR: AtomicUsize = AtomicUsize::new(0);

fn lock() -> MutexGuard<'static, Homes> {
    HOMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calling thread accepts connections.
#[inline]
pub fn note_acceptor() {
    if ACCEPTOR.load(Relaxed) == 0 {
        ACCEPTOR.store(current_thread(), Relaxed);
    }
}

/// The calling thread is about to wait for a set.
#[inline]
pub fn note_waiting(set: &WatchSet) {
    if !set.has_connections() {
        set.note_waiter(current_thread());
        if set.places() & 1 != 0 {
            note_acceptor();
        }
    }
}

/// A socket is about to be added to a set: if it is a connection, it goes to the set's home, which is found out now if it was
/// not.
pub fn settle(set: c_int, members: &Arc<WatchSet>, number: c_int) {
    if members.has_connections() && numbers::place(set) == numbers::place(number) {
        return;
    }
    if !is_connection(number).unwrap_or(false) {
        return;
    }
    let mut homes = lock();
    if homes.is_pinned {
        return;
    }
    if members.note_connection() {
        homes.settle_set(members);
    }
    let (from, home) = (numbers::place(number), numbers::place(set));
    if from != home {
        // Where it cannot go it is served from where it is.
        shift(number, from, home).ok();
    }
}

/// Whether a connection is to go to the home of the calling thread, which has waited for it by a call of its own: if a call
/// has waited for it before. One with a single request stays, for going costs more than that. So does one while bytes of it are under
/// way, which would count as lost: with its next request its peer acknowledges the answer to the last.
pub fn wants_home(host: &mut Host<Port>, open: &Open) -> bool {
    let is_elsewhere = open.place() != 0 || ACCEPTOR.load(Relaxed) == current_thread();
    !is_elsewhere && host.is_connection(open) && host.unsent(open) == Ok(0) && open.waits_again()
}

/// It goes there, if it can.
pub fn settle_alone(number: c_int) {
    let mut homes = lock();
    if homes.is_pinned || homes.most == Some(0) || numbers::place(number) != 0 {
        return;
    }
    let home = homes.home_of(current_thread());
    if home != 0 {
        // Where it cannot go it is served from where it is.
        shift(number, 0, home).ok();
    }
}

/// A set has lost a member: which hosts still have some.
pub fn find_places(members: &WatchSet) {
    let _homes = lock();
    members.find_places();
}

fn is_connection(number: c_int) -> Result<bool> {
    let mut held = Held::of(number)?;
    let open = held.host().socket(number.cast_unsigned())?;
    Ok(held.host().is_connection(&open))
}

/// Locks two places in their order; the first of the two comes first.
fn both(one: u8, other: u8) -> Result<(Held, Held)> {
    match one < other {
        true => {
            let one = Held::at(one)?;
            Ok((one, Held::at(other)?))
        }
        false => {
            let other = Held::at(other)?;
            Ok((Held::at(one)?, other))
        }
    }
}

/// Shifts a connection that one number has and nobody else.
fn shift(number: c_int, from: u8, home: u8) -> Result<()> {
    let (mut source, mut target) = both(from, home)?;
    let open = source.host().socket(number.cast_unsigned())?;
    let host = source.host();
    match host.is_single(&open) && host.is_connection(&open) {
        true => shift_between(&mut source, &mut target, (&open, &[number.cast_unsigned()])),
        false => Ok(()),
    }
}

/// Shifts a socket with all its numbers. Its frames come to the target first, and wait there, for it is locked.
fn shift_between(
    source: &mut Held,
    target: &mut Held,
    (open, numbers): (&Arc<Open>, &[u32]),
) -> Result<()> {
    let ends = match source.host().is_connection(open) {
        true => source.host().ends(open)?,
        false => None,
    };
    let (Some(here), Some(there)) = (source.queue(), target.queue()) else {
        return Ok(());
    };
    if let Some((local, peer)) = ends {
        let moved = source.host().link().move_flow(local, peer, there);
        moved.map_err(|_| posix::Errno::NO_BUFFERS)?;
        source.host().look_at_all(state::now());
    }
    let shifted = source
        .host()
        .shift((open, numbers), target.host(), state::now());
    match shifted {
        Ok(()) => {
            for number in numbers {
                numbers::set_at(number.cast_signed(), Whose::Socket, target.place());
            }
        }
        Err(_) => {
            if let Some((local, peer)) = ends {
                // It was there before, so it has a place in the link's table.
                source.host().link().move_flow(local, peer, here).ok();
            }
        }
    }
    target.host().flush();
    shifted
}

impl Homes {
    const fn new() -> Self {
        Self {
            threads: Vec::new(),
            opened: 0,
            most: None,
            shared: 0,
            is_pinned: false,
        }
    }

    /// Finds a set's home, and takes it there.
    fn settle_set(&mut self, members: &Arc<WatchSet>) {
        let waiter = match members.waiter() {
            0 => current_thread(),
            waiter => waiter,
        };
        let home = self.home_of(waiter);
        if home != 0
            && let Ok((mut first, mut other)) = both(0, home)
            && let Ok(numbers) = first.host().shift_set(members, other.host())
        {
            for number in numbers {
                numbers::set_at(number.cast_signed(), Whose::Set, home);
            }
        }
    }

    fn home_of(&mut self, thread: usize) -> u8 {
        if ACCEPTOR.load(Relaxed) == 0 {
            ACCEPTOR.store(thread, Relaxed);
        }
        if ACCEPTOR.load(Relaxed) == thread {
            return 0;
        }
        if let Some((_, home)) = self.threads.iter().find(|known| known.0 == thread) {
            return *home;
        }
        let home = self.next_home();
        if self.threads.len() < THREADS_MAX {
            self.threads.push((thread, home));
        }
        home
    }

    /// A host that nobody has, or else one that others have too.
    fn next_home(&mut self) -> u8 {
        let most = *self.most.get_or_insert_with(useful_places);
        if self.opened < most {
            match open(self.opened + 1) {
                Ok(()) => {
                    self.opened += 1;
                    return self.opened;
                }
                Err(error) => {
                    self.most = Some(self.opened);
                    say(&error, self.opened);
                }
            }
        }
        match self.opened {
            0 => 0,
            opened => {
                self.shared = self.shared % opened + 1;
                self.shared
            }
        }
    }
}

/// How many threads can run at once, if the link has more than one queue.
fn useful_places() -> u8 {
    let has_queues = config::get().is_some_and(|config| !config.is_card());
    let cpus = thread::available_parallelism().map_or(1, |cpus| cpus.get());
    match has_queues {
        true => cpus.min(PLACES - 1) as u8,
        false => 0,
    }
}

fn open(place: u8) -> std::io::Result<()> {
    let config = config::get().ok_or(std::io::ErrorKind::NotFound)?;
    lock_at(place).open_further(place, &config::further(config))
}

fn say(error: &std::io::Error, opened: u8) {
    let link = config::get().map_or("", |config| &config.link);
    let queues = 1 + opened;
    eprintln!("libsietch: {link}: {error}; the program's threads share {queues} of its queues.");
}

/// All of the library stands still.
pub struct Stopped {
    homes: MutexGuard<'static, Homes>,
    /// By their places.
    pub states: Vec<MutexGuard<'static, State>>,
}

/// Brings sockets back to the first host, and stops everybody, for a fork.
pub fn stop() -> Stopped {
    let homes = lock();
    if homes.opened != 0 {
        // What cannot come the child cannot have.
        bring_sockets().ok();
    }
    let places = 0..PLACES as u8;
    Stopped {
        homes,
        states: places.map(lock_at).collect(),
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.states.iter_mut().for_each(|state| state.tell_news());
    }
}

impl Stopped {
    /// In a child: further hosts are the parent's, and its threads too.
    pub fn forget_further(&mut self) {
        for state in self.states.iter_mut().skip(1) {
            state.forget_further();
        }
        *self.homes = Homes::new();
        ACCEPTOR.store(0, Relaxed);
    }
}

/// Brings all sockets to the first host. Sets of any host watch them there.
fn bring_sockets() -> Result<()> {
    let mut outcome = Ok(());
    for place in state::further() {
        let Ok((mut first, mut other)) = both(0, place) else {
            continue;
        };
        for set in other.host().sets() {
            set.note_place(0);
        }
        for set in first.host().sets() {
            set.note_place(0);
        }
        for (open, numbers) in other.host().numbered() {
            let brought = shift_between(&mut other, &mut first, (&open, &numbers));
            outcome = outcome.and(brought);
        }
    }
    outcome
}

/// Brings everything to the first host, and ends the further ones; nothing is shifted before [`part`].
///
/// Errors: why not, as a sentence. What came back is there, and the rest where it was.
pub fn join(
    bring_home: impl FnOnce(&mut [MutexGuard<'static, State>]) -> std::result::Result<(), String>,
) -> std::result::Result<(), String> {
    let mut homes = lock();
    homes.is_pinned = true;
    if homes.opened == 0 {
        return Ok(());
    }
    let unable = |_| "the connections of its threads cannot be brought together".to_string();
    bring_sockets().map_err(unable)?;
    bring_sets().map_err(unable)?;
    let mut states: Vec<_> = (0..PLACES as u8).map(lock_at).collect();
    bring_home(&mut states)?;
    Polling::begin_epoch();
    let (first, further) = states.split_at_mut(1);
    for state in further {
        if let (Some(host), Some(to)) = (state.host(), first[0].host()) {
            host.look_at_all(state::now());
            host.shift_orphans(to, state::now()).map_err(unable)?;
        }
        state.close_further();
    }
    for set in first[0].host().into_iter().flat_map(|host| host.sets()) {
        set.find_places();
    }
    *homes = Homes {
        is_pinned: true,
        ..Homes::new()
    };
    Ok(())
}

/// Connections may be shifted again.
pub fn part() {
    lock().is_pinned = false;
}

fn bring_sets() -> Result<()> {
    for place in state::further() {
        let Ok((mut first, mut other)) = both(0, place) else {
            continue;
        };
        for set in other.host().sets() {
            for number in other.host().shift_set(&set, first.host())? {
                numbers::set(number.cast_signed(), Whose::Set);
            }
        }
    }
    Ok(())
}
