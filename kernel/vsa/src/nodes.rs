//! Numbers and nodes of areas in /dev/vsa.
//!
//! A node has its area's owner and is for nobody else until the owner says so (chmod(2)), which lasts until the machine
//! ends. A name that cannot stand in /dev, or that another disk has too, gets no node.

use core::str;
use core::sync::atomic::{AtomicU32, Ordering};

use fs_tmp::devtmpfs;
use mach::klog;
use sync::{Error, Result};
use vfs::names::{create_by_kernel, unlink_by_kernel};
use vfs::{FileType, New, device_number};
use vsa::Name;

use crate::area::Area;

/// One of those for local use (Linux's admin-guide/devices.txt).
pub const MAJOR: u32 = 240;
/// The last number of an area's node; the first is 1.
pub const MINOR_LAST: u32 = (1 << 20) - 1;
const CONTROL: &str = "control";

/// Numbers are used again only after a million areas.
static NEXT_MINOR: AtomicU32 = AtomicU32::new(1);

/// A number for an area's node.
pub fn next_minor() -> u32 {
    let next = |minor| Some(if minor >= MINOR_LAST { 1 } else { minor + 1 });
    let taken = NEXT_MINOR.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    taken.unwrap_or_else(|minor| minor)
}

/// The name as one in /dev/vsa.
///
/// Errors: `Invalid` if it cannot be one.
pub fn checked(name: &Name) -> Result<&str> {
    let text = str::from_utf8(name.bytes()).map_err(|_| Error::Invalid)?;
    let is_taken = matches!(text, CONTROL | "." | "..") || text.contains(char::is_control);
    (!is_taken).then_some(text).ok_or(Error::Invalid)
}

/// Makes an area's node.
pub fn add(area: &Area) {
    let new = New {
        kind: FileType::CharDevice,
        mode: 0o600,
        uid: area.owner,
        gid: 0,
        device: device_number(MAJOR, area.minor),
        target: &[],
    };
    let place =
        checked(&area.name).and_then(|name| devtmpfs::place_of(&alloc::format!("vsa/{name}")));
    if let Err(error) = place.and_then(|place| create_by_kernel(&place, &new)) {
        klog!(
            "area {:?} of {} has no node: {error:?}",
            area.name,
            area.store.name()
        );
    }
}

/// Takes it away.
pub fn remove(area: &Area) {
    // A program may have removed it already.
    let place =
        checked(&area.name).and_then(|name| devtmpfs::place_of(&alloc::format!("vsa/{name}")));
    let _ = place.and_then(|place| unlink_by_kernel(&place));
}
