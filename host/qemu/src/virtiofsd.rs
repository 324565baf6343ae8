//! virtiofsd, which serves a folder of the host by virtiofs where it is installed.
//!
//! QEMU's own 9P server keeps owners that its user cannot set beside the inodes. virtiofsd (virtiofsd(1), the one in Rust)
//! shows the host's inodes as they are, and changes them as far as it may: run by root, all of them.
//! Each folder has a daemon of its own, which reads requests out of the machine's memory.
//!
//! We listen for QEMU and hand the daemon the socket, so QEMU can call as soon as the daemon says that it serves.
//! It ends when QEMU hangs up, so with the machine, however that ends; with us if there is no QEMU yet.
//!
//! It locks itself in: in namespaces whose root is the folder, where it may make them. Run by an ordinary user it is root in a
//! namespace of users, so what is that user's on the host is root's in the machine, and what is made for
//! others there is that user's. Where it may make no namespace it runs as we do.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{getgid, getuid};

use crate::error::Error;
use crate::machine::{FolderServer, Machine, Volume};
use crate::starter;

/// Where distributions have it, which is not always on the search path.
const PROGRAMS: [&str; 3] = [
    "virtiofsd",
    "/usr/libexec/virtiofsd",
    "/usr/lib/qemu/virtiofsd",
];
/// How it locks itself in, the best one first.
const SANDBOXES: [&str; 3] = ["namespace", "chroot", "none"];
/// What it logs when it serves.
const READY: &str = "Waiting for vhost-user socket connection";
/// How long it may take until then.
const PATIENCE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(5);

/// A daemon that serves one folder, and whether it is locked in. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Virtiofsd(Child, bool);

/// The program, if this host has it.
pub fn program() -> Option<&'static Path> {
    // QEMU's own one of before 2023 has other flags.
    let is_it = |program: &&str| {
        let help = Command::new(program).arg("--help").output();
        help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("--shared-dir"))
    };
    PROGRAMS.into_iter().find(is_it).map(Path::new)
}

impl Virtiofsd {
    /// Those that a machine needs, which serve.
    ///
    /// Errors: [`Error::Virtiofsd`].
    pub(crate) fn of_all(machine: &Machine) -> Result<Vec<Self>, Error> {
        let volumes = machine.volumes.iter();
        let own = volumes.filter(|volume| volume.server == FolderServer::Virtiofsd);
        own.map(|volume| {
            Self::of(machine, volume).map_err(|reason| Error::Virtiofsd {
                folder: volume.host.clone(),
                reason,
            })
        })
        .collect()
    }

    /// One that serves. Errors: its last words.
    fn of(machine: &Machine, volume: &Volume) -> Result<Self, String> {
        let program = program().ok_or("it is not installed")?;
        let mut last_words = String::new();
        for sandbox in SANDBOXES {
            let log = machine.state.join(format!("virtiofsd-{}.log", volume.tag));
            let socket = machine.folder_socket(&volume.tag);
            let mut command = starter::bound_to_us(program);
            command.arg("--shared-dir").arg(&volume.host);
            command.args(["--sandbox", sandbox, "--xattr", "--log-level", "info"]);
            command.args(ids(sandbox, getuid().as_raw(), getgid().as_raw()));
            if volume.read_only {
                command.arg("--readonly");
            }
            let started = Self::start(command, &socket, &log);
            let served = started.and_then(|daemon| daemon.wait_until_ready(&log));
            match served {
                Ok(mut daemon) => {
                    daemon.1 = sandbox != "none";
                    return Ok(daemon);
                }
                Err(error) => last_words = words_of(&log).unwrap_or_else(|| error.to_string()),
            }
        }
        Err(last_words)
    }

    fn start(mut command: Command, socket: &Path, log: &Path) -> io::Result<Self> {
        // What a machine of the same name left behind, or the last attempt.
        let _ = fs::remove_file(socket);
        let listener: OwnedFd = UnixListener::bind(socket)?.into();
        command.arg("--fd").arg(listener.as_raw_fd().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(log)?);
        // A Ctrl-C at the terminal is not for it: the program may have files to write before it ends.
        command.process_group(0);
        starter::start(command, Some(listener)).map(|child| Self(child, false))
    }

    /// What the user should know of those that serve.
    pub(crate) fn note(all: &[Self]) -> Option<String> {
        let is_free = all.iter().any(|Self(_, is_locked_in)| !is_locked_in);
        is_free.then(|| "virtiofsd may not lock itself into its folder here: it serves with all rights of who runs the machine.".into())
    }

    fn wait_until_ready(mut self, log: &Path) -> io::Result<Self> {
        let deadline = Instant::now() + PATIENCE;
        while !fs::read_to_string(log).is_ok_and(|words| words.contains(READY)) {
            if let Some(status) = self.0.try_wait()? {
                return Err(io::Error::other(format!("it ended with {status}")));
            }
            if Instant::now() > deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            thread::sleep(POLL);
        }
        Ok(self)
    }
}

impl Drop for Virtiofsd {
    fn drop(&mut self) {
        // It may have ended by itself, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The users of its namespace, where it makes one: root alone, who is the user `uid` of the host.
fn ids(sandbox: &str, uid: u32, gid: u32) -> Vec<String> {
    match sandbox == "namespace" && uid != 0 {
        true => vec![
            format!("--uid-map=:0:{uid}:1:"),
            format!("--gid-map=:0:{gid}:1:"),
        ],
        false => Vec::new(),
    }
}

/// The last line of its log: `[2026-01-31T12:00:00Z ERROR virtiofsd] Error ...`.
fn words_of(log: &Path) -> Option<String> {
    let text = fs::read_to_string(log).ok()?;
    let line = text.lines().rfind(|line| !line.trim().is_empty())?;
    let words = line.rsplit_once("] ").map_or(line, |(_, words)| words);
    Some(words.trim().trim_end_matches('.').to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_of_an_ordinary_user_has_users_of_its_own_where_it_has_a_namespace() {
        let mapped = ["--uid-map=:0:1000:1:", "--gid-map=:0:100:1:"];
        assert_eq!(ids("namespace", 1000, 100), mapped);
        assert!(ids("namespace", 0, 0).is_empty());
        assert!(ids("none", 1000, 100).is_empty());
    }
}
