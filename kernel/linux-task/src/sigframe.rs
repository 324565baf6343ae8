//! The frame that a signal handler finds on its stack, and the way back from it.
//!
//! The layout is that of Linux on x86-64 (`struct rt_sigframe`): return address,
//! `ucontext`, `siginfo`; above it the vector registers as XSAVE writes them, with
//! Linux's marks in the bytes left to software. libc, Go and others read all of it.
//! Everything that comes back from the program is checked: registers are sanitised on
//! the way out, the vector image by `mach`.

use base::VirtAddr;
use mach::task as machine;
use mach::trap::UserRegs;
use mm::Access;
use mm::user;
use sync::{Error, Result};
use task::Thread;
use task::signal::{self, Action, ActionFlags, AltStack, Info, Origin, SignalSet};

use crate::siginfo;

/// Bytes below the stack pointer that a function may use (System V ABI).
const RED_ZONE: u64 = 128;
const FP_XSTATE_MAGIC1: u32 = 0x4650_5853;
const FP_XSTATE_MAGIC2: u32 = 0x4650_5845;
/// Where FXSAVE leaves room for software, and Linux's marks in it.
const SOFTWARE_AT: u64 = 464;
const LEGACY_BYTES: u64 = 512;
/// Bytes of XSAVE's header, which follows.
const HEADER_BYTES: usize = 64;
/// `UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS`.
const UC_FLAGS: u64 = 7;
const UC_FP_XSTATE: u64 = 1;
/// DF, TF and RF are clear in a handler.
const CLEARED_FLAGS: u64 = 0x1_0500;
const SELECTORS: u64 = 0x002b_0000_0000_0033;

const SS_ONSTACK: u64 = 1;
const SS_DISABLE: u64 = 2;
const SS_AUTODISARM: u64 = 1 << 31;

/// Words of the frame: return address, ucontext.
const CONTEXT_WORDS: usize = 39;
const FRAME_BYTES: u64 = CONTEXT_WORDS as u64 * 8 + siginfo::BYTES as u64;

/// Indices of words in the frame.
mod at {
    pub const RESTORER: usize = 0;
    pub const UC_FLAGS: usize = 1;
    pub const STACK_BASE: usize = 3;
    pub const STACK_FLAGS: usize = 4;
    pub const STACK_LEN: usize = 5;
    pub const REGISTERS: usize = 6;
    pub const SELECTORS: usize = 24;
    pub const ERROR: usize = 25;
    pub const TRAP: usize = 26;
    pub const OLD_MASK: usize = 27;
    pub const CR2: usize = 28;
    pub const FP_STATE: usize = 29;
    pub const MASK: usize = 38;
}

type Frame = [u64; CONTEXT_WORDS];

/// The least stack that a handler needs (`AT_MINSIGSTKSZ`).
pub fn stack_bytes_min() -> u64 {
    let state = machine::fpu_area_bytes() as u64 + 4;
    FRAME_BYTES + 8 + 16 + state + 63 + RED_ZONE
}

/// Makes `regs` enter the handler at `address`; the frame lies on the program's stack.
///
/// Errors: `BadAddress` if the stack has no room.
/// tidy: the indices are constants below the frame's length.
pub fn push(
    thread: &Thread,
    regs: &mut UserRegs,
    info: &Info,
    action: &Action,
    address: u64,
    mask_after: SignalSet,
) -> Result<()> {
    if !action.flags.contains(ActionFlags::RESTORER) {
        return Err(Error::BadAddress);
    }
    let alt_stack = *thread.signals.alt_stack.lock();
    let top = stack_top(regs.rsp, &alt_stack, action)?;
    let (state, frame) = places(top);
    if alt_stack.holds(regs.rsp) && !alt_stack.holds(frame) {
        return Err(Error::BadAddress);
    }
    save_state(state)?;
    let mut words: Frame = [0; CONTEXT_WORDS];
    words[at::RESTORER] = action.restorer;
    words[at::UC_FLAGS] = UC_FLAGS;
    words[at::STACK_BASE] = alt_stack.base;
    words[at::STACK_FLAGS] = stack_flags(&alt_stack, regs.rsp);
    words[at::STACK_LEN] = alt_stack.len;
    words[at::REGISTERS..at::SELECTORS].copy_from_slice(&registers(regs));
    words[at::SELECTORS] = SELECTORS;
    if let Origin::Fault {
        address,
        vector,
        error,
    } = info.origin
    {
        words[at::ERROR] = u64::from(error);
        words[at::TRAP] = u64::from(vector);
        words[at::CR2] = address;
    }
    words[at::OLD_MASK] = mask_after.0;
    words[at::FP_STATE] = state;
    words[at::MASK] = mask_after.0;
    user::write(VirtAddr(frame), words)?;
    let info_at = frame + CONTEXT_WORDS as u64 * 8;
    user::copy_out(&siginfo::encode(info), VirtAddr(info_at))?;
    if alt_stack.auto_disarm {
        *thread.signals.alt_stack.lock() = AltStack::default();
    }
    enter(regs, info, address, frame, info_at);
    Ok(())
}

