//! What is written of each machine, for the commands that come after the one that started it.

use std::collections::BTreeMap;
use std::env;
use std::iter;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::now_s;
use crate::flags::RunFlags;
use crate::processes;

/// What `ps` and `stop` know of a machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// The machine's name.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// QEMU's process.
    pub qemu_pid: u32,
    /// The process that serves the console.
    pub session_pid: u32,
    /// What tells both from others that have their numbers later ([`crate::processes`]).
    #[serde(default)]
    pub qemu_mark: Option<String>,
    /// See [`Settings::qemu_mark`].
    #[serde(default)]
    pub session_mark: Option<String>,
    /// Forwarded ports, as `ip:port->port/protocol`.
    pub ports: Vec<String>,
    /// The network that it is on, and its address there.
    #[serde(default)]
    pub network: Option<String>,
    /// See [`Settings::network`].
    #[serde(default)]
    pub address: Option<Ipv4Addr>,
    /// The other networks that it is on, with its addresses there.
    #[serde(default)]
    pub further_networks: BTreeMap<String, Ipv4Addr>,
    /// The kernel that it runs.
    pub kernel: PathBuf,
    /// The files of the volumes that it uses.
    #[serde(default)]
    pub volumes: Vec<PathBuf>,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Start, in seconds since the epoch.
    pub started_s: u64,
    /// The arguments of its `sietch`, and where that was called.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// See [`Settings::arguments`].
    #[serde(default)]
    pub directory: PathBuf,
    /// Words about it, of `--label` and the image.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Words about it that only `inspect` shows.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    /// The image, if it is of one.
    #[serde(default)]
    pub image: Option<String>,
    /// The image's digest: it may have several names, and its machine's may be another's now.
    #[serde(default)]
    pub image_id: Option<String>,
    /// The signal that asks its program to end, if not SIGTERM.
    #[serde(default)]
    pub stop_signal: Option<u8>,
    /// Seconds after which a program that was asked to end is ended.
    #[serde(default)]
    pub stop_timeout_s: Option<u64>,
    /// How its image wants its program to be asked whether it is well.
    #[serde(default)]
    pub healthcheck: Option<Value>,
    /// How often it was started again.
    #[serde(default)]
    pub restarts: u32,
    /// Whether it has ended and is about to be started again.
    #[serde(default)]
    pub is_restarting: bool,
    /// How it ended, once it has and its session could say it.
    #[serde(default)]
    pub ended: Option<Ended>,
}

/// The end of a machine.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Ended {
    /// The exit status of its `sietch run`.
    pub status: u8,
    /// When, in seconds since the epoch.
    pub at_s: u64,
}

/// How long a program that was asked to end may take if nobody says otherwise, as with docker.
const STOP_PATIENCE_S: u64 = 10;
/// The status of a machine whose session was killed with it, as a shell has it.
pub(crate) const STATUS_KILLED: u8 = 137;

impl Settings {
    /// Whether it runs, or its session has still to say how it ended.
    pub fn is_served(&self) -> bool {
        match (self.is_restarting, self.ended) {
            (true, _) => self.has_session(),
            (false, Some(_)) => false,
            (false, None) => self.has_qemu() || self.has_session(),
        }
    }

    /// Whether both are of one session's machine, which may have been started again in between.
    pub fn is_of_session_of(&self, other: &Self) -> bool {
        (self.session_pid, &self.session_mark) == (other.session_pid, &other.session_mark)
    }

    /// With QEMU's process.
    pub fn with_qemu(self, pid: u32) -> Self {
        Self {
            qemu_pid: pid,
            qemu_mark: processes::mark_of(pid),
            ..self
        }
    }

    /// As one of a machine that this process starts now.
    pub fn of_now(self) -> Self {
        Self {
            qemu_pid: 0,
            qemu_mark: None,
            session_pid: std::process::id(),
            session_mark: processes::mark_of(std::process::id()),
            started_s: now_s(),
            arguments: env::args().skip(1).collect(),
            directory: env::current_dir().unwrap_or_default(),
            is_restarting: false,
            ended: None,
            ..self
        }
    }

    /// `running`, `restarting` or `exited`.
    pub fn state(&self) -> &'static str {
        match (self.is_served(), self.is_restarting) {
            (true, true) => "restarting",
            (true, false) => "running",
            (false, _) => "exited",
        }
    }

    /// Whether the process that keeps it is there.
    pub(super) fn has_session(&self) -> bool {
        processes::is_called(self.session_pid, self.session_mark.as_deref(), "sietch")
    }

    /// Whether QEMU is there.
    pub(super) fn has_qemu(&self) -> bool {
        processes::is_called(self.qemu_pid, self.qemu_mark.as_deref(), "qemu")
    }

    /// How long a program that was asked to end may take.
    pub fn stop_patience(&self, seconds: Option<u64>) -> Duration {
        let seconds = seconds.or(self.stop_timeout_s);
        Duration::from_secs(seconds.unwrap_or(STOP_PATIENCE_S))
    }

    /// How many words at the end of its line are the program's: none if it went on from a snapshot, whose program it has.
    pub fn words_of_program(&self) -> usize {
        let line = iter::once("sietch").chain(self.arguments.iter().map(String::as_str));
        match RunFlags::of_line(line) {
            Ok(flags) => flags.program.command().len(),
            Err(_) => self.command.len(),
        }
    }

    /// The exit status of one that has ended.
    pub fn status(&self) -> u8 {
        self.ended.map_or(STATUS_KILLED, |ended| ended.status)
    }
}
