//! Sets of semaphores (semget(2), semop(2)).
//!
//! Whoever cannot do its operations waits at the set, and tries again whenever something has
//! changed. What a process' end shall take back lies with the set; a list says in
//! which sets a process has such.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use base::Instant;
use mach::sync::Spin;
use sync::{Error, Restart, Result, Wait, WaitQueue};
use sysv::{Blocked, GetRequest, Operation, Registry, SemaphoreSet, Undo, VALUE_MAX};
use task::{Pid, current};

use super::{
    Common, Look, Settings, as_caller, check_mode, check_owner, look_at, now_seconds, refused,
};

/// Sets at most, semaphores of a set, semaphores of all (SEMMNI, SEMMSL, SEMMNS).
pub const SETS_MAX: usize = 32_000;
/// Semaphores of a set at most.
pub const SET_LENGTH_MAX: usize = 32_000;
/// Semaphores of all sets at most.
pub const SEMAPHORES_MAX: usize = 1_024_000_000;
/// Operations of one call at most (SEMOPM).
pub const OPERATIONS_MAX: usize = 500;

struct State {
    semaphores: SemaphoreSet,
    undos: BTreeMap<Pid, Undo>,
    operated: i64,
    changed: i64,
    is_removed: bool,
}

struct Set {
    state: Spin<State>,
    waiters: WaitQueue,
}

/// System V's numbers are the machine's: who knows one has the set.
static SETS: Spin<Registry<Arc<Set>>> = Spin::new(Registry::new(SETS_MAX));
/// Parts of the table of those who take something back: each process that ends looks into one.
const PARTS: usize = 16;

/// By process, the numbers of sets.
type Undoers = BTreeMap<Pid, Vec<u32>>;

/// In which sets processes have something to take back. Sets outlive processes, so neither owns the
/// other's list.
static UNDOERS: [Spin<Undoers>; PARTS] = [const { Spin::new(BTreeMap::new()) }; PARTS];

/// The part for a process.
fn undoers(process: Pid) -> &'static Spin<Undoers> {
    // tidy: the remainder is less than the divisor.
    &UNDOERS[process as usize % PARTS]
}

/// What tools see of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// What all kinds have.
    pub common: Common,
    /// How many semaphores it has.
    pub length: usize,
    /// When operations were done last, in seconds since 1970, or 0.
    pub operated: i64,
    /// When it was made or changed.
    pub changed: i64,
}

/// What is asked of one semaphore.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Question {
    /// Its value.
    Value,
    /// Who changed it last.
    Changer,
    /// How many wait for it to grow.
    Growing,
    /// How many wait for it to become 0.
    Zero,
}

/// The set of that key, or a new one of `length` semaphores.
pub fn get(request: GetRequest, length: usize) -> Result<u32> {
    let mut sets = SETS.lock();
    if let Some(number) = as_caller(|caller| sets.find(request, caller)).map_err(refused)? {
        let existing = sets.get(number).map_err(refused)?.object.clone();
        drop(sets);
        let fits = length <= existing.state.lock().semaphores.len();
        return fits.then_some(number).ok_or(Error::Invalid);
    }
    if length == 0 || length > SET_LENGTH_MAX {
        return Err(Error::Invalid);
    }
    let state = State {
        semaphores: SemaphoreSet::new(length).ok_or(Error::OutOfMemory)?,
        undos: BTreeMap::new(),
        operated: 0,
        changed: now_seconds(),
        is_removed: false,
    };
    let set = Arc::new(Set {
        state: Spin::new(state),
        waiters: WaitQueue::new(),
    });
    as_caller(|caller| sets.insert(request, caller, set)).map_err(refused)
}

/// The set, if the caller may do with it what `wanted` says (4 read, 2 change).
fn find(number: u32, wanted: u16) -> Result<Arc<Set>> {
    let sets = SETS.lock();
    let entry = sets.get(number).map_err(refused)?;
    check_mode(entry, wanted)?;
    Ok(entry.object.clone())
}

/// A place in a set where somebody waits: of which semaphore, and whether for 0.
type Place = (u16, bool);

/// Does all operations, as soon as that is possible, until `deadline`.
pub fn operate(number: u32, operations: &[Operation], deadline: Instant) -> Result<()> {
    let changes = operations.iter().any(|operation| operation.change != 0);
    let set = find(number, if changes { 2 } else { 4 })?;
    let process = current().process.id();
    if operations.iter().any(|operation| operation.undo) {
        note_undoer(process, number)?;
    }
    let mut place = None;
    let how = Wait::INTERRUPTIBLE
        .until(deadline)
        .expire_as(Error::WouldBlock)
        .restart(Restart::IfNoHandler);
    let attempt = || set.attempt(operations, process, &mut place);
    let outcome = set.waiters.wait(how, attempt);
    set.state.lock().move_waiter(&mut place, None);
    match outcome {
        Err(error) => Err(error),
        Ok(done) => {
            if changes && done.is_ok() {
                set.waiters.wake_all();
            }
            done
        }
    }
}

