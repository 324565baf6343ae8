//! What is kept of each machine: a folder with its settings, its console's text, its
//! kernel's log and its control socket.
//!
//! The folder outlives the machine so that `logs` works afterwards; the next machine
//! of the same name takes it over. A machine runs while the process in its settings
//! is there.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

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
    /// Forwarded ports, as `ip:port->port/protocol`.
    pub ports: Vec<String>,
    /// The kernel that it runs.
    pub kernel: PathBuf,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Start, in seconds since the epoch.
    pub started_s: u64,
}

/// The folder of one machine.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// The folder of the machine `name`, which need not exist.
    pub fn of(name: &str) -> Self {
        Self(base().join(name))
    }

    /// Takes a fresh folder for a machine called `name`, or for one called after
    /// `program` with a number if need be.
    pub fn take(name: Option<&str>, program: &str) -> Result<(String, Self), Failure> {
        let name = match name {
            Some(name) => name.to_string(),
            None => free_name(program),
        };
        let folder = Self::of(&name);
        if folder.running().is_some() {
            return Err(Failure::NameTaken { name });
        }
        // What a machine of this name left behind is replaced.
        let _ = fs::remove_dir_all(&folder.0);
        fs::create_dir_all(&folder.0).map_err(Failure::file(&folder.0))?;
        Ok((name, folder))
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What the program wrote, and the session's last words.
    pub fn console_log(&self) -> PathBuf {
        self.0.join("console.log")
    }

    /// Where the settings are.
    fn settings_file(&self) -> PathBuf {
        self.0.join("settings.json")
    }

    /// The machine's settings, if there was one.
    pub fn settings(&self) -> Option<Settings> {
        serde_json::from_slice(&fs::read(self.settings_file()).ok()?).ok()
    }

    /// The machine's settings while it runs.
    pub fn running(&self) -> Option<Settings> {
        self.settings()
            .filter(|settings| is_qemu(settings.qemu_pid))
    }

    /// Writes the settings; from now on the machine is listed.
    pub fn write_settings(&self, settings: &Settings) -> Result<(), Failure> {
        let text = serde_json::to_vec_pretty(settings).unwrap_or_default();
        let path = self.settings_file();
        // Renamed into place, so that a reader never sees half of it.
        let draft = self.0.join("settings.json.new");
        fs::write(&draft, text)
            .and_then(|()| fs::rename(&draft, &path))
            .map_err(Failure::file(path))
    }
}

/// The machines that run, by name.
pub fn running() -> Vec<Settings> {
    let listing = fs::read_dir(base()).into_iter().flatten().flatten();
    let mut running: Vec<_> = listing
        .filter_map(|entry| Folder(entry.path()).running())
        .collect();
    running.sort_by(|a, b| a.name.cmp(&b.name));
    running
}

/// Seconds since the epoch.
pub fn now_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

/// The user's folder for machines, readable by nobody else where we make it.
fn base() -> PathBuf {
    match env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => PathBuf::from(folder).join("sietch"),
        None => env::temp_dir().join(format!("sietch-{}", rustix::process::getuid().as_raw())),
    }
}

fn free_name(program: &str) -> String {
    let numbered = (2..).map(|number| format!("{program}-{number}"));
    let mut names = std::iter::once(program.to_string()).chain(numbered);
    names
        .find(|name| Folder::of(name).running().is_none())
        .unwrap_or_else(|| program.into())
}

/// Whether the process is there and still the QEMU that we started: numbers are reused.
fn is_qemu(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("qemu"))
}
