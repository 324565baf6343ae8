//! unshare, setns: which part of the system a thread shares with whom.
//!
//! There are namespaces of mounts, of the system's names and of the network. For the others we answer as a Linux
//! that was built without them: EINVAL.

use alloc::sync::Arc;
use alloc::vec::Vec;

use ipc::sysv::semaphores;
use linux_raw_sys::general::*;
use task::namespaces::{self, KINDS, Kind, Namespace};
use task::{Caller, Thread, check_access, process_of};
use vfs::access::{Subject, Who};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;
use linux_abi::errno::Errno;
use linux_abi::missing;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_unshare,
        name: "unshare",
        args: &[Arg::Flags],
        handler: unshare,
    },
    Entry {
        number: __NR_setns,
        name: "setns",
        args: &[Arg::Fd, Arg::Flags],
        handler: setns,
    },
];

type Result<T> = core::result::Result<T, Errno>;

/// All kinds that Linux may have.
const NAMESPACES: u32 = CLONE_NEWNS
    | CLONE_NEWUTS
    | CLONE_NEWIPC
    | CLONE_NEWUSER
    | CLONE_NEWPID
    | CLONE_NEWNET
    | CLONE_NEWCGROUP
    | CLONE_NEWTIME;
/// What only a thread alone can stop to share, as it does not.
const WHOLE_PROCESS: u32 = CLONE_THREAD | CLONE_SIGHAND | CLONE_VM;

/// The namespaces that flags of clone(2) ask for.
///
/// Errors: EPERM for who may not make any, EINVAL for those that we lack.
pub fn check_new(call: &'static str, flags: u64) -> Result<()> {
    let asked = flags & u64::from(NAMESPACES);
    if asked == 0 {
        return Ok(());
    }
    if flags & u64::from(CLONE_NEWNS | CLONE_FS) == u64::from(CLONE_NEWNS | CLONE_FS) {
        return Err(Errno::EINVAL);
    }
    Subject::current(Who::Effective).check_administrator()?;
    let lacking = KINDS
        .iter()
        .fold(asked, |left, kind| left & !(*kind as u64));
    if lacking != 0 {
        missing::count_option(call, lacking);
        return Err(Errno::EINVAL);
    }
    Ok(())
}

fn unshare(call: Call<'_>) -> Outcome {
    let rest = CLONE_FS | CLONE_FILES | CLONE_SYSVSEM;
    let flags = only(call.uint(0), NAMESPACES | WHOLE_PROCESS | rest)?;
    let is_alone = call.thread.process.threads().len() == 1;
    if flags & WHOLE_PROCESS != 0 && !is_alone {
        return Err(Errno::EINVAL);
    }
    check_new("unshare", u64::from(flags & !CLONE_FS))?;
    // What may fail comes first.
    let names = (flags & CLONE_NEWUTS != 0).then(|| call.thread.names.get().copy());
    let names = names.transpose()?;
    let net = (flags & CLONE_NEWNET != 0).then(|| call.thread.net.get().create_another());
    let net = net.transpose()?;
    let files = (flags & CLONE_FILES != 0).then(|| call.thread.files.get().fork());
    let files = files.transpose()?;
    let fs = match flags & (CLONE_NEWNS | CLONE_FS) {
        0 => None,
        CLONE_FS => Some(call.thread.fs.get().fork()),
        _ => Some(call.thread.fs.get().fork_apart()?),
    };
    drop(fs.map(|fs| call.thread.fs.replace(fs)));
    drop(names.map(|names| call.thread.names.replace(names)));
    drop(net.map(|net| call.thread.net.replace(net)));
    drop(files.map(|files| call.thread.files.replace(Arc::new(files))));
    if flags & CLONE_SYSVSEM != 0 && is_alone {
        semaphores::end_process(call.thread.process.id());
    }
    Ok(0)
}

fn setns(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    let wanted = call.uint(1);
    let namespaces = match process_of(&open) {
        Ok(process) => {
            let kinds = kinds_of(wanted)?;
            let thread = process.first_thread().ok_or(Errno::ESRCH)?;
            check_access(&thread, Caller::Real)?;
            let of = |kind| Namespace::of(&thread, kind);
            kinds.into_iter().map(of).collect()
        }
        Err(_) => alloc::vec![named(namespaces::namespace_of(&open)?, wanted)?],
    };
    for namespace in &namespaces {
        check_entry(call.thread, namespace)?;
    }
    for namespace in namespaces {
        enter(call.thread, namespace)?;
    }
    Ok(0)
}

/// The kinds that setns(2) takes from a process.
fn kinds_of(wanted: u32) -> Result<Vec<Kind>> {
    let known = KINDS.iter().fold(0, |all, kind| all | *kind as u32);
    if wanted == 0 || wanted & !known != 0 {
        return Err(Errno::EINVAL);
    }
    let asked = KINDS.iter().filter(|kind| wanted & **kind as u32 != 0);
    Ok(asked.copied().collect())
}

/// A namespace, if it is of the kind that the caller expects.
fn named(namespace: Namespace, wanted: u32) -> Result<Namespace> {
    match wanted == 0 || wanted == namespace.kind() as u32 {
        true => Ok(namespace),
        false => Err(Errno::EINVAL),
    }
}

/// Who enters other mounts changes its root, which no other thread may share.
fn check_entry(thread: &Thread, namespace: &Namespace) -> Result<()> {
    let subject = Subject::current(Who::Effective);
    subject.check_administrator()?;
    if !matches!(namespace, Namespace::Mount(_)) {
        return Ok(());
    }
    subject.check_chroot()?;
    let own = thread.fs.get();
    let shares = |other: &Arc<Thread>| {
        let is_other = !core::ptr::eq(&**other, thread);
        is_other && Arc::ptr_eq(&other.fs.get(), &own)
    };
    match thread.process.threads().iter().any(shares) {
        true => Err(Errno::EINVAL),
        false => Ok(()),
    }
}

fn enter(thread: &Thread, namespace: Namespace) -> Result<()> {
    match namespace {
        Namespace::Mount(mounts) => {
            let entered = thread.fs.get().in_namespace(mounts)?;
            drop(thread.fs.replace(entered));
        }
        Namespace::Uts(names) => drop(thread.names.replace(names)),
        Namespace::Net(stack) => drop(thread.net.replace(stack)),
    }
    Ok(())
}
