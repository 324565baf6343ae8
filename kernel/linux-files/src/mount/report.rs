//! statmount, listmount: what is mounted, mount by mount.
//!
//! A program names mounts by numbers of 64 bits that are never used again, and asks for parts of
//! what there is to tell. It sees the mounts of its namespace that it can reach from its root.

use alloc::sync::Arc;
use alloc::vec::Vec;

use linux_raw_sys::general::*;
use mach::mem::fallible;
use mm::user;
use vfs::{self, Mount, MountFlags, Path, device_parts, mount};

use super::Result;
use super::tree::attributes_of;
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;
use linux_abi::errno::Errno;

/// The calls of this part.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_statmount,
        name: "statmount",
        args: &[Arg::Address, Arg::Address, Arg::Size, Arg::Flags],
        handler: statmount,
    },
    Entry {
        number: __NR_listmount,
        name: "listmount",
        args: &[Arg::Address, Arg::Address, Arg::Size, Arg::Flags],
        handler: listmount,
    },
];

/// Below it are numbers of mounts that are used again: those of /proc/self/mountinfo.
const UNIQUE_OFFSET: u64 = 1 << 31;
/// Stands for the caller's root.
const ROOT: u64 = u64::MAX;
/// Lists the youngest mounts first.
const REVERSE: u32 = 1;
/// As many numbers as can be asked for.
const NUMBERS_MAX: usize = 1_000_000;
/// Bytes of struct mnt_id_req: at first, and as we know it.
const REQUEST_BYTES_MIN: u32 = 24;
const REQUEST_BYTES: u32 = 32;

/// A mount's number that is never used again.
pub fn unique(mount: &Mount) -> u64 {
    UNIQUE_OFFSET + u64::from(mount.id)
}

/// struct mnt_id_req: which mount, and what of it or after which other.
struct Request {
    mount: u64,
    param: u64,
}

fn request(call: &Call<'_>) -> Result<Request> {
    let [size, spare]: [u32; 2] = user::read(call.addr(0))?;
    if size as usize > base::PAGE_BYTES {
        return Err(Errno::E2BIG);
    }
    if size < REQUEST_BYTES_MIN || spare != 0 {
        return Err(Errno::EINVAL);
    }
    let namespace = match size < REQUEST_BYTES {
        true => 0,
        false => user::read::<u64>(call.addr(0) + u64::from(REQUEST_BYTES_MIN))?,
    };
    for offset in u64::from(REQUEST_BYTES)..u64::from(size) {
        if user::read::<u8>(call.addr(0) + offset)? != 0 {
            return Err(Errno::E2BIG);
        }
    }
    let [mount, param]: [u64; 2] = user::read(call.addr(0) + 8)?;
    if mount <= UNIQUE_OFFSET {
        return Err(Errno::EINVAL);
    }
    match namespace {
        0 => Ok(Request { mount, param }),
        // Namespaces have no such numbers here.
        _ => Err(Errno::ENOENT),
    }
}

/// The mount of this number that the caller can reach, and where.
fn reachable(number: u64) -> Result<(Arc<Mount>, Vec<u8>)> {
    let root = vfs::context().root();
    let mut found = None;
    mount::for_each(|mount| {
        if unique(mount) == number {
            let place = Path::top_of(mount).name_below(&root);
            found = place.map(|place| (mount.clone(), place));
        }
    });
    found.ok_or(Errno::ENOENT)
}

/// Bytes of struct statmount, which the strings follow.
const FIXED_BYTES: usize = 512;
const FIXED_WORDS: usize = FIXED_BYTES / 8;
/// What asks for strings.
const STRINGS: u32 =
    STATMOUNT_MNT_ROOT | STATMOUNT_MNT_POINT | STATMOUNT_FS_TYPE | STATMOUNT_SB_SOURCE;
/// All that can be told.
const KNOWN: u32 = STRINGS | STATMOUNT_SB_BASIC | STATMOUNT_MNT_BASIC | STATMOUNT_SUPPORTED_MASK;

/// struct statmount as words, and its strings.
struct Answer {
    words: [u64; FIXED_WORDS],
    strings: Vec<u8>,
}

impl Answer {
    fn set(&mut self, index: usize, value: u64) {
        if let Some(word) = self.words.get_mut(index) {
            *word = value;
        }
    }

    /// Two fields of 32 bits in one word.
    fn set_pair(&mut self, index: usize, low: u32, high: u32) {
        self.set(index, u64::from(low) | u64::from(high) << 32);
    }

    /// Appends a string; its place goes into the half of a word.
    fn add_string(&mut self, index: usize, is_high: bool, text: &[u8]) {
        let at = self.strings.len() as u64;
        self.strings.extend_from_slice(text);
        self.strings.push(0);
        if let Some(word) = self.words.get_mut(index) {
            *word |= at << (32 * u32::from(is_high));
        }
    }

    fn tell_system(&mut self, mount: &Mount) -> sync::Result<()> {
        let (major, minor) = device_parts(mount.root.inode().metadata()?.device);
        self.set_pair(2, major, minor);
        self.set(3, mount.block.system.usage().magic);
        let flags = u64::from(MS_RDONLY) * u64::from(mount.block.is_read_only());
        self.set(4, flags);
        Ok(())
    }

