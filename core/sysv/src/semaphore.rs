//! Semaphores: sets of them, operations on several at once, and what an end takes back.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

/// The highest value of a semaphore (SEMVMX).
pub const VALUE_MAX: u16 = 32_767;

/// One operation of semop(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Which semaphore of the set.
    pub index: u16,
    /// What is added; 0 waits for the value 0.
    pub change: i16,
    /// The process' end takes it back (SEM_UNDO).
    pub undo: bool,
    /// Do not wait (IPC_NOWAIT).
    pub no_wait: bool,
}

/// Why operations were not done; nothing has changed then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blocked {
    /// This operation has to wait: the value is not 0 (`for_zero`), or too small.
    Wait {
        /// Which operation.
        position: usize,
        /// Whether it waits for 0.
        for_zero: bool,
    },
    /// This operation would have to wait, and does not want to.
    WouldBlock,
    /// The set has no such semaphore.
    NoSuchSemaphore,
    /// A value, or what is to be taken back, would be out of range.
    Range,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Semaphore {
    value: u16,
    /// The process that changed it last.
    changer: u32,
    /// Who waits for more, and for 0.
    waiters: [u32; 2],
}

/// The semaphores of one set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SemaphoreSet {
    semaphores: Vec<Semaphore>,
}

/// What the end of one process takes back in one set, by semaphore.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Undo(BTreeMap<u16, i16>);

impl SemaphoreSet {
    /// `count` semaphores with the value 0; `None` if there is no memory.
    pub fn new(count: usize) -> Option<Self> {
        let mut semaphores = vec![];
        semaphores.try_reserve_exact(count).ok()?;
        semaphores.resize(count, Semaphore::default());
        Some(Self { semaphores })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.semaphores.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.semaphores.is_empty()
    }

    /// The value of one.
    pub fn value(&self, index: usize) -> Option<u16> {
        Some(self.semaphores.get(index)?.value)
    }

    /// The process that changed it last; 0 if none did.
    pub fn changer(&self, index: usize) -> Option<u32> {
        Some(self.semaphores.get(index)?.changer)
    }

    /// How many wait for it to become 0, or else to grow.
    pub fn waiters(&self, index: usize, for_zero: bool) -> Option<u32> {
        Some(self.semaphores.get(index)?.waiters[usize::from(for_zero)])
    }

    /// One waits more, or fewer.
    pub fn count_waiter(&mut self, index: u16, for_zero: bool, waits: bool) {
        if let Some(semaphore) = self.semaphores.get_mut(usize::from(index)) {
            let count = &mut semaphore.waiters[usize::from(for_zero)];
            *count = if waits {
                *count + 1
            } else {
                count.saturating_sub(1)
            };
        }
    }

    /// Sets a value; false if there is no such semaphore or value.
    pub fn set(&mut self, index: usize, value: u16, changer: u32) -> bool {
        let semaphore = self.semaphores.get_mut(index);
        let Some(semaphore) = semaphore.filter(|_| value <= VALUE_MAX) else {
            return false;
        };
        (semaphore.value, semaphore.changer) = (value, changer);
        true
    }

    /// Does all operations in order, or none. What is to be taken back is added to `undo`.
    pub fn operate(
        &mut self,
        operations: &[Operation],
        undo: &mut Undo,
        process: u32,
    ) -> Result<(), Blocked> {
        for (position, operation) in operations.iter().enumerate() {
            if let Err(blocked) = self.step(position, *operation, undo) {
                for operation in operations[..position].iter().rev() {
                    self.step_back(*operation, undo);
                }
                return Err(blocked);
            }
        }
        for operation in operations {
            if let Some(semaphore) = self.semaphores.get_mut(usize::from(operation.index)) {
                semaphore.changer = process;
            }
        }
        Ok(())
    }

    fn step(
        &mut self,
        position: usize,
        operation: Operation,
        undo: &mut Undo,
    ) -> Result<(), Blocked> {
        let semaphore = self.semaphores.get_mut(usize::from(operation.index));
        let semaphore = semaphore.ok_or(Blocked::NoSuchSemaphore)?;
        let value = i32::from(semaphore.value) + i32::from(operation.change);
        let for_zero = operation.change == 0;
        if (for_zero && value != 0) || value < 0 {
            return Err(match operation.no_wait {
                true => Blocked::WouldBlock,
                false => Blocked::Wait { position, for_zero },
            });
        }
        let value = u16::try_from(value)
            .ok()
            .filter(|&value| value <= VALUE_MAX);
        let value = value.ok_or(Blocked::Range)?;
        if operation.undo {
            undo.add(operation.index, operation.change)?;
        }
        semaphore.value = value;
        Ok(())
    }

    fn step_back(&mut self, done: Operation, undo: &mut Undo) {
        if let Some(semaphore) = self.semaphores.get_mut(usize::from(done.index)) {
            semaphore.value = semaphore.value.wrapping_sub_signed(done.change);
        }
        if done.undo {
            // It was in range before.
            let _ = undo.add(done.index, done.change.wrapping_neg());
        }
    }

    /// The end of a process: takes back what it did, as far as values allow.
    pub fn take_back(&mut self, undo: &Undo, process: u32) {
        for (&index, &adjustment) in &undo.0 {
            if let Some(semaphore) = self.semaphores.get_mut(usize::from(index)) {
                let value = i32::from(semaphore.value) + i32::from(adjustment);
                semaphore.value = value.clamp(0, i32::from(VALUE_MAX)) as u16;
                semaphore.changer = process;
            }
        }
    }
}

impl Undo {
    /// Whether nothing is to be taken back.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Something set the semaphore's value: there is nothing to take back there.
    pub fn forget(&mut self, index: u16) {
        self.0.remove(&index);
    }

    fn add(&mut self, index: u16, change: i16) -> Result<(), Blocked> {
        let before = self.0.get(&index).copied().unwrap_or(0);
        let after = i32::from(before) - i32::from(change);
        let limit = i32::from(VALUE_MAX);
        if !(-limit - 1..=limit).contains(&after) {
            return Err(Blocked::Range);
        }
        match after as i16 {
            0 => self.0.remove(&index),
            after => self.0.insert(index, after),
        };
        Ok(())
    }
}
