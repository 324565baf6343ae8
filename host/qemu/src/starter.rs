//! Starts QEMU so that it ends with us, whatever ends us.
//!
//! A command that is killed by SIGKILL cannot stop its machine any more, so the host's
//! kernel must: `prctl(PR_SET_PDEATHSIG)` in the child, which setpriv(1) of util-linux
//! calls before it becomes QEMU. The signal comes when the *thread* ends that made the
//! child, not the process. So one thread, which lives as long as the process, makes them
//! all. If we were killed before the call, no signal would come: the child looks who its
//! parent is after it.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};

/// Becomes its further arguments if its parent is still the process `$0`.
const UNLESS_ORPHANED: &str = r#"[ "$PPID" = "$0" ] && exec "$@""#;
/// What the child is before it is QEMU.
const STAGES: [&str; 2] = ["setpriv", "sh"];
const POLL: Duration = Duration::from_millis(1);

/// A command to start, a file that only it inherits, and where the child goes.
type Order = (Command, Option<OwnedFd>, Sender<io::Result<Child>>);

/// A command that becomes `program`, which the host's kernel kills when this process ends.
/// Where setpriv(1) is missing or cannot do that, the program itself.
pub fn bound_to_us(program: &std::path::Path) -> Command {
    if !has_setpriv() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", "sh", "-c", UNLESS_ORPHANED]);
    command.arg(std::process::id().to_string()).arg(program);
    command
}

/// Asks setpriv(1) what it can do while something else is done: it is needed soon.
pub fn look_ahead() {
    thread::spawn(has_setpriv);
}

fn has_setpriv() -> bool {
    static HAS_IT: OnceLock<bool> = OnceLock::new();
    *HAS_IT.get_or_init(|| {
        let mut probe = Command::new("setpriv");
        probe.args(["--pdeathsig", "KILL", "--", "true"]);
        let probe = probe.stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    })
}

/// Starts a command of [`bound_to_us`], which inherits `file` and no one else does, and waits until it has become its program.
pub fn start(command: Command, file: Option<OwnedFd>) -> io::Result<Child> {
    static STARTER: OnceLock<Sender<Order>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (sender, orders) = mpsc::channel::<Order>();
        thread::spawn(move || {
            for (mut command, file, answer) in orders {
                // Who asked waits for the answer.
                let _ = answer.send(spawn(&mut command, file));
            }
        });
        sender
    });
    let (sender, answer) = channel();
    let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
    starter
        .send((command, file, sender))
        .map_err(|_| gone(()))?;
    let mut child = answer.recv().map_err(|_| gone(()))??;
    // One that ends there has not become it, which its owner sees.
    while is_at_a_stage(child.id()) && child.try_wait()?.is_none() {
        thread::sleep(POLL);
    }
    Ok(child)
}

/// One thread starts all, so that no other child has the file.
fn spawn(command: &mut Command, file: Option<OwnedFd>) -> io::Result<Child> {
    if let Some(file) = &file {
        fcntl_setfd(file, FdFlags::empty())?;
    }
    command.spawn()
}

fn is_at_a_stage(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm"))
        .is_ok_and(|name| STAGES.contains(&name.trim_end()))
}
