//! Groups: the functions that are offered, each by itself, since the IOMMU tells each from others.
//!
//! A group's number is its function's among those behind the machine's units; its node
//! /dev/vfio/N is root's, and whoever root gives it to can drive the function.

use alloc::format;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

use base::{Duration, Instant, VirtAddr};
use hal::pci::PciAddress;
use mach::sync::{Once, Spin};
use mm::user;
use pci::Function;
use sync::{Error, Result, Wait, WaitQueue};
use vfio::{GroupStatus, numbers};
use vfs::device_parts;
use vfs::devices::{Device, register};
use vfs::file::{File, FileRef, OpenFile, StatusFlags};

use crate::argument;
use crate::confinement;
use crate::container::Container;
use crate::device;
use crate::session::Session;
use crate::shape::Shape;

/// Linux takes one that is free, from the upper end of those for experiments.
const MAJOR: u32 = 243;
/// Classes of functions that are the machine's own: bridges.
const CLASS_BRIDGE: u32 = 6;
/// From the beginning of a reset until a function may be asked for anything (PCI Express 3.0,
/// 6.6.2).
pub const RESET_TIME: Duration = Duration::from_millis(100);
/// Bytes of a device's name and its end.
const NAME_BYTES_MAX: usize = 64;

/// A function that is offered.
pub struct Group {
    pub number: usize,
    pub shape: Shape,
    /// It is behind an IOMMU.
    pub is_confined: bool,
    /// A controller of NVMe that is one of several of a device's: its program sends no admin commands.
    pub keeps_admin_queue: bool,
    /// Somebody has it, of one that is not.
    pub is_taken: AtomicBool,
    /// Programs may have it.
    is_bound: AtomicBool,
    /// Of who has it.
    session: Spin<Weak<Session>>,
    /// When its last reset is over; 0 if it was restored since, or had none.
    reset_until_ns: AtomicU64,
}

/// Found at boot.
static GROUPS: Once<Vec<Group>> = Once::new();

/// Finds the functions that are behind a unit of the IOMMU and have no driver, or, on a machine without
/// one and if that is allowed, all that have no driver; false if there is none.
pub fn find_all() -> bool {
    let functions = pci::functions().iter().enumerate();
    let group = |(place, function)| Group::of(place, function);
    let groups = GROUPS.call_once(|| functions.filter_map(group).collect());
    !groups.is_empty()
}

/// The number of a function's group, if it is offered.
pub fn group_of(address: PciAddress) -> Option<usize> {
    let mut groups = GROUPS.get().into_iter().flatten();
    let group = groups.find(|group| group.shape.function.address() == address)?;
    Some(group.number)
}

/// Says whether programs may have a function, by its name as in /sys/bus/pci/devices.
///
/// Errors: `WrongDevice` if it was never offered.
pub fn bind(name: &[u8], is_bound: bool) -> Result<()> {
    let mut groups = GROUPS.get().into_iter().flatten();
    let group = groups.find(|group| group.name().as_bytes() == name);
    group.ok_or(Error::WrongDevice)?.bind(is_bound);
    Ok(())
}

/// Makes the nodes of all groups. Their names are made once and stay.
pub fn register_all() {
    for group in GROUPS.get().into_iter().flatten() {
        let minor = group.number as u32;
        register(Device {
            name: String::leak(match group.is_confined {
                true => format!("vfio/{minor}"),
                false => format!("vfio/noiommu-{minor}"),
            }),
            major: MAJOR,
            minors: (minor, minor),
            mode: 0o600,
            open,
        });
    }
}

fn open(number: u64, _status: StatusFlags) -> Result<FileRef> {
    let mut groups = GROUPS.get().into_iter().flatten();
    let (_, minor) = device_parts(number);
    let group = groups.find(|group| group.number as u32 == minor);
    let session = Session::open(group.ok_or(Error::NoSuchDevice)?)?;
    Ok(Arc::new(GroupFile(session)))
}

