//! What is kept of the moment: the kernel's stack, the program's registers and stack.
//!
//! Every function of the kernel keeps a frame pointer (`.cargo/config.toml`), so a kernel stack
//! is a chain of pairs (caller's frame, return address) that grows towards the stack's top.
//! Each link is checked to lie between the last one and the top before it is followed.
//!
//! Invariant **Stacks**: what lies between a stack pointer in use and the top of its kernel stack
//! is mapped as long as it is used (`mem::stack`).
//!
//! A program's registers lie at the top of its thread's kernel stack (`arch`, **Stack**), if
//! the kernel was entered from it.

use arch::KernelFrame;
use profile::{StackDraft, UserFrame};

use crate::mem;

const WORD_BYTES: u64 = 8;
const FRAME_BYTES: u64 = size_of::<KernelFrame>() as u64;
const RING: u64 = 3;
/// Bits of CR3 that name the page table.
const ROOT: u64 = 0x000f_ffff_ffff_f000;

/// A number for the loaded address space.
pub(super) fn space() -> u64 {
    arch::instr::read_cr3() & ROOT
}

/// Whether a record says more than what the kernel did.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    /// The program from which the kernel was entered belongs to it.
    Included,
    /// It does not.
    Omitted,
}

/// What the trap with this frame interrupted.
pub(super) fn interrupted(draft: &mut StackDraft<'_>, frame: &KernelFrame) {
    if frame.cs & RING == 0 {
        return kernel(
            draft,
            Some(frame.rip),
            frame.rbp,
            frame.rsp,
            Program::Included,
        );
    }
    let user = user_frame(frame);
    draft.set_user(space(), &user);
    copy_stack(draft, &user);
}

/// Whose an address is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The kernel's.
    Kernel,
    /// The program's.
    User,
}

/// Where the trap with this frame interrupted the kernel, and its callers; then the same of the
/// program. Ends when `push` wants no more.
pub(super) fn addresses(frame: &KernelFrame, push: &mut impl FnMut(Side, u64) -> bool) {
    if frame.cs & RING != 0 {
        return walk_program(&user_frame(frame), push);
    }
    push(Side::Kernel, frame.rip);
    let Some(top) = mem::stack_top(frame.rsp) else {
        return;
    };
    let mut push_kernel = |address| push(Side::Kernel, address);
    walk(frame.rbp, frame.rsp, top, &mut push_kernel);
    if let Some(user) = entered_from(frame.rsp, top) {
        walk_program(&user, push);
    }
}

/// Follows the program's frame pointers, as far as it keeps any. It may have made any chain of
/// them: each link must lead up, and `push` ends it.
fn walk_program(user: &UserFrame, push: &mut impl FnMut(Side, u64) -> bool) {
    let mut wants_more = push(Side::User, user.rip);
    let (mut frame, mut lowest) = (user.rbp, user.rsp);
    while wants_more && frame >= lowest && frame.is_multiple_of(WORD_BYTES) {
        let mut words = mem::peek(space(), frame).flat_map(|page| page.words());
        let (Some(next), Some(return_to @ 1..)) = (words.next(), words.next()) else {
            return;
        };
        wants_more = push(Side::User, return_to);
        lowest = frame + WORD_BYTES;
        frame = next;
    }
}

/// The caller's own stack.
#[inline(always)]
pub(super) fn here(draft: &mut StackDraft<'_>, program: Program) {
    let frame = arch::instr::frame_pointer();
    kernel(draft, None, frame, frame, program);
}

/// A kernel stack that is used down to `rsp`, and the program on top of it.
fn kernel(draft: &mut StackDraft<'_>, rip: Option<u64>, rbp: u64, rsp: u64, program: Program) {
    let top = mem::stack_top(rsp);
    let user = top
        .filter(|_| program == Program::Included)
        .and_then(|top| entered_from(rsp, top));
    if let Some(user) = &user {
        draft.set_user(space(), user);
    }
    if let Some(rip) = rip {
        draft.push_kernel(rip);
    }
    if let Some(top) = top {
        walk(rbp, rsp, top, &mut |address| draft.push_kernel(address));
    }
    if let Some(user) = &user {
        copy_stack(draft, user);
    }
}

/// Follows frame pointers from `frame` up to `top`, as long as `push` wants to hear of them.
fn walk(mut frame: u64, bottom: u64, top: u64, push: &mut impl FnMut(u64) -> bool) {
    let mut lowest = bottom;
    while frame >= lowest && frame <= top - 2 * WORD_BYTES && frame.is_multiple_of(WORD_BYTES) {
        // SAFETY: **Stacks**: `[bottom, top)` is the used part of a stack, which is mapped.
        let [next, return_to] = unsafe { (frame as *const [u64; 2]).read_volatile() };
        if return_to < arch::layout::IMAGE_OFFSET || !push(return_to) {
            return;
        }
        lowest = frame + WORD_BYTES;
        frame = next;
    }
}

/// The registers of the program that entered the kernel on this stack, if one did and the
/// entry code has stored them all.
fn entered_from(rsp: u64, top: u64) -> Option<UserFrame> {
    let at = top - FRAME_BYTES;
    if rsp > at {
        return None;
    }
    // SAFETY: **Stacks**: as in `walk`; any bits are a frame.
    let frame = unsafe { (at as *const KernelFrame).read_volatile() };
    let is_program =
        frame.cs == u64::from(arch::regs::USER_CODE) && frame.rip >> arch::layout::USER_BITS == 0;
    is_program.then(|| user_frame(&frame))
}

fn user_frame(frame: &KernelFrame) -> UserFrame {
    UserFrame {
        rip: frame.rip,
        rsp: frame.rsp,
        rbp: frame.rbp,
        rbx: frame.rbx,
        r12: frame.r12,
        r13: frame.r13,
        r14: frame.r14,
        r15: frame.r15,
    }
}

/// Copies the top of the program's stack, as far as its pages are there.
fn copy_stack(draft: &mut StackDraft<'_>, user: &UserFrame) {
    let pages = mem::peek(space(), user.rsp & !(WORD_BYTES - 1));
    for page in pages {
        if !draft.extend_stack(page.words()) {
            return;
        }
    }
}
