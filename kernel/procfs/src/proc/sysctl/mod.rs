//! /proc/sys: settings (sysctl(8)). A file without a way to write it is a fact of this system.
//!
//! | file | what |
//! |---|---|
//! | here | `fs`, `kernel`, `vm` |
//! | `core_net`, `ipv4`, `ipv6`, `tcp`, `own` | `net`, part by part |
//! | `mqueue` | limits of message queues |
//! | `sched` | how much real-time threads get |
//! | `memory` | limits of packet memory, which are kept in bytes and shown in pages |
//! | `form` | how values are read and written, and the kinds of settings |

mod core_net;
mod form;
mod ipv4;
mod ipv6;
mod memory;
mod mqueue;
mod own;
mod sched;
mod tcp;

use alloc::string::String;
use core::fmt::{Result, Write};
use core::sync::atomic::{AtomicU64, Ordering};

use mach::sync::Spin;
use mm::commit;
use sync::Error;
use task::current;
use task::names::Changeable;

use ipc::{aio, pipe};
use vfs::file::OpenFile;
use vfs::pseudo::{Entry, Text};
use vfs::{mount, notify};

/// A fact that never changes.
macro_rules! fact {
    ($path:literal, $value:expr) => {
        Entry::new($path, |text| writeln!(text, "{}", $value))
    };
}

/// A number that programs may set; it starts with `$value`.
macro_rules! setting {
    ($path:literal, $value:expr) => {{
        /// A setting of the machine.
        static VALUE: AtomicU64 = AtomicU64::new($value);
        Entry {
            path: $path,
            generate: |text| writeln!(text, "{}", VALUE.load(Ordering::Relaxed)),
            store: Some(|bytes| {
                VALUE.store(parse(bytes)?, Ordering::Relaxed);
                Ok(())
            }),
        }
    }};
}

/// One of the settings of who brings dirty pages down.
macro_rules! dirty {
    ($path:literal, $field:ident, $range:expr) => {
        Entry {
            path: $path,
            generate: |text| {
                let value = &kernel_pagecache::SETTINGS.$field;
                writeln!(text, "{}", value.load(Ordering::Relaxed))
            },
            store: Some(|bytes| {
                let value: u64 = form::parse(bytes, $range)?;
                kernel_pagecache::SETTINGS
                    .$field
                    .store(value, Ordering::Relaxed);
                Ok(())
            }),
        }
    };
}

/// The lines of parts that have files of their own.
pub const PARTS: [&[Entry]; 7] = [
    core_net::ENTRIES,
    ipv4::ENTRIES,
    ipv6::ENTRIES,
    mqueue::ENTRIES,
    own::ENTRIES,
    sched::ENTRIES,
    tcp::ENTRIES,
];

