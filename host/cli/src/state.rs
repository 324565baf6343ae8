//! What is kept of each machine: a folder with its settings, its console's text, its
//! kernel's log and its control socket.
//!
//! The folder outlives the machine so that `logs` works afterwards; the next machine
//! of the same name takes it over. A machine runs while the process in its settings
//! is there.
//!
//! A folder is found by its name, so between a look at it and what is done because of it another command may have put the next
//! machine's there. Who gives a folder its place, or takes it away, therefore locks the [`Places`] and the folder that is there, looks
//! again, and does it by a rename; who writes to a folder by its name has one of the two locked. Lock order: the places, then one
//! folder ([`Folder::lock`]).

use std::env;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use qemu::Machine;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};

use crate::failure::Failure;
use crate::stdio::StdFile;
use crate::wish::{self, Wish};
use crate::{leftovers, processes};

mod settings;
#[cfg(test)]
mod tests;

pub(crate) use settings::STATUS_KILLED;
pub use settings::{Ended, Settings};

/// How long a session may take to end with its machine.
const SESSION_PATIENCE: Duration = Duration::from_secs(10);
/// How long the start of a machine may take that another command has begun.
const START_PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
/// The file with the number of the process that starts a machine.
const OWNER: &str = "owner";

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

/// While this lives, no machine's folder comes to its place or leaves it.
#[derive(Debug)]
pub struct Places {
    _locked: fs::File,
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
        let is_ours = !folder.is_in_use() && !folder.is_of_data() && folder.make_fresh()?;
        Ok(is_ours.then_some(folder))
    }

    /// Whether a machine runs here, or somebody is starting one.
    pub fn is_in_use(&self) -> bool {
        match self.settings() {
            Some(settings) => {
                settings.has_qemu() || settings.is_restarting && settings.has_session()
            }
            None => self.owner().is_some_and(|own| processes::is_there(&own)),
        }
    }

    /// Locks the places of all machines' folders.
    pub fn lock_places(&self) -> Result<Places, Failure> {
        let base = self.0.parent().unwrap_or(&self.0);
        let locked = lock_folder(base)?;
        Ok(Places { _locked: locked })
    }

    /// The process that starts a machine here ([`processes::told`]).
    pub fn owner(&self) -> Option<String> {
        fs::read_to_string(self.0.join(OWNER)).ok()
    }

    /// Makes this process the owner in the place of the one that started it, which may be killed at any moment.
    ///
    /// Errors: `NameTaken` if somebody took the folder meanwhile.
    pub fn take_over(&self, name: &str, from: &str) -> Result<(), Failure> {
        let _places = self.lock_places()?;
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
        let draft = leftovers::draft_of(&self.0);
        fs::create_dir_all(&draft)
            .and_then(|()| fs::write(draft.join(OWNER), processes::told(std::process::id())))
            .map_err(Failure::file(&draft))?;
        let places = self.lock_places()?;
        // There may be no old one.
        let folder = self.lock().ok();
        let is_free = !self.is_in_use() && !self.is_of_data();
        let old = is_free.then(|| leftovers::put_aside(&self.0));
        let is_ours = is_free && fs::rename(&draft, &self.0).is_ok();
        drop((folder, places));
        for gone in old.and_then(io::Result::ok).iter().chain([&draft]) {
            let _ = fs::remove_dir_all(gone);
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
        lock_folder(&self.0)
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
        let served = || self.settings().filter(Settings::is_served);
        self.wait_while(served, |_| ());
    }

    /// Kills the machine, also if it is started again just now, and waits for its session in the same way.
    pub fn kill_and_wait_for_session(&self, machine: &Settings) {
        self.wait_while(|| self.served_as(machine), kill);
    }

    /// The settings while the machine runs whose were those; the next one of its name is another one.
    pub fn served_as(&self, machine: &Settings) -> Option<Settings> {
        let served = self.settings().filter(Settings::is_served);
        served.filter(|now| now.is_of_session_of(machine))
    }

    fn wait_while(&self, served: impl Fn() -> Option<Settings>, act: impl Fn(&Settings)) {
        let deadline = Instant::now() + SESSION_PATIENCE;
        while let Some(settings) = served().filter(|_| Instant::now() < deadline) {
            act(&settings);
            thread::sleep(POLL);
        }
    }

    /// Removes all that is kept of a machine, unless the folder is not what is `meant` any more; false then. That it is gone
    /// already, as by its session (`--rm`), is no failure.
    pub fn remove_if(&self, meant: impl FnOnce(&Self) -> bool) -> Result<bool, Failure> {
        let places = self.lock_places()?;
        let folder = self.lock().ok();
        if !meant(self) {
            return Ok(false);
        }
        let old = leftovers::put_aside(&self.0);
        drop((folder, places));
        match old.and_then(fs::remove_dir_all) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Failure::file(&self.0)(error))
            }
            _ => Ok(true),
        }
    }

    /// Gives it another name, which nobody has. The caller has the places locked.
    pub fn rename(&self, name: &str, _: &Places) -> Result<(), Failure> {
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

/// The lock goes with the file.
fn lock_folder(path: &Path) -> Result<fs::File, Failure> {
    let folder = fs::File::open(path).map_err(Failure::file(path))?;
    flock(&folder, FlockOperation::LockExclusive)
        .map_err(|error| Failure::file(path)(error.into()))?;
    Ok(folder)
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
