//! What identifies a word of the current program's.

use alloc::sync::Arc;

use ::futex::Key;
use base::VirtAddr;
use sync::{Error, Result};
use task::current;

use super::word::{Place, UserWord};

/// The word at `address` of the current program. `private` says that only this process uses it.
///
/// Errors: `Invalid` if misaligned, `BadAddress` if a shared word is not mapped.
pub fn place_of(address: VirtAddr, private: bool) -> Result<Place> {
    let word = UserWord(address);
    let key = key_of(address, private)?;
    Ok(Place { key, word })
}

pub(super) fn key_of(address: VirtAddr, private: bool) -> Result<Key> {
    if address.0 & 3 != 0 {
        return Err(Error::Invalid);
    }
    let me = current();
    if !private && let Some((object, offset)) = me.process.space.get().shared_identity(address)? {
        return Ok(Key::new(object, offset));
    }
    let object = me.process.space.with(|space| Arc::as_ptr(space) as usize);
    Ok(Key::new(object, address.0))
}
