//! What is kept of each machine: a folder with its settings, its console's text, its
//! kernel's log and its control socket.
//!
//! The folder outlives the machine so that `logs` works afterwards; the next machine
//! of the same name takes it over. A machine runs while the process in its settings
//! is there.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, DirBuilder, Permissions};
use std::iter;
use std::net::Ipv4Addr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use qemu::Machine;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Failure;
use crate::flags::RunFlags;
use crate::stdio::StdFile;
use crate::wish::{self, Wish};
use crate::{leftovers, processes};

/// How long a session may take to end with its machine.
const SESSION_PATIENCE: Duration = Duration::from_secs(10);
/// How long the start of a machine may take that another command has begun.
const START_PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
/// The file with the number of the process that starts a machine.
const OWNER: &str = "owner";

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
    fn has_session(&self) -> bool {
        processes::is_called(self.session_pid, self.session_mark.as_deref(), "sietch")
    }

    /// Whether QEMU is there.
    fn has_qemu(&self) -> bool {
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

/// Kills a machine that runs.
pub fn kill(settings: &Settings) {
    let pid = i32::try_from(settings.qemu_pid)
        .ok()
        .and_then(Pid::from_raw);
    if let Some(pid) = pid.filter(|_| settings.has_qemu()) {
        // It may end by itself right now, which is as good.
        let _ = kill_process(pid, Signal::KILL);
    }
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
        if let Some(name) = name {
            let folder = Self::try_take(name)?;
            let name = name.to_string();
            return match folder {
                Some(folder) => Ok((name, folder)),
                None => Err(Failure::NameTaken { name }),
            };
        }
        let (mut name, mut number) = (program.to_string(), 2);
        loop {
            if let Some(folder) = Self::try_take(&name)? {
                return Ok((name, folder));
            }
            name = format!("{program}-{number}");
            number += 1;
        }
    }

    /// Takes the folder of `name` unless it is in use.
    fn try_take(name: &str) -> Result<Option<Self>, Failure> {
        let folder = Self::of(name);
        let is_free = !folder.is_in_use() && !folder.is_of_data();
        let is_ours = is_free && folder.make_fresh()?;
        Ok(is_ours.then_some(folder))
    }

    /// Whether a machine runs here, or somebody is starting one.
    fn is_in_use(&self) -> bool {
        match self.settings() {
            Some(settings) => {
                settings.has_qemu() || settings.is_restarting && settings.has_session()
            }
            None => self.owner().is_some_and(|own| processes::is_there(&own)),
        }
    }

    /// The process that starts a machine here ([`processes::told`]).
    pub fn owner(&self) -> Option<String> {
        fs::read_to_string(self.0.join(OWNER)).ok()
    }

    /// Makes this process the owner in the place of the one that started it, which may be killed at any moment.
    ///
    /// Errors: `NameTaken` if somebody took the folder meanwhile.
    pub fn take_over(&self, name: &str, from: &str) -> Result<(), Failure> {
        if self.owner().as_deref() != Some(from) {
            return Err(Failure::NameTaken { name: name.into() });
        }
        let (draft, path) = (self.0.join("owner.new"), self.0.join(OWNER));
        fs::write(&draft, processes::told(std::process::id()))
            .and_then(|()| fs::rename(&draft, &path))
            .map_err(Failure::file(path))
    }

    /// Waits until a start that is under way has come to something: one whose command was killed goes on by itself in the background,
    /// and is not listed yet. Not for ever, as it may ask a registry.
    pub fn wait_for_start(&self) {
        let deadline = Instant::now() + START_PATIENCE;
        let is_starting = || self.settings().is_none() && self.is_in_use();
        while is_starting() && Instant::now() < deadline {
            thread::sleep(POLL);
        }
    }

    /// Whether it is of nobody: no machine is known that was here, and nobody starts one. A folder without an owner is none of a
    /// machine: what lasts may be kept beside them.
    pub fn is_abandoned(&self) -> bool {
        self.owner().is_some() && self.settings().is_none() && !self.is_in_use()
    }

    /// Whether what lasts is kept there: a user may have one folder for both.
    fn is_of_data(&self) -> bool {
        let name = self.0.file_name().and_then(|name| name.to_str());
        let data = name.and_then(|name| data_folder(name).ok());
        self.0.exists() && self.owner().is_none() && data.as_ref() == Some(&self.0)
    }

    /// Replaces what a machine of this name left behind; false if somebody else was
    /// faster. The folder appears with its owner's number in it, by one rename.
    fn make_fresh(&self) -> Result<bool, Failure> {
        // It may not be there, or go just now by another one's hand.
        let _ = leftovers::remove(&self.0);
        let draft = leftovers::draft_of(&self.0);
        fs::create_dir_all(&draft)
            .and_then(|()| fs::write(draft.join(OWNER), processes::told(std::process::id())))
            .map_err(Failure::file(&draft))?;
        let is_ours = fs::rename(&draft, &self.0).is_ok();
        if !is_ours {
            let _ = fs::remove_dir_all(&draft);
        }
        Ok(is_ours)
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
        let text = fs::read(self.settings_file()).ok()?;
        let settings: Settings = serde_json::from_slice(&text).ok()?;
        // A `rename` that was killed has changed the folder's name only.
        let name = self.0.file_name()?.to_str()?.to_string();
        Some(Settings { name, ..settings })
    }

    /// The machine's settings while it runs.
    pub fn running(&self) -> Option<Settings> {
        self.settings().filter(Settings::has_qemu)
    }

    /// The machine of this process has ended with that status, and is about to be started again or not. One write says
    /// both: whoever reads the first alone would take the folder for a machine of their own.
    pub fn note_end(&self, status: u8, is_restarting: bool) -> Result<(), Failure> {
        let at_s = now_s();
        let ended = Some(Ended { status, at_s });
        self.change_own(|settings| Settings {
            ended,
            is_restarting,
            ..settings
        })
    }

    /// The machine of this process, which has ended, is not to be started again after all.
    pub fn note_no_restart(&self) -> Result<(), Failure> {
        self.change_own(|settings| Settings {
            is_restarting: false,
            ..settings
        })
    }

    /// Changes the settings of this process' machine; the next one of that name may have the folder already.
    pub(crate) fn change_own(
        &self,
        change: impl FnOnce(Settings) -> Settings,
    ) -> Result<(), Failure> {
        if self.own_settings().is_none() {
            return Ok(());
        }
        let _lock = self.lock()?;
        match self.own_settings() {
            Some(settings) => self.write_settings(&change(settings)),
            None => Ok(()),
        }
    }

    /// Keeps others that change settings from doing so meanwhile.
    pub fn lock(&self) -> Result<fs::File, Failure> {
        let folder = fs::File::open(&self.0).map_err(Failure::file(&self.0))?;
        flock(&folder, FlockOperation::LockExclusive)
            .map_err(|error| Failure::file(&self.0)(error.into()))?;
        Ok(folder)
    }

    /// Whether the next machine of that name has it, and not that of this process any more.
    pub fn is_of_another(&self) -> bool {
        self.own_settings().is_none() && self.0.exists()
    }

    /// The machine's settings, if this process keeps it.
    pub fn own_settings(&self) -> Option<Settings> {
        let settings = self.settings();
        settings.filter(|settings| settings.session_pid == std::process::id())
    }

    /// Somebody wants the machine to end, and not to be started again.
    pub fn note_wish_to_stop(&self) -> Result<Wish, Failure> {
        Wish::note(&self.0)
    }

    /// Whether somebody does, as to the machine of this process, or has removed it already, or has its folder.
    pub fn is_wished_to_stop(&self) -> bool {
        wish::is_there(&self.0) || self.own_settings().is_none()
    }

    /// Waits until the session of a machine that has ended, or is about to, has said how; not for ever, as it may have
    /// output that nobody reads.
    pub fn wait_for_session(&self) {
        self.wait_while_served(|_| ());
    }

    /// Kills the machine, also one that is started again just now, and waits for its session in the same way.
    pub fn kill_and_wait_for_session(&self) {
        self.wait_while_served(kill);
    }

    fn wait_while_served(&self, act: impl Fn(&Settings)) {
        let deadline = Instant::now() + SESSION_PATIENCE;
        let served = || self.settings().filter(Settings::is_served);
        while let Some(settings) = served().filter(|_| Instant::now() < deadline) {
            act(&settings);
            thread::sleep(POLL);
        }
    }

    /// Removes all that is kept of a machine that has ended, unless its session has done that meanwhile (`--rm`).
    pub fn remove(&self) -> Result<(), Failure> {
        match leftovers::remove(&self.0) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(Failure::file(&self.0)),
        }
    }

    /// Gives it another name, which nobody has.
    pub fn rename(&self, name: &str) -> Result<(), Failure> {
        fs::rename(&self.0, base().join(name)).map_err(Failure::file(&self.0))
    }

    /// Keeps how the machine was started, for [`Folder::plan`].
    pub fn write_plan(&self, machine: &Machine, files: [StdFile; 3]) -> Result<(), Failure> {
        let path = self.plan_file();
        let text = serde_json::to_vec_pretty(&(machine, files)).unwrap_or_default();
        fs::write(&path, text).map_err(Failure::file(path))
    }

    /// How the machine was started, and what its program has at descriptors 0, 1 and 2; `None` if it has a serial port only.
    pub fn plan(&self) -> Option<(Machine, [StdFile; 3])> {
        serde_json::from_slice(&fs::read(self.plan_file()).ok()?).ok()
    }

    fn plan_file(&self) -> PathBuf {
        self.0.join("machine.json")
    }

    /// Writes the settings of a machine that this process has just started; from now on it is listed. If it was started again,
    /// the line of its next start stays, which others may have changed while this process read its own.
    pub fn write_started(&self, settings: Settings) -> Result<(), Failure> {
        let _lock = self.lock()?;
        let line = self.own_settings().map(|settings| settings.arguments);
        self.write_settings(&Settings {
            arguments: line.unwrap_or(settings.arguments),
            ..settings
        })
    }

    /// Writes the settings, of which the caller has the lock.
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
    let mut machines = all();
    machines.retain(Settings::is_served);
    machines
}

