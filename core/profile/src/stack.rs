//! Records that hold a stack: samples, waits and wake-ups.
//!
//! Kernel stacks are walked where they are taken. Of a program's stack the registers and
//! the topmost bytes are copied: most programs keep no frame pointers, and how to unwind
//! them stands in their ELF files, which the host has.
//!
//! After the stamp: `pid | tid << 32`; two words of name; `flags | kernel frames << 16 |
//! stack words << 32`; extra; the address space; the user registers if there are any;
//! the kernel's return addresses, innermost first; the words of the stack.

use crate::ring::{Draft, Kind, Ring, STAMP_WORDS, Stamp};

/// Return addresses kept of a kernel stack.
pub const KERNEL_FRAMES_MAX: usize = 64;
/// Words kept of a program's stack.
pub const STACK_WORDS_MAX: usize = 256;
const FIXED_WORDS: usize = 6;
const COUNTS: usize = 3;
const USER_WORDS: usize = 8;
/// Words of the longest such record, without what every record has.
const WORDS_MAX: usize = FIXED_WORDS + USER_WORDS + KERNEL_FRAMES_MAX + STACK_WORDS_MAX;
/// Words of the longest such record.
pub const STACK_RECORD_WORDS_MAX: usize = STAMP_WORDS + WORDS_MAX;

const IDLE: u64 = 1;
const HAS_USER: u64 = 2;

/// Whose stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Who {
    /// The process; 0 for none.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Its name, padded with NUL.
    pub name: [u8; 16],
}

/// The registers that unwinding a program's stack may need.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "the names are the registers'")]
pub struct UserFrame {
    pub rip: u64,
    pub rsp: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
}

impl UserFrame {
    fn words(&self) -> [u64; USER_WORDS] {
        [
            self.rip, self.rsp, self.rbp, self.rbx, self.r12, self.r13, self.r14, self.r15,
        ]
    }

    fn read(words: &[u64; USER_WORDS]) -> Self {
        let [rip, rsp, rbp, rbx, r12, r13, r14, r15] = *words;
        Self {
            rip,
            rsp,
            rbp,
            rbx,
            r12,
            r13,
            r14,
            r15,
        }
    }
}

/// A stack record that is being written: first the kernel's frames, then the stack.
#[derive(Debug)]
pub struct StackDraft<'a> {
    draft: Draft<'a>,
    flags: u64,
    kernel_frames: usize,
    stack_words: usize,
}

impl<'a> StackDraft<'a> {
    /// Begins a record; `None` if the ring is too small for the longest.
    pub fn begin(ring: &Ring<'a>, stamp: Stamp, who: Who) -> Option<Self> {
        let mut draft = ring.begin(stamp, WORDS_MAX)?;
        let (low, high) = who.name.split_at(8);
        draft.push(u64::from(who.pid) | u64::from(who.tid) << 32);
        for half in [low, high] {
            let bytes = half.first_chunk().copied().unwrap_or_default();
            draft.push(u64::from_le_bytes(bytes));
        }
        for _ in COUNTS..FIXED_WORDS {
            draft.push(0);
        }
        Some(Self {
            draft,
            flags: 0,
            kernel_frames: 0,
            stack_words: 0,
        })
    }

    /// The CPU did nothing.
    pub fn set_idle(&mut self) {
        self.flags |= IDLE;
    }

    /// What else the record says: nanoseconds of a wait, the number of a woken thread.
    pub fn set_extra(&mut self, extra: u64) {
        self.draft.set(COUNTS + 1, extra);
    }

    /// Adds the registers of the program, and names its address space; before any frame.
    pub fn set_user(&mut self, space: u64, frame: &UserFrame) {
        if self.flags & HAS_USER == 0 && self.kernel_frames == 0 {
            self.flags |= HAS_USER;
            self.draft.set(COUNTS + 2, space);
            for word in frame.words() {
                self.draft.push(word);
            }
        }
    }

    /// Adds an address in the kernel, innermost first; false if there are enough.
    pub fn push_kernel(&mut self, address: u64) -> bool {
        let fits = self.kernel_frames < KERNEL_FRAMES_MAX && self.draft.push(address);
        self.kernel_frames += usize::from(fits);
        fits
    }

    /// Adds words of the program's stack, from the lowest address up; false if there are
    /// enough.
    #[inline]
    pub fn extend_stack(&mut self, words: impl Iterator<Item = u64>) -> bool {
        let room = STACK_WORDS_MAX - self.stack_words;
        self.stack_words += self.draft.extend(words.take(room));
        self.stack_words < STACK_WORDS_MAX
    }

    /// Publishes the record.
    pub fn finish(mut self) {
        let counts = (self.kernel_frames as u64) << 16 | (self.stack_words as u64) << 32;
        self.draft.set(COUNTS, self.flags | counts);
        self.draft.finish();
    }
}

/// A stack record, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stack<'a> {
    /// Where and when.
    pub stamp: Stamp,
    /// Whose stack.
    pub who: Who,
    /// The CPU did nothing.
    pub is_idle: bool,
    /// Nanoseconds of a wait ([`Kind::Blocked`]), the woken thread ([`Kind::Woken`]).
    pub extra: u64,
    /// The address space, the same number as in [`crate::Mapping`].
    pub space: u64,
    /// The program's registers.
    pub user: Option<UserFrame>,
    /// Addresses in the kernel, innermost first.
    pub kernel: &'a [u64],
    /// The program's stack from its stack pointer up.
    pub stack: &'a [u64],
}

impl<'a> Stack<'a> {
    pub(crate) fn decode(stamp: Stamp, words: &'a [u64]) -> Option<Self> {
        let (fixed, rest) = words.split_first_chunk::<FIXED_WORDS>()?;
        let [ids, name_low, name_high, counts, extra, space] = *fixed;
        let mut name = [0; 16];
        name[..8].copy_from_slice(&name_low.to_le_bytes());
        name[8..].copy_from_slice(&name_high.to_le_bytes());
        let (user, rest) = if counts & HAS_USER != 0 {
            let (user, rest) = rest.split_first_chunk()?;
            (Some(UserFrame::read(user)), rest)
        } else {
            (None, rest)
        };
        let (kernel, rest) = rest.split_at_checked((counts >> 16 & 0xffff) as usize)?;
        let (stack, _) = rest.split_at_checked((counts >> 32) as usize)?;
        let who = Who {
            pid: ids as u32,
            tid: (ids >> 32) as u32,
            name,
        };
        Some(Self {
            stamp,
            who,
            is_idle: counts & IDLE != 0,
            extra,
            space,
            user,
            kernel,
            stack,
        })
    }
}

/// Whether records of this kind hold a stack.
pub(crate) fn has_stack(kind: Kind) -> bool {
    kind != Kind::Mapping
}