fn stack_top(stack_pointer: u64, alt_stack: &AltStack, action: &Action) -> Result<u64> {
    let switch = action.flags.contains(ActionFlags::ONSTACK)
        && alt_stack.len != 0
        && !alt_stack.holds(stack_pointer);
    let top = if switch {
        alt_stack.base.checked_add(alt_stack.len)
    } else {
        stack_pointer.checked_sub(RED_ZONE)
    };
    top.ok_or(Error::BadAddress)
}

/// Where the vector registers and the frame go below `top`. The frame is where a call
/// instruction would have left the return address: 8 bytes off a multiple of 16.
fn places(top: u64) -> (u64, u64) {
    let state_bytes = machine::fpu_area_bytes() as u64 + 4;
    let state = top.wrapping_sub(state_bytes) & !63;
    let frame = (state.wrapping_sub(FRAME_BYTES) & !15).wrapping_sub(8);
    (state, frame)
}

fn registers(regs: &UserRegs) -> [u64; at::SELECTORS - at::REGISTERS] {
    [
        regs.r8,
        regs.r9,
        regs.r10,
        regs.r11,
        regs.r12,
        regs.r13,
        regs.r14,
        regs.r15,
        regs.rdi,
        regs.rsi,
        regs.rbp,
        regs.rbx,
        regs.rdx,
        regs.rax,
        regs.rcx,
        regs.rsp,
        regs.rip,
        regs.rflags,
    ]
}

fn enter(regs: &mut UserRegs, info: &Info, address: u64, frame: u64, info_at: u64) {
    regs.rdi = u64::from(info.signal.number());
    regs.rsi = info_at;
    regs.rdx = frame + 8;
    regs.rax = 0;
    regs.rip = address;
    regs.rsp = frame;
    regs.rflags &= !CLEARED_FLAGS;
    regs.restore_all();
}

/// Stores the vector registers at `to`, with Linux's marks. The processor itself writes to the
/// program's memory and checks what it reads from there: nothing is copied between.
fn save_state(to: u64) -> Result<()> {
    let bytes = machine::fpu_area_bytes() as u64;
    let extended = bytes > LEGACY_BYTES;
    if extended {
        user::fill(VirtAddr(to + LEGACY_BYTES), 0, HEADER_BYTES)?;
    }
    while let Err(fault) = machine::fpu_save_to_user(VirtAddr(to)) {
        user::resolve(fault.addr, Access::Write)?;
    }
    if extended {
        let marks = [
            (bytes + 4) << 32 | u64::from(FP_XSTATE_MAGIC1),
            machine::fpu_features(),
            bytes,
        ];
        user::write(VirtAddr(to + SOFTWARE_AT), marks)?;
        user::write(VirtAddr(to + bytes), FP_XSTATE_MAGIC2)?;
    }
    Ok(())
}

fn restore_state(from: u64) -> Result<()> {
    if from == 0 {
        machine::fpu_reset();
        return Ok(());
    }
    let extended = is_extended(from)?;
    while let Err(fault) = machine::fpu_load_from_user(VirtAddr(from), extended) {
        user::resolve(fault.addr, Access::Read)?;
    }
    Ok(())
}

