//! Which numbers are ours, and what they name.
//!
//! A number of ours is that of a real descriptor, a socket of the kernel's that does nothing, so the kernel gives
//! it to nothing else while we have it.

use std::sync::Arc;

use crate::errno::{Errno, Result};
use crate::open::{Named, Open};
use crate::sets::WatchSet;

/// Numbers from here on are the kernel's alone.
pub const NUMBERS_MAX: usize = 1 << 16;

/// See the module.
#[derive(Default)]
pub struct Table(Vec<Option<Named>>);

impl Table {
    #[inline]
    pub fn get(&self, number: u32) -> Option<&Named> {
        self.0.get(number as usize)?.as_ref()
    }

    /// Errors: `TOO_MANY` for a number that is too large.
    pub fn insert(&mut self, number: u32, named: Named) -> Result<Option<Named>> {
        let index = number as usize;
        if index >= NUMBERS_MAX {
            return Err(Errno::TOO_MANY);
        }
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        Ok(self.0[index].replace(named))
    }

    pub fn remove(&mut self, number: u32) -> Option<Named> {
        self.0.get_mut(number as usize)?.take()
    }

    /// All sockets with their numbers.
    pub fn sockets(&self) -> impl Iterator<Item = (u32, Arc<Open>)> + '_ {
        (0..)
            .zip(&self.0)
            .filter_map(|(number, named)| match named {
                Some(Named::Socket(open)) => Some((number, open.clone())),
                _ => None,
            })
    }

    /// All sets with their numbers.
    pub fn sets(&self) -> impl Iterator<Item = (u32, Arc<WatchSet>)> + '_ {
        (0..)
            .zip(&self.0)
            .filter_map(|(number, named)| match named {
                Some(Named::Set(set)) => Some((number, set.clone())),
                _ => None,
            })
    }

    /// The socket of a number.
    #[inline]
    pub fn socket(&self, number: u32) -> Result<Arc<Open>> {
        match self.get(number) {
            Some(Named::Socket(open)) => Ok(open.clone()),
            Some(Named::Set(_)) => Err(Errno::NOT_A_SOCKET),
            None => Err(Errno::BAD_NUMBER),
        }
    }

    /// The set of a number.
    #[inline]
    pub fn set(&self, number: u32) -> Option<Arc<WatchSet>> {
        match self.get(number) {
            Some(Named::Set(set)) => Some(set.clone()),
            _ => None,
        }
    }
}
