//! A tracee's registers: `struct user_regs_struct`, the area of `struct user`, sets of
//! registers by their note types (asm/user_64.h, linux/elf.h).

use alloc::vec;

use base::VirtAddr;
use linux_raw_sys::elf_uapi::{NT_PRFPREG, NT_PRSTATUS, NT_X86_XSTATE};
use mm::user;
use task::ptrace::{self, Ask, Stopped, Tracee};

use linux_abi::errno::Errno;

/// Words of `struct user_regs_struct`.
const WORDS: usize = 27;
type Words = [u64; WORDS];
/// Bytes of `struct user`, which starts with the registers.
const USER_BYTES: u64 = 912;
/// What FXSAVE writes.
const LEGACY_BYTES: usize = 512;

const CODE_SELECTOR: u64 = 0x33;
const DATA_SELECTOR: u64 = 0x2b;

/// r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss
/// fs_base gs_base ds es fs gs.
fn encode(stopped: &Stopped) -> Words {
    let r = &stopped.regs;
    [
        r.r15,
        r.r14,
        r.r13,
        r.r12,
        r.rbp,
        r.rbx,
        r.r11,
        r.r10,
        r.r9,
        r.r8,
        r.rax,
        r.rcx,
        r.rdx,
        r.rsi,
        r.rdi,
        r.orig_rax,
        r.rip,
        CODE_SELECTOR,
        r.rflags,
        r.rsp,
        DATA_SELECTOR,
        stopped.fs_base,
        stopped.gs_base,
        0,
        0,
        0,
        0,
    ]
}

/// The same back. Selectors stay what they are: there is one kind of program. What else is no
/// program's is made harmless on the way out.
///
/// Errors: EIO for a segment base that is no address of a program.
fn decode(stopped: &mut Stopped, words: &Words) -> Result<(), Errno> {
    let [
        r15,
        r14,
        r13,
        r12,
        rbp,
        rbx,
        r11,
        r10,
        r9,
        r8,
        rax,
        rcx,
        rdx,
        rsi,
        rdi,
        orig_rax,
        rip,
        _,
        rflags,
        rsp,
        _,
        fs_base,
        gs_base,
        ..,
    ] = *words;
    if fs_base.max(gs_base) >> USER_BITS != 0 {
        return Err(Errno::EIO);
    }
    (stopped.fs_base, stopped.gs_base) = (fs_base, gs_base);
    let r = &mut stopped.regs;
    (r.r15, r.r14, r.r13, r.r12, r.rbp, r.rbx) = (r15, r14, r13, r12, rbp, rbx);
    (r.r11, r.r10, r.r9, r.r8, r.rax, r.rcx) = (r11, r10, r9, r8, rax, rcx);
    (r.rdx, r.rsi, r.rdi, r.orig_rax, r.rip) = (rdx, rsi, rdi, orig_rax, rip);
    (r.rflags, r.rsp) = (rflags, rsp);
    Ok(())
}

/// Bits of a program's addresses.
const USER_BITS: u32 = 47;

/// All of them.
pub fn get(tracee: &Tracee) -> Result<Words, Errno> {
    Ok(tracee.with_stopped(|stopped| encode(stopped))?)
}

/// Changes all of them.
pub fn set(tracee: &Tracee, words: &Words) -> Result<(), Errno> {
    tracee.with_stopped(|stopped| decode(stopped, words))?
}

/// The index of the word at `offset` of `struct user`; `None` for one behind the registers.
fn index(offset: u64) -> Result<Option<usize>, Errno> {
    if !offset.is_multiple_of(8) || offset >= USER_BYTES {
        return Err(Errno::EIO);
    }
    Ok(Some(offset as usize / 8).filter(|&index| index < WORDS))
}

/// One word of `struct user`.
pub fn peek(tracee: &Tracee, offset: u64) -> Result<u64, Errno> {
    let index = index(offset)?;
    let words = get(tracee)?;
    Ok(index
        .and_then(|index| words.get(index).copied())
        .unwrap_or(0))
}

