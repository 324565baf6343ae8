//! What brings programs into the kernel other than their calls (`dispatch`): faults, and being
//! interrupted. And their way out.

use base::VirtAddr;
use mach::trap::{Exception, Kernel, UserRegs};
use mm::reclaim;
use mm::{Access, FaultError};
use sched::Mstate;
use sched::preempt_off::{self, Cause};
use task::signal::{self, Info, Origin, Signal, code};
use task::{Thread, current};

use crate::dispatch;
use linux_task::leave;

/// The Linux personality, as the machine sees it.
struct Linux;

/// From now on programs' traps come here, and the machine ends with process 1; once at
/// boot.
pub fn init() {
    crate::death::init();
    mach::trap::install::<Linux>(dispatch::syscall);
}

impl Kernel for Linux {
    fn exception(regs: &mut UserRegs, exception: Exception) {
        preempt_off::begin(match exception {
            Exception::PageFault { .. } => Cause::FAULT,
            _ => Cause::TRAP,
        });
        let thread = current();
        if let Some(info) = handle(&thread, regs, exception) {
            signal::force(&thread, info);
        }
        preempt_off::end();
    }

    fn interrupted(regs: &mut UserRegs) {
        preempt_off::begin(Cause::INTERRUPT);
        // SYSRET leaves the address that it returns to in RCX.
        sched::note_interrupt(regs.rip == regs.rcx);
        preempt_off::end();
    }

    fn leave(regs: &mut UserRegs) {
        preempt_off::begin(Cause::LEAVE);
        if regs.take_again() {
            dispatch::run_again(regs);
        }
        let thread = current();
        leave::before_user(&thread, regs);
        sched::sample::note_return(&thread.sched);
        preempt_off::end();
    }
}

/// Resolves a page fault, or says which signal the exception is.
fn handle(thread: &Thread, regs: &UserRegs, exception: Exception) -> Option<Info> {
    let ip = regs.rip;
    let fault = |signal, code, address, vector, error| {
        thread.sched.life.set_mstate(Mstate::Trap);
        Some(Info {
            signal,
            code,
            origin: Origin::Fault {
                address,
                vector,
                error,
            },
        })
    };
    match exception {
        Exception::PageFault {
            addr,
            write,
            exec,
            present,
        } => page_fault(thread, addr, write, exec, present),
        Exception::DivideError => fault(Signal::FPE, code::FPE_INTDIV, ip, 0, 0),
        Exception::Debug => fault(Signal::TRAP, code::TRAP_TRACE, ip, 1, 0),
        Exception::Breakpoint => fault(Signal::TRAP, code::KERNEL, 0, 3, 0),
        Exception::Overflow => fault(Signal::SEGV, code::KERNEL, 0, 4, 0),
        Exception::BoundRange => fault(Signal::SEGV, code::KERNEL, 0, 5, 0),
        Exception::InvalidOpcode => fault(Signal::ILL, code::ILL_ILLOPN, ip, 6, 0),
        Exception::SegmentNotPresent { code } => fault(Signal::BUS, code::KERNEL, 0, 11, code),
        Exception::StackFault { code } => fault(Signal::BUS, code::KERNEL, 0, 12, code),
        Exception::GeneralProtection { code } => fault(Signal::SEGV, code::KERNEL, 0, 13, code),
        Exception::AlignmentCheck => fault(Signal::BUS, code::BUS_ADRALN, 0, 17, 0),
        Exception::FloatingPoint => fault(Signal::FPE, code::FPE_FLTINV, ip, 16, 0),
        Exception::Simd => fault(Signal::FPE, code::FPE_FLTINV, ip, 19, 0),
        Exception::Other { vector } => fault(Signal::SEGV, code::KERNEL, 0, u32::from(vector), 0),
    }
}

const PAGE_FAULT: u32 = 14;
const FROM_USER: u32 = 4;

fn page_fault(
    thread: &Thread,
    addr: VirtAddr,
    write: bool,
    exec: bool,
    present: bool,
) -> Option<Info> {
    let mstate = if exec {
        Mstate::TextFault
    } else {
        Mstate::DataFault
    };
    thread.sched.life.set_mstate(mstate);
    let access = match (write, exec) {
        (true, _) => Access::Write,
        (_, true) => Access::Execute,
        _ => Access::Read,
    };
    let space = thread.process.space.get();
    let resolved = space.fault(addr, access);
    let resolved = resolved.or_else(|why| reclaim::retry_fault(&space, addr, access, why));
    let (signal, code) = match resolved {
        Ok(()) => return None,
        Err(FaultError::NotMapped) => (Signal::SEGV, code::SEGV_MAPERR),
        Err(FaultError::Forbidden) => (Signal::SEGV, code::SEGV_ACCERR),
        Err(FaultError::Bus | FaultError::NoRoom) => (Signal::BUS, code::BUS_ADRERR),
        // It is ending already.
        Err(FaultError::OutOfMemory) => (Signal::KILL, code::KERNEL),
    };
    let bits = [(present, 1), (write, 2), (exec, 16)];
    let error = bits
        .iter()
        .filter(|(set, _)| *set)
        .fold(FROM_USER, |sum, (_, bit)| sum | bit);
    let origin = Origin::Fault {
        address: addr.0,
        vector: PAGE_FAULT,
        error,
    };
    Some(Info {
        signal,
        code,
        origin,
    })
}
