//! What the system is: uname, sysinfo, host name; and calls that only refuse.

use base::PAGE_BYTES;
use cred::Capability;
use linux_raw_sys::general::{
    __NR_personality, __NR_setdomainname, __NR_sethostname, __NR_sysinfo, __NR_syslog, __NR_uname,
};
use mm::user;
use task::names::{self, Changeable, NAME_BYTES_MAX};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_uname,
        name: "uname",
        args: &[Arg::Address],
        handler: uname,
    },
    Entry {
        number: __NR_sysinfo,
        name: "sysinfo",
        args: &[Arg::Address],
        handler: sysinfo,
    },
    Entry {
        number: __NR_sethostname,
        name: "sethostname",
        args: &[Arg::Buffer, Arg::Size],
        handler: |call| set(&call, &call.thread.names.get().host),
    },
    Entry {
        number: __NR_setdomainname,
        name: "setdomainname",
        args: &[Arg::Buffer, Arg::Size],
        handler: |call| set(&call, &call.thread.names.get().domain),
    },
    Entry {
        number: __NR_personality,
        name: "personality",
        args: &[Arg::Flags],
        handler: personality,
    },
    Entry {
        number: __NR_syslog,
        name: "syslog",
        args: &[Arg::Int, Arg::Address, Arg::Size],
        handler: syslog,
    },
];

/// Bytes of each name in memory, the final zero included.
const FIELD_BYTES: usize = NAME_BYTES_MAX + 1;
const FIELDS: usize = 6;

fn field(name: &[u8]) -> [u8; FIELD_BYTES] {
    let mut field = [0; FIELD_BYTES];
    for (place, &byte) in field.iter_mut().take(NAME_BYTES_MAX).zip(name) {
        *place = byte;
    }
    field
}

/// What a program of 32 bits is told of the machine.
const MACHINE_32: &str = "i686";

/// Fills `struct utsname`: system, node, release, version, machine, domain.
fn uname(call: Call<'_>) -> Outcome {
    let machine = match call.thread.personality.is_32_bit() {
        true => MACHINE_32,
        false => names::MACHINE,
    };
    let fields: [[u8; FIELD_BYTES]; FIELDS] = [
        field(names::SYSTEM.as_bytes()),
        field(&call.thread.names.get().host.get()),
        field(names::RELEASE.as_bytes()),
        field(names::VERSION.as_bytes()),
        field(machine.as_bytes()),
        field(&call.thread.names.get().domain.get()),
    ];
    user::copy_out(fields.as_flattened(), call.addr(0))?;
    Ok(0)
}

fn set(call: &Call<'_>, place: &Changeable) -> Outcome {
    call.thread
        .credentials
        .with(|who| who.require(Capability::SysAdmin))?;
    let mut name = [0; NAME_BYTES_MAX];
    let name = name.get_mut(..call.size(1)).ok_or(Errno::EINVAL)?;
    user::copy_in(call.addr(0), name)?;
    place.set(name)?;
    Ok(0)
}

/// Words of a `struct sysinfo`: uptime, three loads, eight sizes.
const SYSINFO_WORDS: usize = 14;
const PROCESSES_MAX: usize = u16::MAX as usize;
/// Bits behind the point of a load (SI_LOAD_SHIFT).
const LOAD_FRACTION_BITS: u32 = 16;

/// Memory in bytes; there is no swap and no high memory.
fn sysinfo(call: Call<'_>) -> Outcome {
    let memory = mach::mem::stats();
    let loads = sched::load_averages().scaled_by(LOAD_FRACTION_BITS);
    let mut words = [0u64; SYSINFO_WORDS];
    words[0] = mach::time::now().as_nanos() / 1_000_000_000;
    words[1..4].copy_from_slice(&loads);
    words[4] = memory.total as u64 * PAGE_BYTES as u64;
    words[5] = memory.free as u64 * PAGE_BYTES as u64;
    words[10] = task::thread_count().min(PROCESSES_MAX) as u64;
    words[13] = 1;
    user::write(call.addr(0), words)?;
    Ok(0)
}

/// Tells the former one; -1 only asks.
fn personality(call: Call<'_>) -> Outcome {
    let personality = &call.thread.personality;
    let before = personality.bits();
    if call.uint(0) != u32::MAX {
        personality.set(call.uint(0));
    }
    Ok(before as usize)
}

/// What syslog(2) is asked for: the open log, a part of it, all of it (and then none), whether
/// the console shows it and what of it, how much of it is unread and how much there can be.
const LOG_READ: i32 = 2;
const LOG_READ_ALL: i32 = 3;
const LOG_READ_CLEAR: i32 = 4;
const LOG_LEVEL: i32 = 8;
const LOG_SIZE_UNREAD: i32 = 9;
const LOG_SIZE: i32 = 10;
/// The least that Linux keeps.
const LOG_BYTES: usize = 1 << 12;
/// The levels that a console may be set to.
const LEVELS: core::ops::RangeInclusive<i32> = 1..=8;

/// The kernel's log goes to the console; here it is empty.
fn syslog(call: Call<'_>) -> Outcome {
    let (request, len) = (call.int(0), call.int(2));
    if !matches!(request, LOG_READ_ALL | LOG_SIZE) {
        let credentials = &call.thread.credentials;
        credentials.with(|who| match who.has(Capability::SysAdmin) {
            true => Ok(()),
            false => who.require(Capability::Syslog),
        })?;
    }
    match request {
        LOG_READ..=LOG_READ_CLEAR if len < 0 || call.optional_addr(1).is_none() => {
            Err(Errno::EINVAL)
        }
        LOG_LEVEL if !LEVELS.contains(&len) => Err(Errno::EINVAL),
        0..=LOG_SIZE_UNREAD => Ok(0),
        LOG_SIZE => Ok(LOG_BYTES),
        _ => Err(Errno::EINVAL),
    }
}