/// The folders of machines.
fn folders() -> impl Iterator<Item = Folder> {
    let listing = fs::read_dir(base()).into_iter().flatten().flatten();
    let is_named = |entry: &fs::DirEntry| !entry.file_name().as_encoded_bytes().starts_with(b".");
    listing.filter(is_named).map(|entry| Folder(entry.path()))
}

/// Those of nobody, which a command left that was killed.
pub fn abandoned() -> Vec<Folder> {
    folders().filter(Folder::is_abandoned).collect()
}

/// All machines of which something is kept, by name.
pub fn all() -> Vec<Settings> {
    let mut machines: Vec<_> = folders().filter_map(|folder| folder.settings()).collect();
    machines.sort_by(|a, b| a.name.cmp(&b.name));
    machines
}

/// Seconds since the epoch.
pub fn now_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

/// The user's folder for machines, readable by nobody else where we make it.
pub(crate) fn base() -> PathBuf {
    runtime_folder("sietch")
}

/// The folder `name` of what the user keeps (XDG Base Directory Specification).
///
/// Errors: `NoDataFolder`.
pub(crate) fn data_folder(name: &str) -> Result<PathBuf, Failure> {
    let named = |variable| env::var_os(variable).map(PathBuf::from);
    let absolute = |path: &PathBuf| path.is_absolute();
    let home = || named("HOME").filter(absolute);
    let data = named("XDG_DATA_HOME").filter(absolute);
    data.or_else(|| Some(home()?.join(".local/share")))
        .map(|data| data.join("sietch").join(name))
        .ok_or(Failure::NoDataFolder)
}

