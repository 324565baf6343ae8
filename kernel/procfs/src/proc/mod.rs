//! /proc: the system and its processes as files (proc(5)).
//!
//! What is always there stands in one table, path by path ([`system`], [`sysctl`],
//! [`net`]); a process' files stand in another ([`task`]). To add a file means to add a
//! line and a function that writes its text.
//!
//! Names are not cached: processes come and go.

mod card;
mod descriptors;
pub mod disks;
mod fail_nth;
mod frames;
mod guard;
mod image;
mod internet;
mod iommu;
mod list;
mod lock_stat;
mod memory;
mod microstates;
mod mounts;
mod namespaces;
mod net;
mod net6;
mod oom;
mod packet;
mod reasons;
mod resched;
mod root;
mod snmp;
mod sockets;
mod stack_counters;
mod status;
pub mod sysctl;
mod system;
mod sysvipc;
mod task;
mod tcp_events;

use alloc::sync::Arc;

use ::task::Process;
use mach::sync::Once;
use sync::Result;

use vfs::file::OpenFile;
use vfs::pseudo::{Entry, Table};
use vfs::{FileSystem, InodeRef, Usage, next_device};

/// Linux's number of procfs (statfs(2)).
const MAGIC: u64 = 0x9fa0;

/// What the crates of the kernel add at boot; what a file shows is made when it is read.
static TABLE: Table = Table::new();

/// Adds files; paths are below /proc, without a leading slash.
pub fn add(entries: &[Entry]) {
    TABLE.add(entries);
}

/// The process whose directory is open, /proc/PID; `None` if it is anything else.
pub fn process_of_directory(open: &OpenFile) -> Option<Arc<Process>> {
    let directory = open.file.as_any().downcast_ref::<task::TaskDirectory>()?;
    let subject = directory.subject();
    (!subject.is_thread()).then(|| subject.process.clone())
}

struct Procfs {
    device: u64,
}

impl FileSystem for Procfs {
    fn kind(&self) -> &'static str {
        "proc"
    }

    fn root(&self) -> InodeRef {
        Arc::new(root::Root::new(self.device))
    }

    fn usage(&self) -> Usage {
        Usage {
            magic: MAGIC,
            block_bytes: base::PAGE_BYTES as u64,
            ..Usage::default()
        }
    }

    fn keeps_names(&self) -> bool {
        false
    }
}

/// procfs for mount(2); every mount shows the same.
pub fn make(_source: &[u8], _options: &[u8]) -> Result<Arc<dyn FileSystem>> {
    /// One, however often it is mounted: what it shows is the reader's.
    static SYSTEM: Once<Arc<Procfs>> = Once::new();
    let system = SYSTEM.call_once(|| {
        add(system::ENTRIES);
        add(sysctl::ENTRIES);
        sysctl::PARTS.into_iter().for_each(add);
        add(reasons::ENTRIES);
        add(card::ENTRIES);
        add(iommu::ENTRIES);
        add(disks::ENTRIES);
        add(net::ENTRIES);
        add(net6::ENTRIES);
        add(stack_counters::ENTRIES);
        add(internet::ENTRIES);
        add(snmp::ENTRIES);
        add(packet::ENTRIES);
        add(sockets::ENTRIES);
        add(sysvipc::ENTRIES);
        TABLE.add_specials(internet::SPECIALS);
        TABLE.add_specials(sockets::SPECIALS);
        Arc::new(Procfs {
            device: next_device(),
        })
    });
    Ok(system.clone())
}
