//! The environment of a command.

use alloc::vec::Vec;

use agent::Strings;
use mach::mem::fallible::{TryPush, copied};
use sync::Result;

/// Where programs are searched if nobody says it, as docker has it.
const PATH: &[u8] = b"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// `base`, in which the variables of `more` take the place of those of their names.
pub(crate) fn merged(base: &[Vec<u8>], more: Strings<'_>) -> Result<Vec<Vec<u8>>> {
    let is_replaced = |word: &[u8]| {
        let mut more = more;
        more.any(|new| name(new) == name(word))
    };
    let mut all = Vec::new();
    for word in base.iter().filter(|word| !is_replaced(word)) {
        all.try_push(copied(word)?)?;
    }
    for word in more {
        all.try_push(copied(word)?)?;
    }
    if !all.iter().any(|word| name(word) == b"PATH") {
        all.try_push(copied(PATH)?)?;
    }
    Ok(all)
}

fn name(word: &[u8]) -> &[u8] {
    word.split(|&byte| byte == b'=').next().unwrap_or(word)
}