/// Changes one word of `struct user`.
///
/// Errors: EIO for one that cannot be changed.
pub fn poke(tracee: &Tracee, offset: u64, value: u64) -> Result<(), Errno> {
    let index = index(offset)?;
    let mut words = get(tracee)?;
    match index.and_then(|index| words.get_mut(index)) {
        Some(word) => *word = value,
        // No debug register is in use, and none can be.
        None if value == 0 => return Ok(()),
        None => return Err(Errno::EIO),
    }
    set(tracee, &words)
}

/// x87 and SSE registers, as FXSAVE writes them.
pub fn get_vectors(tracee: &Tracee, to: VirtAddr) -> Result<(), Errno> {
    let image = read_vectors(tracee)?;
    let legacy = image.get(..LEGACY_BYTES).ok_or(Errno::EIO)?;
    Ok(user::copy_out(legacy, to)?)
}

/// Changes them.
pub fn set_vectors(tracee: &Tracee, from: VirtAddr) -> Result<(), Errno> {
    let mut image = vec![0; LEGACY_BYTES];
    user::copy_in(from, &mut image)?;
    ptrace::ask_vectors(tracee, Ask::Write(image))?;
    Ok(())
}

fn read_vectors(tracee: &Tracee) -> Result<ptrace::Vectors, Errno> {
    let image = vec![0; mach::task::fpu_area_bytes()];
    Ok(ptrace::ask_vectors(tracee, Ask::Read(image))?)
}

/// `struct iovec`.
fn piece(at: VirtAddr) -> Result<(VirtAddr, usize), Errno> {
    let [base, len]: [u64; 2] = user::read(at)?;
    Ok((VirtAddr(base), len as usize))
}

/// A set of registers: as much as fits; the length says how much that was.
pub fn get_set(tracee: &Tracee, kind: u64, at: VirtAddr) -> Result<(), Errno> {
    let (to, len) = piece(at)?;
    let done = match kind as u32 {
        NT_PRSTATUS => put(get(tracee)?.map(u64::to_le_bytes).as_flattened(), to, len)?,
        NT_PRFPREG => put(
            read_vectors(tracee)?.get(..LEGACY_BYTES).unwrap_or(&[]),
            to,
            len,
        )?,
        NT_X86_XSTATE => put(&read_vectors(tracee)?, to, len)?,
        _ => return Err(Errno::EINVAL),
    };
    Ok(user::write(at + 8, done as u64)?)
}

fn put(bytes: &[u8], to: VirtAddr, len: usize) -> Result<usize, Errno> {
    let shown = bytes.get(..len).unwrap_or(bytes);
    user::copy_out(shown, to)?;
    Ok(shown.len())
}

/// Changes a set of registers; of the general ones as many as there are words.
pub fn set_set(tracee: &Tracee, kind: u64, at: VirtAddr) -> Result<(), Errno> {
    let (from, len) = piece(at)?;
    let done = match kind as u32 {
        NT_PRSTATUS => {
            let mut words = get(tracee)?;
            let given = words.len().min(len / 8);
            for (index, word) in words.iter_mut().take(given).enumerate() {
                *word = user::read(from + index as u64 * 8)?;
            }
            set(tracee, &words)?;
            given * 8
        }
        NT_PRFPREG if len >= LEGACY_BYTES => {
            set_vectors(tracee, from)?;
            LEGACY_BYTES
        }
        NT_X86_XSTATE if len >= mach::task::fpu_area_bytes() => {
            let mut image = vec![0; mach::task::fpu_area_bytes()];
            user::copy_in(from, &mut image)?;
            ptrace::ask_vectors(tracee, Ask::Write(image))?;
            mach::task::fpu_area_bytes()
        }
        NT_PRFPREG | NT_X86_XSTATE => return Err(Errno::EFAULT),
        _ => return Err(Errno::EINVAL),
    };
    Ok(user::write(at + 8, done as u64)?)
}
