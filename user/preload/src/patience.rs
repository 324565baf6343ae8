//! Waiting for frames, for the program's files and for other threads.

use std::ffi::c_int;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::Instant;
use libc::{pollfd, sigset_t, timespec};
use posix::{Errno, Result};

use crate::answer;
use crate::ears::{Ear, Known};
use crate::numbers::{self, Whose};
use crate::state::{self, Held};

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A bell is of nobody, or of a thread that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hangs {
    Unused,
    Silent,
    Rung,
}

/// Threads that wait for the queue's frames. While there are any, its socket stays open in the kernel, whoever
/// closes it.
static POLLING: AtomicUsize = AtomicUsize::new(0);
/// How often further hosts have ended, each time with all hosts locked.
static EPOCH: AtomicUsize = AtomicUsize::new(0);

/// One of them.
pub struct Polling(());

impl Polling {
    /// It is about to; `_held` makes sure that nobody is closing the queue.
    pub fn begin(_held: &Held) -> Self {
        POLLING.fetch_add(1, Ordering::AcqRel);
        Self(())
    }

    /// Changes when further hosts end.
    pub fn epoch() -> usize {
        EPOCH.load(Ordering::Acquire)
    }

    /// They do now.
    pub fn begin_epoch() {
        EPOCH.fetch_add(1, Ordering::AcqRel);
    }

    /// How many there are.
    pub fn count() -> usize {
        POLLING.load(Ordering::Acquire)
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        POLLING.fetch_sub(1, Ordering::AcqRel);
    }
}

/// An eventfd.
struct Bell {
    number: c_int,
    hangs: Hangs,
    /// By which who has it waits for a card.
    ear: Option<Arc<Ear>>,
}

/// So many bells are kept apart by what they are waited with.
const KEPT_APART: usize = 16;

/// The bells of threads that wait.
pub struct Bells(Vec<Bell>);

impl Bells {
    /// None.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// One for a thread that is about to wait, for a file beside it.
    ///
    /// Errors: `TOO_MANY` without a descriptor for it.
    fn take(&mut self, known: Option<&Known>) -> Result<(usize, c_int)> {
        let index = match self.unused(known) {
            Some(index) => index,
            None => {
                self.0.push(Bell {
                    number: make_bell()?,
                    hangs: Hangs::Unused,
                    ear: None,
                });
                self.0.len() - 1
            }
        };
        self.0[index].hangs = Hangs::Silent;
        Ok((index, self.0[index].number))
    }

    /// One whose ear fits, if there is any.
    fn unused(&self, known: Option<&Known>) -> Option<usize> {
        let find = |fits: &dyn Fn(&Bell) -> bool| {
            let mut bells = self.0.iter();
            bells.position(|bell| bell.hangs == Hangs::Unused && fits(bell))
        };
        let is_for = |bell: &Bell| bell.ear.as_ref().is_none_or(|ear| ear.is_for(known));
        let are_many = self.0.len() >= KEPT_APART;
        find(&is_for).or_else(|| find(&|_| are_many))
    }

    /// The ear of one that was taken; `None` if there can be none.
    fn ear(
        &mut self,
        index: usize,
        interrupt: BorrowedFd<'_>,
        known: Option<&Known>,
    ) -> Option<Arc<Ear>> {
        let bell = self.0.get_mut(index)?;
        if !bell.ear.as_ref().is_some_and(|ear| ear.is_for(known)) {
            bell.ear = Ear::new(interrupt, bell.number, known).ok().map(Arc::new);
        }
        bell.ear.clone()
    }

    fn give_back(&mut self, index: usize) {
        let Some(bell) = self.0.get_mut(index) else {
            return;
        };
        if bell.hangs == Hangs::Rung {
            let (number, mut count) = (bell.number, 0_u64);
            // SAFETY: **Ours**; eight bytes go to `count`.
            unsafe { libc::syscall(libc::SYS_read, number, &raw mut count, size_of::<u64>()) };
        }
        bell.hangs = Hangs::Unused;
    }

