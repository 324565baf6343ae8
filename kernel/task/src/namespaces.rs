//! Descriptors that stand for a namespace (namespaces(7)): /proc/PID/ns/*, for setns(2).
//!
//! A namespace lives as long as somebody holds it; such a descriptor does. Its number is that
//! of an inode, so that stat(2) tells whether two programs share a namespace.
//!
//! There are namespaces of mounts, of the system's names and of the network; processes, users and
//! System V's objects are one for all.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;

use mach::sync::Once;
use sync::{Error, Result};

use crate::names::Names;
use crate::net_namespace::NetNamespace;
use crate::processes::Thread;
use vfs::file::{File, OpenFile, StatusFlags};
use vfs::{FileType, Metadata, mount, next_device};

/// Requests of ioctl_ns(2): NS_GET_USERNS, NS_GET_PARENT, NS_GET_NSTYPE.
const GET_USERS: u32 = 0xb701;
const GET_PARENT: u32 = 0xb702;
const GET_TYPE: u32 = 0xb703;

/// The kinds of namespace; the values are Linux's `CLONE_NEW*`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Kind {
    /// Mounts.
    Mount = 0x2_0000,
    /// Names of host and domain.
    Uts = 0x400_0000,
    /// The network.
    Net = 0x4000_0000,
}

/// All kinds.
pub const KINDS: [Kind; 3] = [Kind::Mount, Kind::Uts, Kind::Net];

impl Kind {
    /// As /proc/PID/ns calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mount => "mnt",
            Self::Uts => "uts",
            Self::Net => "net",
        }
    }
}

/// A namespace that somebody holds.
#[derive(Clone)]
pub enum Namespace {
    /// Of mounts.
    Mount(Arc<mount::Namespace>),
    /// Of the system's names.
    Uts(Arc<Names>),
    /// Of the network.
    Net(Arc<dyn NetNamespace>),
}

impl Namespace {
    /// The one that a thread is in.
    pub fn of(thread: &Thread, kind: Kind) -> Self {
        match kind {
            Kind::Mount => Self::Mount(thread.fs.get().namespace()),
            Kind::Uts => Self::Uts(thread.names.get()),
            Kind::Net => Self::Net(thread.net.get()),
        }
    }

    /// Which kind it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Mount(_) => Kind::Mount,
            Self::Uts(_) => Kind::Uts,
            Self::Net(_) => Kind::Net,
        }
    }

    fn number(&self) -> u64 {
        match self {
            Self::Mount(mounts) => mounts.number,
            Self::Uts(names) => names.number,
            Self::Net(stack) => stack.number(),
        }
    }

    /// As links to it show it.
    pub fn label(&self) -> String {
        format!("{}:[{}]", self.kind().name(), self.number())
    }

    /// An open file that holds it.
    pub fn open(self) -> Arc<OpenFile> {
        OpenFile::new(Arc::new(NamespaceFile(self)), StatusFlags::empty())
    }
}

/// The namespace that `open` stands for.
///
/// Errors: `Invalid` if it is another file.
pub fn namespace_of(open: &OpenFile) -> Result<Namespace> {
    let file = open.file.as_any().downcast_ref::<NamespaceFile>();
    file.map(|file| file.0.clone()).ok_or(Error::Invalid)
}

struct NamespaceFile(Namespace);

impl File for NamespaceFile {
    fn metadata(&self) -> Result<Metadata> {
        /// A number for the files of all namespaces, which are told apart by it and their own.
        static DEVICE: Once<u64> = Once::new();
        let device = *DEVICE.call_once(next_device);
        let number = self.0.number();
        Ok(Metadata::new(device, number, FileType::Regular, 0o444))
    }

    fn ioctl(&self, _open: &OpenFile, request: u32, _argument: u64) -> Result<usize> {
        match request {
            GET_TYPE => Ok(self.0.kind() as usize),
            // As on a Linux without user namespaces.
            GET_USERS => Err(Error::NotPermitted),
            GET_PARENT => Err(Error::Invalid),
            _ => Err(Error::NotTerminal),
        }
    }

    fn label(&self) -> String {
        self.0.label()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
