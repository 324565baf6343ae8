//! Which disk an image is on.

use alloc::format;
use alloc::string::String;

use ext4::Summary;
use kernel_block::Store;
use mach::klog;
use sync::{Error, Result};

/// The node of the disk or partition whose image has this UUID. The order in which disks are found does not
/// matter, nor by which driver.
///
/// Errors: `NoSuchDevice` if there is none, `Invalid` if there are several.
pub fn node_of(uuid: &[u8; 16]) -> Result<String> {
    let mut found = None;
    for disk in kernel_block::disks() {
        let partitions = disk.partitions();
        let names = core::iter::once(disk.name()).chain(partitions.iter().map(|part| part.name));
        for name in names.filter(|name| has(name, uuid)) {
            if let Some(other) = found.replace(name) {
                klog!("ext4: {other} and {name} have the same UUID");
                return Err(Error::Invalid);
            }
        }
    }
    let name = found.ok_or(Error::NoSuchDevice)?;
    Ok(format!("/dev/{name}"))
}

/// Whether the image of that UUID is there. What cannot be read has none.
fn has(name: &str, uuid: &[u8; 16]) -> bool {
    let mut superblock = [0; Summary::BYTES];
    let read = Store::find(format!("/dev/{name}").as_bytes())
        .and_then(|store| store.read(Summary::OFFSET, &mut superblock));
    let summary = read.ok().and_then(|()| Summary::of(&superblock));
    summary.is_some_and(|summary| summary.uuid == *uuid)
}
