//! Devices: which number belongs to which driver.
//!
//! A driver registers a number with a function that opens it; a node in /dev (or anywhere) only
//! carries the number. Opening an unknown number is ENXIO.

use alloc::vec::Vec;

use mach::sync::{Once, Spin};
use sync::{Error, Result};

use crate::file::{FileRef, StatusFlags};
use crate::{device_number, device_parts};

/// Opens a device: its number, and the status flags of the open file.
pub type Open = fn(u64, StatusFlags) -> Result<FileRef>;

/// A driver's claim on numbers.
#[derive(Clone, Copy)]
pub struct Device {
    /// Its name below /dev; empty for numbers that get no node (pseudo terminals).
    pub name: &'static str,
    /// The major number.
    pub major: u32,
    /// The minor numbers: first and last.
    pub minors: (u32, u32),
    /// Permission bits of its node.
    pub mode: u32,
    /// Opens it.
    pub open: Open,
}

/// Devices are the machine's.
static DEVICES: Spin<Vec<Device>> = Spin::new(Vec::new());

/// Said once at boot by who keeps /dev.
static ADD_NODE: Once<fn(&Device)> = Once::new();

/// Says who makes the nodes of devices that are registered from now on.
pub fn make_nodes_by(add_node: fn(&Device)) {
    ADD_NODE.call_once(|| add_node);
}

/// Adds a driver; its node appears in /dev.
pub fn register(device: Device) {
    DEVICES.lock().push(device);
    if let Some(add_node) = ADD_NODE.get() {
        add_node(&device);
    }
}

/// Opens the device with this number.
pub fn open(number: u64, status: StatusFlags) -> Result<FileRef> {
    // The bits of a minor number lie on both sides of the major one's.
    let (major, minor) = device_parts(number);
    let device = find(|device| {
        let (first, last) = device.minors;
        device.major == major && (first..=last).contains(&minor)
    });
    (device.ok_or(Error::NoSuchDevice)?.open)(number, status)
}

/// How disks open, by their numbers: said once at boot by who has them.
static OPEN_DISK: Once<Open> = Once::new();

/// Says how disks open.
pub fn open_disks_by(open: Open) {
    OPEN_DISK.call_once(|| open);
}

/// Opens the disk, or the partition of one, with this number.
pub fn open_disk(number: u64, status: StatusFlags) -> Result<FileRef> {
    let open = OPEN_DISK.get().ok_or(Error::NoSuchDevice)?;
    open(number, status)
}

/// The number of the device with this name.
pub fn node_of(name: &str) -> Option<u64> {
    find(|device| device.name == name).map(|device| device_number(device.major, device.minors.0))
}

/// All devices that have a node.
pub fn nodes() -> Vec<Device> {
    DEVICES
        .lock()
        .iter()
        .filter(|device| !device.name.is_empty())
        .copied()
        .collect()
}

fn find(matches: impl Fn(&Device) -> bool) -> Option<Device> {
    DEVICES
        .lock()
        .iter()
        .find(|device| matches(device))
        .copied()
}