impl Group {
    fn of(place: usize, function: &'static Function) -> Option<Self> {
        if function.is_driven() || function.class() >> 16 == CLASS_BRIDGE {
            return None;
        }
        let is_confined = iommu::can_lend(function.address());
        let number = match is_confined {
            true => iommu::group_of(function.address())?,
            false if confinement::is_absent() => place,
            false => return None,
        };
        Some(Self {
            number,
            is_confined,
            keeps_admin_queue: is_confined
                && function.physical().is_some()
                && nvme::is_for(function),
            is_taken: AtomicBool::new(false),
            is_bound: AtomicBool::new(true),
            session: Spin::new(Weak::new()),
            shape: Shape::of(function),
            reset_until_ns: AtomicU64::new(0),
        })
    }

    /// The device's name, as Linux has it.
    fn name(&self) -> String {
        format!("0000:{}", self.shape.function.address())
    }

    /// Somebody has it from now on.
    ///
    /// Errors: `WrongDevice` if no program may.
    pub fn begin(&self, session: &Arc<Session>) -> Result<()> {
        *self.session.lock() = Arc::downgrade(session);
        match self.is_bound.load(SeqCst) {
            true => Ok(()),
            false => Err(Error::WrongDevice),
        }
    }

    /// Whether programs may have it from now on. If they may not, it is taken from who has it.
    fn bind(&self, is_bound: bool) {
        self.is_bound.store(is_bound, SeqCst);
        let session = self.session.lock().upgrade();
        if let (false, Some(session)) = (is_bound, session) {
            session.revoke();
        }
    }

    /// Notes that a reset began.
    pub fn reset_began(&self) {
        let until = mach::time::now() + RESET_TIME;
        self.reset_until_ns.store(until.as_nanos(), Relaxed);
    }

    /// Waits for the end of a reset, and restores what it took away.
    pub fn end_reset(&self) {
        let until_ns = self.reset_until_ns.swap(0, Relaxed);
        if until_ns == 0 {
            return;
        }
        let until = Wait::UNINTERRUPTIBLE.until(Instant::from_nanos(until_ns));
        // Nobody wakes it: it ends with the time.
        _ = WaitQueue::new().wait(until, || None::<()>);
        self.shape.restore();
    }
}

/// A group as a program has it open.
struct GroupFile(Arc<Session>);

impl File for GroupFile {
    fn ioctl(&self, _open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        match request {
            numbers::GROUP_GET_STATUS => self.status(argument),
            numbers::GROUP_SET_CONTAINER => self.set_container(argument),
            numbers::GROUP_UNSET_CONTAINER => self.0.leave().map(|()| 0),
            numbers::GROUP_GET_DEVICE_FD => self.device(argument),
            _ => Err(Error::NotTerminal),
        }
    }

    fn label(&self) -> String {
        String::from("anon_inode:[vfio-group]")
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl GroupFile {
    fn status(&self, argument: u64) -> Result<usize> {
        let mut status: GroupStatus = argument::read(argument)?;
        status.flags = match self.0.group.is_bound.load(SeqCst) {
            true => numbers::GROUP_VIABLE,
            false => 0,
        };
        if self.0.is_in_container() {
            status.flags |= numbers::GROUP_CONTAINER_SET;
        }
        argument::write(argument, &status, status.argsz)?;
        Ok(0)
    }

    fn set_container(&self, argument: u64) -> Result<usize> {
        let fd: i32 = user::read(VirtAddr(argument))?;
        if fd < 0 {
            return Err(Error::Invalid);
        }
        let open = argument::open_file(fd)?;
        self.0.join(Container::of(&open)?)?;
        Ok(0)
    }

    fn device(&self, argument: u64) -> Result<usize> {
        let name = user::read_string(VirtAddr(argument), NAME_BYTES_MAX)?;
        if name.ok_or(Error::Invalid)? != self.0.group.name().as_bytes() {
            return Err(Error::WrongDevice);
        }
        let device = self.0.device()?;
        argument::give_descriptor(device::file(device))
    }
}
