//! Restartable sequences (rseq(2)): the program knows its CPU without a call.
//!
//! The area in the program's memory holds the CPU's number and a pointer to the sequence
//! that runs now. After the thread has left its CPU, and before a signal handler, a
//! sequence that has not committed is aborted: the thread goes on at its abort handler.

use base::VirtAddr;
use linux_raw_sys::general::__NR_rseq;
use mach::trap::UserRegs;
use mm::user;
use sched::Flags;
use sync::{Error, Result};
use task::signal::{self, Info, Signal};
use task::{Rseq, Thread};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[Entry {
    number: __NR_rseq,
    name: "rseq",
    args: &[Arg::Address, Arg::Size, Arg::Flags, Arg::Flags],
    handler: rseq,
}];

/// Bytes of the original area, which every program offers at least.
pub const AREA_BYTES: u32 = 32;
/// Bytes of the area that are filled in.
pub const FEATURE_BYTES: u32 = 20;
/// Alignment of the area.
pub const AREA_ALIGN: u64 = 32;
const UNREGISTER: u32 = 1;
const CPU_ID_START: u64 = 0;
const CPU_ID: u64 = 4;
const SEQUENCE: u64 = 8;
const NO_CPU: u32 = u32::MAX;

fn rseq(call: Call<'_>) -> Outcome {
    let wanted = Rseq {
        address: call.arg(0),
        len: call.uint(1),
        signature: call.uint(3),
    };
    let current = call.thread.rseq();
    match call.uint(2) {
        UNREGISTER => {
            if current != wanted || current.address == 0 {
                return Err(Errno::EINVAL);
            }
            user::write(VirtAddr(current.address + CPU_ID), NO_CPU)?;
            call.thread.set_rseq(Rseq::default());
        }
        0 => {
            if current.address != 0 {
                return Err(if current == wanted {
                    Errno::EBUSY
                } else {
                    Errno::EINVAL
                });
            }
            if wanted.len < AREA_BYTES || !wanted.address.is_multiple_of(AREA_ALIGN) {
                return Err(Errno::EINVAL);
            }
            user::write(VirtAddr(wanted.address + SEQUENCE), 0u64)?;
            call.thread.set_rseq(wanted);
        }
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

/// The thread may be on another CPU than before: brings its area up to date.
pub fn tell_cpu(thread: &Thread, regs: &mut UserRegs) {
    thread.clear_flags(Flags::RSEQ);
    abort(thread, regs);
    let area = thread.rseq().address;
    if area != 0 {
        let cpu = mach::cpu::id().0;
        let told = user::write(VirtAddr(area + CPU_ID_START), [cpu, cpu]);
        if told.is_err() {
            signal::force(thread, Info::kernel(Signal::SEGV));
        }
    }
}

/// Aborts the sequence that runs, if any.
pub fn abort(thread: &Thread, regs: &mut UserRegs) {
    let rseq = thread.rseq();
    if rseq.address != 0 && try_abort(&rseq, regs).is_err() {
        signal::force(thread, Info::kernel(Signal::SEGV));
    }
}

/// `struct rseq_cs`: version and flags, start, length, abort handler.
fn try_abort(rseq: &Rseq, regs: &mut UserRegs) -> Result<()> {
    let pointer = VirtAddr(rseq.address + SEQUENCE);
    let at: u64 = user::read(pointer)?;
    if at == 0 {
        return Ok(());
    }
    let [version, start, len, handler]: [u64; 4] = user::read(VirtAddr(at))?;
    if version as u32 != 0 {
        return Err(Error::Invalid);
    }
    user::write(pointer, 0u64)?;
    if regs.rip.wrapping_sub(start) < len {
        let signature: u32 = user::read(VirtAddr(handler.wrapping_sub(4)))?;
        if signature != rseq.signature {
            return Err(Error::Invalid);
        }
        regs.rip = handler;
        regs.restore_all();
    }
    Ok(())
}
