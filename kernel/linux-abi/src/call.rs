//! One system call under way: its arguments, typed.

use alloc::sync::Arc;

use base::VirtAddr;
use mach::trap::UserRegs;
use sync::Result;
use task::Thread;
use vfs::file::OpenFile;

use crate::errno::Errno;

/// One more than the highest call number of x86-64 that we look at.
pub const LIMIT: usize = 512;

/// What a handler returns: the value for RAX, or why not.
pub type Outcome = core::result::Result<usize, Errno>;

/// How `--strace` prints an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arg {
    /// A descriptor.
    Fd,
    /// A directory's descriptor or AT_FDCWD.
    DirFd,
    /// A signed number.
    Int,
    /// A size or count.
    Size,
    /// Flags, in hexadecimal.
    Flags,
    /// A mode, in octal.
    Mode,
    /// An address of the program.
    Address,
    /// The address of a string that ends with 0.
    Path,
    /// The address of bytes to be written; the next argument is their number.
    Buffer,
    /// A signal's number.
    Signal,
}

/// One row of the call table.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The call's number on x86-64.
    pub number: u32,
    /// Its name.
    pub name: &'static str,
    /// Its arguments, for people.
    pub args: &'static [Arg],
    /// What it does.
    pub handler: Handler,
}

/// What runs a call. It is passed in two registers.
pub type Handler = fn(Call<'_>) -> Outcome;

/// One system call of the current thread.
pub struct Call<'a> {
    /// Who calls.
    pub thread: &'a Thread,
    /// The program's registers: arguments in, and for a few calls (fork, exec,
    /// sigreturn) the whole state.
    pub regs: &'a mut UserRegs,
}

impl Call<'_> {
    /// Argument `index` (0 to 5) as it is; 0 beyond.
    pub fn arg(&self, index: usize) -> u64 {
        match index {
            0 => self.regs.rdi,
            1 => self.regs.rsi,
            2 => self.regs.rdx,
            3 => self.regs.r10,
            4 => self.regs.r8,
            5 => self.regs.r9,
            _ => 0,
        }
    }

    /// As C's `int`: the upper half of the register is ignored.
    pub fn int(&self, index: usize) -> i32 {
        self.arg(index) as i32
    }

    /// As C's `unsigned int`.
    pub fn uint(&self, index: usize) -> u32 {
        self.arg(index) as u32
    }

    /// As `size_t`.
    pub fn size(&self, index: usize) -> usize {
        self.arg(index) as usize
    }

    /// As an address of the program.
    pub fn addr(&self, index: usize) -> VirtAddr {
        VirtAddr(self.arg(index))
    }

    /// The address, or `None` for a null pointer.
    pub fn optional_addr(&self, index: usize) -> Option<VirtAddr> {
        Some(self.addr(index)).filter(|address| address.0 != 0)
    }

    /// The open file that the descriptor in argument `index` stands for, unless it only names a
    /// place (O_PATH).
    pub fn file(&self, index: usize) -> Result<Arc<OpenFile>> {
        self.thread.files.with(|files| files.get(self.uint(index)))
    }

    /// The same for calls that need no more than a place.
    pub fn open_file(&self, index: usize) -> Result<Arc<OpenFile>> {
        self.thread
            .files
            .with(|files| files.get_any(self.uint(index)))
    }
}
