//! perf_event_open(2).

mod attributes;

use alloc::sync::Arc;

use base::CpuId;
use cred::Capability;
use linux_raw_sys::general::{__NR_perf_event_open, O_CLOEXEC};
use perf::{self, Event, PARANOID, Target};
use vfs::file::StatusFlags;

use attributes::Raw;
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[Entry {
    number: __NR_perf_event_open,
    name: "perf_event_open",
    args: &[Arg::Address, Arg::Int, Arg::Int, Arg::Int, Arg::Flags],
    handler: open,
}];

/// Flags of the call (linux/perf_event.h). Control groups, which a third one is for, there are
/// none of.
const FD_NO_GROUP: u32 = 1;
const FD_OUTPUT: u32 = 2;
const FD_CLOEXEC: u32 = 8;

fn open(call: Call<'_>) -> Outcome {
    let flags = only(call.uint(4), FD_NO_GROUP | FD_OUTPUT | FD_CLOEXEC)?;
    let raw = Raw::read(call.addr(0))?;
    check_paranoia(&call, &raw)?;
    let mut attributes = raw.decode()?;
    let leader = leader(&call)?;
    attributes.only_on = cpu(&call)?;
    let target = target(&call, attributes.only_on)?;
    let in_group = leader.as_ref().filter(|_| flags & FD_NO_GROUP == 0);
    let event = perf::open(attributes, &target, in_group)?;
    if let Some(leader) = leader.as_ref().filter(|_| flags & FD_OUTPUT != 0) {
        event.write_to(leader)?;
    }
    let close_on_exec = match flags & FD_CLOEXEC {
        0 => 0,
        _ => O_CLOEXEC,
    };
    Ok(call.open_fd(event, StatusFlags::RDWR, close_on_exec)?)
}

/// What the administrator lets programs without rights see.
fn check_paranoia(call: &Call<'_>, raw: &Raw) -> Result<(), Errno> {
    let level = PARANOID.load(core::sync::atomic::Ordering::Relaxed) as i64;
    let may_all = call
        .thread
        .credentials
        .with(|who| who.has(Capability::Perfmon) || who.has(Capability::SysAdmin));
    match may_all || level <= 1 || raw.leaves_kernel_out() {
        true => Ok(()),
        false => Err(Errno::EACCES),
    }
}

fn leader(call: &Call<'_>) -> Result<Option<Arc<Event>>, Errno> {
    if call.int(3) == -1 {
        return Ok(None);
    }
    let open = call.file(3)?;
    perf::event_of(&open).map(Some).ok_or(Errno::EBADF)
}

/// The only CPU that it is to be about.
fn cpu(call: &Call<'_>) -> Result<Option<CpuId>, Errno> {
    match u32::try_from(call.int(2)) {
        Ok(cpu) if cpu as usize >= mach::cpu::count() => Err(Errno::EINVAL),
        cpu => Ok(cpu.ok().map(CpuId)),
    }
}

fn target(call: &Call<'_>, cpu: Option<CpuId>) -> Result<Target, Errno> {
    match (call.int(1), cpu) {
        (-1, Some(cpu)) => Ok(Target::Cpu(cpu)),
        (0, _) => Ok(Target::Thread(call.thread.arc())),
        (tid @ 1.., _) => {
            let thread = task::find_thread(tid.unsigned_abs());
            Ok(Target::Thread(thread.ok_or(Errno::ESRCH)?))
        }
        _ => Err(Errno::EINVAL),
    }
}
