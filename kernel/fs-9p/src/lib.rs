//! Folders of the host (`sietch run -v`), by the 9P protocol.
//!
//! ```text
//! node.rs    an inode: names, attributes           file.rs   its bytes, its mapped pages
//!     └──────────── volume.rs   fids, nodes by identity ────────────┘
//!                       └── link.rs   a request under way, its thread asleep
//!                               └── ninep::Channel   the device's driver
//! ```
//!
//! The host may change the folder at any time, so nothing is remembered that the host
//! can be asked for: names and attributes are looked up each time, reads go to the host,
//! writes go through to it before they return. Only pages that a program has mapped
//! are kept: reads and writes see them, `msync`, `fsync` and `close` bring them home.
//! With the option `immutable` the folder stays as it is as long as it is mounted, and is only read: then names and all
//! pages are kept, and files are read ahead.
//!
//! A file that is open keeps an open file on the host, and so survives its removal.
//!
//! Lock order: a node's `writing`, its `open`, then spin locks; requests are never made
//! under a spin lock.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod answer;
mod file;
mod link;
mod node;
mod volume;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use mach::sync::Spin;
use ninep::Channel;
use sched::{Softirq, Work, register_softirq};
use sync::{Error, Result};

use link::Link;
use vfs::FileSystem;
use vfs::kinds::{self, Kind};
use vfs::pseudo::Text;
use volume::Volume;

/// The channels of all volumes. They are the machine's devices; a mount picks one by its tag.
static LINKS: Spin<Vec<Arc<Link>>> = Spin::new(Vec::new());

/// Takes a volume's channel, whose interrupt raises [`Softirq::Volume`]; at boot.
pub fn attach(channel: Box<dyn Channel + Send>) {
    LINKS.lock().push(Arc::new(Link::new(channel)));
    register_softirq(
        Softirq::Volume,
        Work {
            run: complete_all,
            // Replies raise an interrupt as soon as a request is sent.
            look: None,
        },
    );
}

fn links() -> Vec<Arc<Link>> {
    LINKS.lock().clone()
}

/// /proc/volumes: what each volume has served. Times are nanoseconds; FULL counts looks that
/// found no free tag.
pub fn figures(text: &mut Text) -> fmt::Result {
    writeln!(text, "REQUESTS BUSY WAITED FULL FAILED NAME")?;
    for link in links() {
        let figures = link.figures();
        let served = figures.served;
        let (requests, busy_ns, waited_ns) = (served.requests, served.busy_ns, served.waited_ns);
        let name = String::from_utf8_lossy(&figures.name).replace(char::is_control, "?");
        let (full, failed) = (figures.full, figures.failed);
        writeln!(
            text,
            "{requests} {busy_ns} {waited_ns} {full} {failed} {name}"
        )?;
    }
    Ok(())
}

fn complete_all() {
    links().iter().for_each(|link| link.complete());
}

/// The options of mount(2); the volume decides all of it but the last.
const OPTIONS: &[&str] = &[
    "trans", "version", "msize", "access", "cache", "uname", "aname", "debug", "dfltuid",
    "dfltgid", "nodevmap", "posixacl", "noxattr", IMMUTABLE,
];
/// This one is ours.
const IMMUTABLE: &str = "immutable";

/// Makes the kind known to mount(2). Once, before the root is filled.
pub fn init() {
    kinds::register(Kind {
        name: "9p",
        nodev: true,
        options: OPTIONS,
        make,
    });
}

/// The file system of the volume called `tag`.
fn make(tag: &[u8], options: &[u8]) -> Result<Arc<dyn FileSystem>> {
    let link = links().into_iter().find(|link| link.is_called(tag));
    let mut options = options.split(|byte| *byte == b',');
    let is_immutable = options.any(|option| option == IMMUTABLE.as_bytes());
    Ok(Volume::open(link.ok_or(Error::WrongDevice)?, is_immutable)?)
}