/// The other lines.
pub const ENTRIES: &[Entry] = &[
    Entry {
        path: "sys/fs/aio-max-nr",
        generate: |text| writeln!(text, "{}", aio::limit()),
        store: Some(|bytes| {
            aio::set_limit(form::parse(bytes, 0..=u64::from(u32::MAX))?);
            Ok(())
        }),
    },
    fact!("sys/fs/aio-nr", aio::promised()),
    fact!("sys/fs/file-max", OpenFile::most()),
    Entry::new("sys/fs/file-nr", open_files),
    fact!("sys/fs/inotify/max_queued_events", notify::QUEUED_MAX),
    fact!("sys/fs/inotify/max_user_instances", notify::INSTANCES_MAX),
    fact!("sys/fs/inotify/max_user_watches", notify::watches_max()),
    Entry {
        path: "sys/fs/mount-max",
        generate: |text| writeln!(text, "{}", mount::MOUNTS_MAX.load(Ordering::Relaxed)),
        store: Some(|bytes| {
            let most = form::parse(bytes, 1..=mount::MOST as u64)?;
            mount::MOUNTS_MAX.store(most, Ordering::Relaxed);
            Ok(())
        }),
    },
    fact!("sys/fs/nr_open", 1 << 20),
    fact!("sys/fs/pipe-max-size", 1 << 20),
    fact!("sys/fs/pipe-user-pages-soft", pipe::USER_PAGES_MAX),
    fact!("sys/kernel/cap_last_cap", cred::CAPABILITY_MAX),
    Entry {
        path: "sys/kernel/hostname",
        generate: |text| name(text, &current().names.get().host),
        store: Some(|bytes| current().names.get().host.set(bytes.trim_ascii_end())),
    },
    Entry {
        path: "sys/kernel/domainname",
        generate: |text| name(text, &current().names.get().domain),
        store: Some(|bytes| current().names.get().domain.set(bytes.trim_ascii_end())),
    },
    fact!("sys/kernel/ngroups_max", 65_536),
    fact!("sys/kernel/osrelease", task::names::RELEASE),
    fact!("sys/kernel/ostype", "Linux"),
    fact!("sys/kernel/version", "#1 SMP Sietch"),
    Entry {
        path: "sys/kernel/perf_event_paranoid",
        generate: |text| writeln!(text, "{}", perf::PARANOID.load(Ordering::Relaxed) as i64),
        store: Some(|bytes| {
            perf::PARANOID.store(parse_signed(bytes)? as u64, Ordering::Relaxed);
            Ok(())
        }),
    },
    fact!(
        "sys/kernel/perf_event_max_sample_rate",
        perf::MAX_SAMPLE_RATE
    ),
    fact!(
        "sys/kernel/perf_event_max_stack",
        mach::profile::tap::ADDRESSES_MAX
    ),
    fact!("sys/kernel/perf_event_mlock_kb", perf::USER_RING_KIBIBYTES),
    fact!("sys/kernel/pid_max", task::ID_MAX),
    fact!("sys/kernel/threads-max", task::ID_MAX),
    fact!("sys/kernel/randomize_va_space", 2),
    fact!("sys/kernel/overflowuid", 65_534),
    fact!("sys/kernel/overflowgid", 65_534),
    fact!(
        "sys/kernel/seccomp/actions_avail",
        "kill_process kill_thread trap errno trace log allow"
    ),
    fact!("sys/kernel/shmmax", u64::MAX >> 1),
    Entry::new("sys/kernel/random/boot_id", boot_id),
    Entry::new("sys/kernel/random/uuid", uuid),
    fact!("sys/kernel/random/entropy_avail", 256),
    dirty!("sys/vm/dirty_background_ratio", background_ratio, 0..=100),
    dirty!(
        "sys/vm/dirty_background_bytes",
        background_bytes,
        0..=u64::MAX
    ),
    dirty!("sys/vm/dirty_ratio", ratio, 0..=100),
    dirty!("sys/vm/dirty_bytes", bytes, 0..=u64::MAX),
    dirty!(
        "sys/vm/dirty_expire_centisecs",
        expire_centisecs,
        0..=form::INT_MAX
    ),
    dirty!(
        "sys/vm/dirty_writeback_centisecs",
        writeback_centisecs,
        0..=form::INT_MAX
    ),
    Entry {
        path: "sys/vm/drop_caches",
        generate: |text| writeln!(text, "{}", DROPPED.load(Ordering::Relaxed)),
        store: Some(drop_caches),
    },
    Entry {
        path: "sys/vm/overcommit_kbytes",
        generate: |text| writeln!(text, "{}", commit::limits().1),
        store: Some(|bytes| parse(bytes).map(commit::set_kibibytes)),
    },
    Entry {
        path: "sys/vm/overcommit_memory",
        generate: |text| writeln!(text, "{}", commit::mode()),
        store: Some(|bytes| commit::set_mode(parse(bytes)?)),
    },
    Entry {
        path: "sys/vm/overcommit_ratio",
        generate: |text| writeln!(text, "{}", commit::limits().0),
        store: Some(|bytes| parse(bytes).map(commit::set_percent)),
    },
    setting!("sys/vm/swappiness", 60),
    setting!("sys/vm/max_map_count", 65_530),
    fact!("sys/vm/mmap_min_addr", 65_536),
];

/// What was last written to `drop_caches`; the machine's.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// 1 is pages, 2 is names, 3 both: clean ones that nobody uses.
fn drop_caches(bytes: &[u8]) -> sync::Result<()> {
    let what = form::parse(bytes, 1..=4)?;
    DROPPED.store(what, Ordering::Relaxed);
    if what & 2 != 0 {
        mount::forget_unused_names();
    }
    if what & 1 != 0 {
        // Pages that were used lately go at the second look.
        mount::give_up_pages(usize::MAX);
        mount::give_up_pages(usize::MAX);
    }
    Ok(())
}

fn parse(bytes: &[u8]) -> sync::Result<u64> {
    let text = core::str::from_utf8(bytes).map_err(|_| Error::Invalid)?;
    text.trim().parse().map_err(|_| Error::Invalid)
}

fn parse_signed(bytes: &[u8]) -> sync::Result<i32> {
    let text = core::str::from_utf8(bytes).map_err(|_| Error::Invalid)?;
    text.trim().parse().map_err(|_| Error::Invalid)
}

/// Open file descriptions, free ones that are kept (none), and the most there may be.
fn open_files(text: &mut Text) -> Result {
    writeln!(text, "{}\t0\t{}", OpenFile::count(), OpenFile::most())
}

fn name(text: &mut Text, name: &Changeable) -> Result {
    writeln!(text, "{}", String::from_utf8_lossy(&name.get()))
}

/// One number for the life of the system.
fn boot_id(text: &mut Text) -> Result {
    /// It names this run of the machine.
    static ID: Spin<Option<[u8; 16]>> = Spin::new(None);
    let id = *ID.lock().get_or_insert_with(random_id);
    write_uuid(&id, text)
}

/// Another number at each reading.
fn uuid(text: &mut Text) -> Result {
    write_uuid(&random_id(), text)
}

/// A random identifier (RFC 9562, version 4).
fn random_id() -> [u8; 16] {
    let mut id = [0; 16];
    random::fill(&mut id);
    id[6] = id[6] & 0x0f | 0x40;
    id[8] = id[8] & 0x3f | 0x80;
    id
}

fn write_uuid(id: &[u8; 16], text: &mut Text) -> Result {
    for (index, byte) in id.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        write!(text, "{byte:02x}")?;
    }
    writeln!(text)
}