    /// Whether a thread of the program's waits.
    pub fn are_out(&self) -> bool {
        self.0.iter().any(|bell| bell.hangs != Hangs::Unused)
    }

    /// Wakes all who wait.
    pub fn ring(&mut self) {
        let is_silent = |bell: &&mut Bell| bell.hangs == Hangs::Silent;
        for bell in self.0.iter_mut().filter(is_silent) {
            let (number, one) = (bell.number, 1_u64);
            // SAFETY: **Ours**; eight bytes of `one` are read.
            unsafe { libc::syscall(libc::SYS_write, number, &raw const one, size_of::<u64>()) };
            bell.hangs = Hangs::Rung;
        }
    }
}

impl Drop for Bells {
    /// Those of threads that have not come back yet are closed by these.
    fn drop(&mut self) {
        let unused = |bell: &&Bell| bell.hangs == Hangs::Unused;
        for bell in self.0.iter().filter(unused) {
            close_own(bell.number);
        }
    }
}

/// Closes a descriptor of the library's own.
pub fn close_own(number: c_int) {
    // Who gets the number next is not us.
    numbers::set(number, Whose::Kernel);
    // SAFETY: **Ours**, and nobody uses it any more.
    unsafe { libc::syscall(libc::SYS_close, number) };
}

/// A bell that nobody has.
pub fn make_bell() -> Result<c_int> {
    // SAFETY: no memory is passed.
    let bell = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if bell < 0 {
        return Err(Errno::TOO_MANY);
    }
    numbers::set(bell, Whose::Library);
    Ok(bell)
}

/// ppoll(2), past our own function of that name. Returns how many files are ready.
///
/// Errors: `INTERRUPTED`.
pub fn poll_files(
    files: &mut [pollfd],
    most_nanos: Option<u64>,
    mask: *const sigset_t,
) -> Result<usize> {
    let most = most_nanos.map(|nanos| timespec {
        tv_sec: (nanos / NANOS_PER_SEC) as _,
        tv_nsec: (nanos % NANOS_PER_SEC) as _,
    });
    let most = most.as_ref().map_or(ptr::null(), ptr::from_ref);
    const MASK_BYTES: usize = 8;
    // SAFETY: the files are as many as is said; the mask is null or the program's (**Caller**).
    let ready = unsafe {
        libc::syscall(
            libc::SYS_ppoll,
            files.as_mut_ptr(),
            files.len(),
            most,
            mask,
            MASK_BYTES,
        )
    };
    match usize::try_from(ready) {
        Ok(ready) => Ok(ready),
        Err(_) if answer::errno() == libc::EINTR => Err(Errno::INTERRUPTED),
        // A file that cannot be polled, no memory: as if none was ready.
        Err(_) => Ok(0),
    }
}

/// The call by which a thread of the program's waits, when nothing is left to do. It is a function of its own because
/// `bench-echo` counts how often it runs.
#[inline(never)]
fn sleep(
    files: &mut [pollfd],
    most_nanos: Option<u64>,
    mask: *const sigset_t,
    ear: Option<&Ear>,
) -> Result<usize> {
    match ear {
        Some(ear) => ear.wait(files, most_nanos, mask),
        None => poll_files(files, most_nanos, mask),
    }
}

/// What one waits for at a host: its frames, and a bell.
struct Watched {
    place: u8,
    /// The bell's place among the host's bells.
    index: usize,
    bell: c_int,
    descriptor: c_int,
    /// By which its interrupt is waited for, if it has one and the files allow it.
    ear: Option<Arc<Ear>>,
    /// When something is due there, or frames are there already.
    wake: Option<Instant>,
}

/// What else somebody waits for.
#[derive(Clone, Copy)]
enum Beside<'k> {
    /// Nothing, or a file that is always the same.
    Known(Option<&'k Known>),
    /// Any files.
    Files,
}

