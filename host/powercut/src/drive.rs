//! A disk that the file system is mounted from, and that remembers what was asked of it.

use std::sync::{Arc, Mutex, MutexGuard};

use ext4::{Device, DeviceError, Durability};

use crate::cuts::Event;
use crate::medium::{Medium, sectors};

/// A disk; clones are the same one.
#[derive(Clone)]
pub struct Drive(Arc<Mutex<State>>);

struct State {
    medium: Medium,
    history: Vec<Event>,
}

impl Drive {
    /// With this on it.
    pub fn new(medium: Medium) -> Self {
        Self(Arc::new(Mutex::new(State {
            medium,
            history: Vec::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no thread panics with it")
    }

    /// What it would read.
    pub fn medium(&self) -> Medium {
        self.state().medium.clone()
    }

    /// How many writes and flushes it had.
    pub fn events(&self) -> usize {
        self.state().history.len()
    }

    /// Its writes and flushes so far, which it forgets.
    pub fn take_history(&self) -> Vec<Event> {
        std::mem::take(&mut self.state().history)
    }
}

impl Device for Drive {
    fn bytes(&self) -> u64 {
        self.state().medium.bytes()
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.state().medium.read(offset, into);
        Ok(())
    }

    fn write(
        &mut self,
        offset: u64,
        from: &[u8],
        durability: Durability,
    ) -> Result<(), DeviceError> {
        let mut state = self.state();
        let pieces: Vec<_> = sectors(offset / 512, from).collect();
        for (sector, bytes) in &pieces {
            state.medium.put(*sector, bytes.clone());
        }
        let is_forced = durability == Durability::Forced;
        state.history.push(Event::Write { pieces, is_forced });
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.state().history.push(Event::Flush);
        Ok(())
    }
}
