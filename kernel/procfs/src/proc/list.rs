//! Listing what is made of fixed names and of numbers.

use alloc::string::ToString;

use sync::Result;
use vfs::FileType;
use vfs::inode::{DirEntry, Emit};
use vfs::pseudo::number_of;

/// Cursors from here on are numbers; those below count fixed names.
const NUMBERS: u64 = 1 << 20;

/// Emits `names`, then `numbers` (ascending), from `cursor` on.
pub fn list<'a>(
    cursor: u64,
    emit: Emit<'_>,
    names: impl Iterator<Item = (&'a str, FileType)>,
    numbers: impl Iterator<Item = u32>,
    number_kind: FileType,
) -> Result<()> {
    for (index, (name, kind)) in (0u64..).zip(names).skip_while(|(index, _)| *index < cursor) {
        let number = number_of(name.as_bytes());
        if !emit(DirEntry {
            name: name.as_bytes(),
            number,
            kind,
            next: index + 1,
        }) {
            return Ok(());
        }
    }
    for id in numbers.filter(|id| NUMBERS + u64::from(*id) >= cursor) {
        let name = id.to_string();
        let number = number_of(name.as_bytes());
        let next = NUMBERS + u64::from(id) + 1;
        if !emit(DirEntry {
            name: name.as_bytes(),
            number,
            kind: number_kind,
            next,
        }) {
            break;
        }
    }
    Ok(())
}

/// The number that a name says, if it is written as the system writes it.
pub fn parse(name: &[u8]) -> Option<u32> {
    let text = core::str::from_utf8(name).ok()?;
    let plain = text.bytes().all(|byte| byte.is_ascii_digit())
        && !(text.len() > 1 && text.starts_with('0'));
    text.parse().ok().filter(|_| plain)
}