impl Set {
    /// Tries once; `None` to wait.
    fn attempt(
        &self,
        operations: &[Operation],
        process: Pid,
        place: &mut Option<Place>,
    ) -> Option<Result<()>> {
        let mut state = self.state.lock();
        if state.is_removed {
            return Some(Err(Error::Removed));
        }
        let mut undo = state.undos.remove(&process).unwrap_or_default();
        let done = state.semaphores.operate(operations, &mut undo, process);
        if !undo.is_empty() {
            state.undos.insert(process, undo);
        }
        match done {
            Ok(()) => {
                state.operated = now_seconds();
                Some(Ok(()))
            }
            Err(Blocked::Wait { position, for_zero }) => {
                let index = operations.get(position).map_or(0, |it| it.index);
                state.move_waiter(place, Some((index, for_zero)));
                None
            }
            Err(Blocked::WouldBlock) => Some(Err(Error::WouldBlock)),
            Err(Blocked::NoSuchSemaphore) => Some(Err(Error::FileTooLarge)),
            Err(Blocked::Range) => Some(Err(Error::OutOfRange)),
        }
    }

    fn change<R>(&self, change: impl FnOnce(&mut State) -> Result<R>) -> Result<R> {
        let mut state = self.state.lock();
        if state.is_removed {
            return Err(Error::Removed);
        }
        let changed = change(&mut state)?;
        state.changed = now_seconds();
        drop(state);
        self.waiters.wake_all();
        Ok(changed)
    }
}

impl State {
    fn move_waiter(&mut self, from: &mut Option<Place>, to: Option<Place>) {
        if let Some((index, for_zero)) = core::mem::replace(from, to) {
            self.semaphores.count_waiter(index, for_zero, false);
        }
        if let Some((index, for_zero)) = to {
            self.semaphores.count_waiter(index, for_zero, true);
        }
    }
}

fn note_undoer(process: Pid, number: u32) -> Result<()> {
    let mut undoers = undoers(process).lock();
    let numbers = undoers.entry(process).or_default();
    if !numbers.contains(&number) {
        numbers.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
        numbers.push(number);
    }
    Ok(())
}

/// The process has ended: what it did with `undo` is taken back.
pub fn end_process(process: Pid) {
    let numbers = undoers(process).lock().remove(&process);
    for number in numbers.unwrap_or_default() {
        let set = SETS.lock().get(number).map(|entry| entry.object.clone());
        let Ok(set) = set else { continue };
        let undone = {
            let mut state = set.state.lock();
            let undo = state.undos.remove(&process);
            if let Some(undo) = &undo {
                state.semaphores.take_back(undo, process);
                state.operated = now_seconds();
            }
            undo.is_some()
        };
        if undone {
            set.waiters.wake_all();
        }
    }
}

/// Answers a question about one semaphore.
pub fn ask(number: u32, index: usize, question: Question) -> Result<u32> {
    let set = find(number, 4)?;
    let state = set.state.lock();
    let answer = match question {
        Question::Value => state.semaphores.value(index).map(u32::from),
        Question::Changer => state.semaphores.changer(index),
        Question::Growing => state.semaphores.waiters(index, false),
        Question::Zero => state.semaphores.waiters(index, true),
    };
    answer.ok_or(Error::Invalid)
}

/// The values of all semaphores.
pub fn values(number: u32) -> Result<Vec<u16>> {
    let set = find(number, 4)?;
    let length = set.state.lock().semaphores.len();
    let mut values = Vec::new();
    values
        .try_reserve_exact(length)
        .map_err(|_| Error::OutOfMemory)?;
    let state = set.state.lock();
    values.extend((0..length).filter_map(|index| state.semaphores.value(index)));
    Ok(values)
}

/// How many semaphores the set has, for somebody who wants to set them all.
pub fn length(number: u32) -> Result<usize> {
    Ok(find(number, 2)?.state.lock().semaphores.len())
}

/// Sets the values of semaphores from `first` on. Nobody takes anything back there.
pub fn set_values(number: u32, first: usize, values: &[u16]) -> Result<()> {
    let set = find(number, 2)?;
    let process = current().process.id();
    set.change(|state| {
        if first + values.len() > state.semaphores.len() {
            return Err(Error::Invalid);
        }
        if values.iter().any(|value| *value > VALUE_MAX) {
            return Err(Error::OutOfRange);
        }
        for (index, value) in (first..).zip(values) {
            state.semaphores.set(index, *value, process);
            for undo in state.undos.values_mut() {
                undo.forget(index as u16);
            }
        }
        Ok(())
    })
}

/// What is known of a set.
pub fn look(look: Look) -> Result<Facts> {
    let (common, set) = {
        let sets = SETS.lock();
        let (number, entry) = look_at(&sets, look)?;
        (super::common(number, entry), entry.object.clone())
    };
    let state = set.state.lock();
    Ok(Facts {
        common,
        length: state.semaphores.len(),
        operated: state.operated,
        changed: state.changed,
    })
}

/// Changes owner and permissions.
pub fn set(number: u32, settings: Settings) -> Result<()> {
    let set = {
        let mut sets = SETS.lock();
        super::set(&mut sets, number, settings)?;
        sets.get(number).map_err(refused)?.object.clone()
    };
    set.change(|_| Ok(()))
}

/// Removes a set: those who wait there are told.
pub fn remove(number: u32) -> Result<()> {
    let set = {
        let mut sets = SETS.lock();
        check_owner(&sets, number)?;
        sets.remove(number).map_err(refused)?.object
    };
    set.state.lock().is_removed = true;
    set.waiters.wake_all();
    Ok(())
}

/// Sets, the highest place, and semaphores of all sets.
pub fn totals() -> (usize, usize, usize) {
    let sets = SETS.lock();
    let lengths = sets
        .iter()
        .map(|(_, entry)| entry.object.state.lock().semaphores.len());
    (sets.len(), sets.highest(), lengths.sum())
}