impl<'k> Beside<'k> {
    fn of(files: &[pollfd], known: Option<&'k Known>) -> Self {
        match known.is_some() || files.iter().all(|file| file.fd < 0) {
            true => Self::Known(known),
            false => Self::Files,
        }
    }
}

impl Watched {
    /// A wait that is over at once arms nothing.
    ///
    /// Errors: `TOO_MANY`.
    fn begin(held: &mut Held, until: Option<Instant>, beside: Beside<'_>) -> Result<Self> {
        let (now, place) = (held.now(), held.place());
        let is_over = until.is_some_and(|until| until <= now);
        let (host, bells) = held.parts();
        let known = match beside {
            Beside::Known(known) => known,
            Beside::Files => None,
        };
        let (index, bell) = bells.take(known)?;
        let ear = match (beside, host.link().interrupt()) {
            (Beside::Known(known), Some(interrupt)) => bells.ear(index, interrupt, known),
            _ => None,
        };
        // Who waits for several files by poll(2), or at several hosts, lets go what lies there anyway when it looks.
        let may_gather = !is_over && matches!(beside, Beside::Known(Some(_)));
        let is_over = host.flush_or_gather(may_gather) || is_over;
        let due = host.wait_deadline(now);
        if ear.is_none() && !is_over {
            host.link().forget();
        }
        let wake = match is_over || host.arm() {
            true => Some(now),
            false => due,
        };
        Ok(Self {
            place,
            index,
            bell,
            descriptor: state::descriptor(host),
            ear,
            wake,
        })
    }

    fn files(&self) -> [pollfd; 2] {
        [readable(self.descriptor), readable(self.bell)]
    }

    /// The host, which may be there no longer, is told what came of it.
    fn end(&self, files: &[pollfd]) -> Result<Held> {
        let mut held = Held::at(self.place).inspect_err(|_| close_own(self.bell))?;
        let (host, bells) = held.parts();
        bells.give_back(self.index);
        let is_gone = |file: &pollfd| file.revents & (libc::POLLERR | libc::POLLHUP) != 0;
        if files.first().is_some_and(is_gone) {
            host.lose_link();
        }
        Ok(held)
    }
}

/// Waits until frames come, one of `files` is ready, somebody rings, something is due, or `until`. The answers of
/// `files` are in them.
///
/// Errors: `INTERRUPTED`, `TOO_MANY`, `MOVED`.
#[inline]
pub fn wait(
    held: Held,
    files: &mut [pollfd],
    until: Option<Instant>,
    mask: *const sigset_t,
) -> Result<Option<Held>> {
    wait_at(held, 0, |_| false, (files, None), until, mask)
}

/// The same for frames and bells of more hosts, with a bit for each in `others`. While they are made ready something may
/// have happened that `is_over` sees, which is asked with each of them locked. What comes back is locked again, if it is still
/// there. A single file may be one that is always the same.
///
/// Errors: those of [`wait`].
pub fn wait_at(
    mut held: Held,
    others: u16,
    mut is_over: impl FnMut(&mut Held) -> bool,
    (files, known): (&mut [pollfd], Option<&Known>),
    until: Option<Instant>,
    mask: *const sigset_t,
) -> Result<Option<Held>> {
    let (now, place, epoch) = (held.now(), held.place(), Polling::epoch());
    let mut around = Vec::new();
    let mut wake = until;
    if others != 0 {
        drop(held);
        let due = watch_others(others, &mut around, &mut is_over);
        wake = wake.into_iter().chain(due).min();
        held = match Held::at(place) {
            Ok(held) => held,
            Err(error) => return give_back(&around, error),
        };
        if is_over(&mut held) {
            wake = Some(now);
        }
        if Polling::epoch() != epoch {
            drop(held);
            return give_back(&around, Errno::NETWORK_DOWN);
        }
    }
    let own = match Watched::begin(&mut held, until, Beside::of(files, known)) {
        Ok(own) => own,
        Err(error) => {
            drop(held);
            return give_back(&around, error);
        }
    };
    wake = wake.into_iter().chain(own.wake).min();
    let polling = Polling::begin(&held);
    drop(held);
    let most = wake.map(|wake| wake.since(now).as_nanos());
    let mut all = Vec::with_capacity(2 + files.len());
    all.extend_from_slice(&own.files());
    all.extend_from_slice(files);
    all.extend(around.iter().flat_map(Watched::files));
    // Frames may be there already: then the kernel is entered for a file of the program's alone, if it has not been for long or
    // the program does not ask again.
    let is_last = until.is_some_and(|until| until <= now);
    let is_urgent = is_last || known.is_none_or(|known| known.is_urgent);
    let has_files = is_urgent && files.iter().any(|file| file.fd >= 0);
    let is_asked = most != Some(0) || has_files || !mask.is_null();
    let outcome = match is_asked {
        true => ask(&mut all, most, mask, own.ear.as_deref()),
        false => Ok(0),
    };
    if let Some(known) = known {
        known.was_asked.set(is_asked);
    }
    drop(polling);
    let end = 2 + files.len();
    for (other, answers) in around.iter().zip(all[end..].chunks(2)) {
        other.end(answers).ok();
    }
    let held = match own.end(&all[..2]) {
        Err(Errno::NETWORK_DOWN) if place != 0 => None,
        held => Some(held?),
    };
    files.copy_from_slice(&all[2..end]);
    outcome.map(|_| held)
}

