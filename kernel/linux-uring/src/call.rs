//! Entries that are a system call: run by its handler, on registers made for it.

use linux_abi::Call;
use linux_abi::call::{Entry, Handler, Outcome};
use linux_abi::missing;
use linux_raw_sys::general as sys;
use mach::trap::UserRegs;
use task::Thread;
use uring::Call as Asked;

/// The crates that have them.
const CRATES: [&[&[Entry]]; 3] = [
    linux_files::FAMILIES,
    linux_memory::FAMILIES,
    linux_net::FAMILIES,
];

/// The handler of a call.
///
/// tidy: it runs at compile time only.
const fn handler(number: u32) -> Handler {
    let mut index = 0;
    while index < CRATES.len() {
        let mut family = 0;
        while family < CRATES[index].len() {
            let calls = CRATES[index][family];
            let mut row = 0;
            while row < calls.len() {
                if calls[row].number == number {
                    return calls[row].handler;
                }
                row += 1;
            }
            family += 1;
        }
        index += 1;
    }
    missing::call
}

/// The handler of close(2).
pub const CLOSE: Handler = handler(sys::__NR_close);

fn handler_of(asked: Asked) -> Handler {
    match asked {
        Asked::Openat => const { handler(sys::__NR_openat) },
        Asked::Openat2 => const { handler(sys::__NR_openat2) },
        Asked::Statx => const { handler(sys::__NR_statx) },
        Asked::Fallocate => const { handler(sys::__NR_fallocate) },
        Asked::SyncFileRange => const { handler(sys::__NR_sync_file_range) },
        Asked::Fadvise => const { handler(sys::__NR_fadvise64) },
        Asked::Madvise => const { handler(sys::__NR_madvise) },
        Asked::EpollCtl => const { handler(sys::__NR_epoll_ctl) },
        Asked::Renameat2 => const { handler(sys::__NR_renameat2) },
        Asked::Unlinkat => const { handler(sys::__NR_unlinkat) },
        Asked::Mkdirat => const { handler(sys::__NR_mkdirat) },
        Asked::Symlinkat => const { handler(sys::__NR_symlinkat) },
        Asked::Linkat => const { handler(sys::__NR_linkat) },
        Asked::Socket => const { handler(sys::__NR_socket) },
    }
}

/// Does `act` with a call that has these arguments.
pub fn with_args<R>(thread: &Thread, args: [u64; 6], act: impl FnOnce(Call<'_>) -> R) -> R {
    let mut regs = UserRegs::new(0, 0);
    [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9] = args;
    act(Call {
        thread,
        regs: &mut regs,
    })
}

/// Runs the call.
pub fn run(thread: &Thread, asked: Asked, args: [u64; 6]) -> Outcome {
    with_args(thread, args, handler_of(asked))
}