    fn tell_mount(&mut self, mount: &Mount) {
        let parent = mount.covers();
        let parent = parent.as_ref().map_or(mount, |at| &at.mount);
        self.set(5, unique(mount));
        self.set(6, unique(parent));
        self.set_pair(7, mount.id, parent.id);
        self.set(8, attributes_of(mount.flags()));
        let propagation = mount.propagation();
        let group = propagation.group.map_or(0, |group| group.number());
        let master = propagation.master.map_or(0, |group| group.number());
        self.set(9, u64::from(propagation_flags(mount, group, master)));
        self.set(10, u64::from(group));
        self.set(11, u64::from(master));
    }

    fn tell_strings(&mut self, mount: &Arc<Mount>, place: &[u8], wanted: u32) {
        let wants = |part: u32| wanted & part != 0;
        if wants(STATMOUNT_FS_TYPE) {
            self.add_string(4, true, mount.block.system.kind().as_bytes());
        }
        if wants(STATMOUNT_MNT_ROOT) {
            self.add_string(13, false, &Path::top_of(mount).name_in_system());
        }
        if wants(STATMOUNT_MNT_POINT) {
            self.add_string(13, true, place);
        }
        if wants(STATMOUNT_SB_SOURCE) {
            self.add_string(15, true, &mount.source);
        }
    }
}

fn propagation_flags(mount: &Mount, group: u32, master: u32) -> u32 {
    let shared = MS_SHARED * u32::from(group != 0);
    let slave = MS_SLAVE * u32::from(master != 0);
    let unbindable = MS_UNBINDABLE * u32::from(mount.has(MountFlags::UNBINDABLE));
    match shared | slave | unbindable {
        0 => MS_PRIVATE,
        flags => flags,
    }
}

fn statmount(call: Call<'_>) -> Outcome {
    only(call.uint(3), 0)?;
    let request = request(&call)?;
    let (mount, place) = reachable(request.mount)?;
    let wanted = request.param as u32 & KNOWN;
    let mut answer = Answer {
        words: [0; FIXED_WORDS],
        // Where no string is, its place is that of an empty one.
        strings: alloc::vec![0],
    };
    answer.set(1, u64::from(wanted));
    if wanted & STATMOUNT_SB_BASIC != 0 {
        answer.tell_system(&mount)?;
    }
    if wanted & STATMOUNT_MNT_BASIC != 0 {
        answer.tell_mount(&mount);
    }
    if wanted & STATMOUNT_SUPPORTED_MASK != 0 {
        answer.set(18, u64::from(KNOWN));
    }
    answer.tell_strings(&mount, &place, wanted);
    store(&call, &mut answer, wanted & STRINGS != 0)
}

/// Stores as much of the struct as there is room for, but strings only if all have room.
fn store(call: &Call<'_>, answer: &mut Answer, has_strings: bool) -> Outcome {
    let (at, room) = (call.addr(1), call.size(2));
    let strings = if has_strings { answer.strings.len() } else { 0 };
    if has_strings && room < FIXED_BYTES + strings {
        return Err(Errno::EOVERFLOW);
    }
    let fixed = room.min(FIXED_BYTES);
    answer.set(0, (fixed + strings) as u64);
    let mut bytes = [0; FIXED_BYTES];
    for (place, word) in bytes.chunks_exact_mut(8).zip(&answer.words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    user::copy_out(bytes.get(..fixed).unwrap_or(&bytes), at)?;
    if has_strings {
        user::copy_out(&answer.strings, at + FIXED_BYTES as u64)?;
    }
    Ok(0)
}

/// Tells the numbers of the mounts below one, or of all that can be reached, in the order of
/// their age, after the one that was told last.
fn listmount(call: Call<'_>) -> Outcome {
    let flags = only(call.uint(3), REVERSE)?;
    let room = call.size(2);
    if room > NUMBERS_MAX {
        return Err(Errno::EOVERFLOW);
    }
    let request = request(&call)?;
    if request.param != 0 && request.param <= UNIQUE_OFFSET {
        return Err(Errno::EINVAL);
    }
    let mut numbers = below(request.mount)?;
    numbers.sort_unstable();
    let is_reverse = flags & REVERSE != 0;
    if is_reverse {
        numbers.reverse();
    }
    let last = request.param;
    numbers.retain(|number| match is_reverse {
        _ if last == 0 => true,
        true => *number < last,
        false => *number > last,
    });
    numbers.truncate(room);
    for (index, number) in numbers.iter().enumerate() {
        user::write(call.addr(1) + index as u64 * 8, *number)?;
    }
    Ok(numbers.len())
}

/// The numbers of the mounts below one.
fn below(number: u64) -> Result<Vec<u64>> {
    let top = match number {
        ROOT => vfs::context().root(),
        number => Path::top_of(&reachable(number)?.0),
    };
    let mut numbers = fallible::vec(mount::MOST).map_err(sync::Error::from)?;
    mount::for_each(|mount| {
        let is_below = Path::top_of(mount).name_below(&top).is_some();
        if is_below && unique(mount) != number {
            numbers.push(unique(mount));
        }
    });
    Ok(numbers)
}