/// Whether both marks are there: else only x87 and SSE are, as FXSAVE writes them.
fn is_extended(from: u64) -> Result<bool> {
    let bytes = machine::fpu_area_bytes() as u64;
    if bytes == LEGACY_BYTES {
        return Ok(false);
    }
    let [first, _, len]: [u64; 3] = user::read(VirtAddr(from.wrapping_add(SOFTWARE_AT)))?;
    if first as u32 != FP_XSTATE_MAGIC1 || len as u32 != bytes as u32 {
        return Ok(false);
    }
    let second: u32 = user::read(VirtAddr(from.wrapping_add(bytes)))?;
    Ok(second == FP_XSTATE_MAGIC2)
}

/// Brings back what the frame at the stack pointer says (rt_sigreturn(2)).
///
/// Errors: `BadAddress` or `Invalid` if it is not a frame.
/// tidy: the indices are constants below the frame's length.
pub fn pop(thread: &Thread, regs: &mut UserRegs) -> Result<()> {
    let words: Frame = user::read(VirtAddr(regs.rsp.wrapping_sub(8)))?;
    signal::set_mask(thread, SignalSet(words[at::MASK]));
    let saved = &words[at::REGISTERS..at::SELECTORS];
    restore_registers(regs, saved);
    restore_state(words[at::FP_STATE])?;
    let alt_stack = AltStack {
        base: words[at::STACK_BASE],
        len: words[at::STACK_LEN],
        auto_disarm: words[at::STACK_FLAGS] & SS_AUTODISARM != 0,
    };
    if words[at::STACK_FLAGS] & SS_DISABLE == 0 {
        *thread.signals.alt_stack.lock() = alt_stack;
    }
    Ok(())
}

fn restore_registers(regs: &mut UserRegs, saved: &[u64]) {
    let &[
        r8,
        r9,
        r10,
        r11,
        r12,
        r13,
        r14,
        r15,
        rdi,
        rsi,
        rbp,
        rbx,
        rdx,
        rax,
        rcx,
        rsp,
        rip,
        flags,
    ] = saved
    else {
        return;
    };
    let mut fresh = UserRegs::new(rip, rsp);
    (fresh.r8, fresh.r9, fresh.r10, fresh.r11) = (r8, r9, r10, r11);
    (fresh.r12, fresh.r13, fresh.r14, fresh.r15) = (r12, r13, r14, r15);
    (fresh.rdi, fresh.rsi, fresh.rbp, fresh.rbx) = (rdi, rsi, rbp, rbx);
    (fresh.rdx, fresh.rax, fresh.rcx, fresh.rflags) = (rdx, rax, rcx, flags);
    *regs = fresh;
    regs.sanitise();
    regs.restore_all();
}

/// `ss_flags` as sigaltstack(2) and frames tell them.
pub fn stack_flags(alt_stack: &AltStack, stack_pointer: u64) -> u64 {
    let disarm = if alt_stack.auto_disarm {
        SS_AUTODISARM
    } else {
        0
    };
    let place = match alt_stack {
        AltStack { len: 0, .. } => SS_DISABLE,
        stack if stack.holds(stack_pointer) => SS_ONSTACK,
        _ => 0,
    };
    place | disarm
}

/// The stack that sigaltstack(2) asks for; `None` if its flags make no sense.
pub fn parse_stack(base: u64, flags: u64, len: u64) -> Option<AltStack> {
    let auto_disarm = flags & SS_AUTODISARM != 0;
    match flags & !SS_AUTODISARM {
        SS_DISABLE => Some(AltStack::default()),
        0 | SS_ONSTACK => Some(AltStack {
            base,
            len,
            auto_disarm,
        }),
        _ => None,
    }
}

const _: () = assert!(
    UC_FLAGS & UC_FP_XSTATE != 0,
    "libc looks for the extended state"
);
const _: () = assert!(FRAME_BYTES == 440, "struct rt_sigframe on x86-64");
