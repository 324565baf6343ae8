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
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::Duration;

/// Becomes its further arguments if its parent is still the process `$0`.
const UNLESS_ORPHANED: &str = r#"[ "$PPID" = "$0" ] && exec "$@""#;
/// What the child is before it is QEMU.
const STAGES: [&str; 2] = ["setpriv", "sh"];
const POLL: Duration = Duration::from_millis(1);

/// A command to start, and where the child goes.
type Order = (Command, Sender<io::Result<Child>>);

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

fn has_setpriv() -> bool {
    static HAS_IT: OnceLock<bool> = OnceLock::new();
    *HAS_IT.get_or_init(|| {
        let mut probe = Command::new("setpriv");
        probe.args(["--pdeathsig", "KILL", "--", "true"]);
        let probe = probe.stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    })
}

/// Starts a command of [`bound_to_us`] and waits until it has become its program.
pub fn start(command: Command) -> io::Result<Child> {
    static STARTER: OnceLock<Sender<Order>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (sender, orders) = mpsc::channel::<Order>();
        thread::spawn(move || {
            for (mut command, answer) in orders {
                // Who asked waits for the answer.
                let _ = answer.send(command.spawn());
            }
        });
        sender
    });
    let (sender, answer) = channel();
    let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
    starter.send((command, sender)).map_err(|_| gone(()))?;
    let mut child = answer.recv().map_err(|_| gone(()))??;
    // One that ends there has not become it, which its owner sees.
    while is_at_a_stage(child.id()) && child.try_wait()?.is_none() {
        thread::sleep(POLL);
    }
    Ok(child)
}

fn is_at_a_stage(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm"))
        .is_ok_and(|name| STAGES.contains(&name.trim_end()))
}