/// What the user's folders for what lasts as long as processes do are called.
const RUNTIME_FOLDERS: [&str; 2] = ["sietch", NETWORKS];
/// That of networks' switches.
pub(crate) const NETWORKS: &str = "sietch-networks";

/// Makes the user's folders below a place where others may make some too (/tmp), and looks whose they are.
///
/// Errors: `ForeignFolder` if one is somebody else's, or a link to elsewhere.
pub fn claim_folders() -> Result<(), Failure> {
    for name in RUNTIME_FOLDERS {
        let path = runtime_folder(name);
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&path);
        made.map_err(Failure::file(&path))?;
        let found = fs::symlink_metadata(&path).map_err(Failure::file(&path))?;
        if !found.is_dir() || found.uid() != rustix::process::getuid().as_raw() {
            return Err(Failure::ForeignFolder { path });
        }
        fs::set_permissions(&path, Permissions::from_mode(0o700)).map_err(Failure::file(&path))?;
        leftovers::sweep(&path);
    }
    Ok(())
}

/// A folder `name` of the user for what lasts as long as processes do.
pub(crate) fn runtime_folder(name: &str) -> PathBuf {
    match env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => PathBuf::from(folder).join(name),
        None => env::temp_dir().join(format!("{name}-{}", rustix::process::getuid().as_raw())),
    }
}