/// Others are made ready; when one wants to be looked at.
#[cold]
fn watch_others(
    others: u16,
    around: &mut Vec<Watched>,
    is_over: &mut impl FnMut(&mut Held) -> bool,
) -> Option<Instant> {
    let held = places(others).filter_map(|place| Held::at(place).ok());
    held.filter_map(|other| watch_other(other, around, is_over))
        .min()
}

/// Enters the kernel for files; only who has nothing left to do sleeps there.
fn ask(
    files: &mut [pollfd],
    most_nanos: Option<u64>,
    mask: *const sigset_t,
    ear: Option<&Ear>,
) -> Result<usize> {
    match most_nanos {
        Some(0) => poll_files(files, most_nanos, mask),
        _ => sleep(files, most_nanos, mask, ear),
    }
}

/// One of several hosts is made ready; when it wants to be looked at.
#[cold]
fn watch_other(
    mut held: Held,
    around: &mut Vec<Watched>,
    is_over: &mut impl FnMut(&mut Held) -> bool,
) -> Option<Instant> {
    let now = held.now();
    let watched = Watched::begin(&mut held, None, Beside::Files);
    let is_over = is_over(&mut held);
    let wake = match &watched {
        _ if is_over => Some(now),
        Ok(watched) => watched.wake,
        // Without a bell we look again soon.
        Err(_) => Some(Instant::from_nanos(now.as_nanos() + SOON_NANOS)),
    };
    // Its bell is given back by who waits, be the wait over or not.
    around.extend(watched.ok());
    wake
}

/// The wait does not begin: `NETWORK_DOWN` if a further host has ended meanwhile, so that its sockets are elsewhere.
#[cold]
fn give_back(around: &[Watched], error: Errno) -> Result<Option<Held>> {
    for other in around {
        other.end(&[]).ok();
    }
    match error {
        Errno::NETWORK_DOWN => Ok(None),
        error => Err(error),
    }
}

/// Who cannot be rung looks again after that time.
const SOON_NANOS: u64 = 10_000_000;

/// The places of a mask.
pub fn places(mask: u16) -> impl Iterator<Item = u8> {
    (0..state::PLACES as u8).filter(move |place| mask & 1 << place != 0)
}

impl Held {
    /// The host that has a number now; the one that came back from a wait, if it is that.
    pub fn or_of(held: Option<Self>, number: c_int) -> Result<Self> {
        match held.filter(|held| held.place() == numbers::place(number)) {
            Some(held) => Ok(held),
            None => Self::of(number),
        }
    }
}

/// Interest in a descriptor that can be read.
pub fn readable(fd: c_int) -> pollfd {
    pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    }
}
