//! Files of the host, in a volume (`sietch run -v`).

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Test;
use crate::build::{self, Link};
use crate::guest::{BOOT_PATIENCE, Guest, Setup};
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "what a file of a volume has lost raises SIGBUS where it is mapped",
        cut_off,
    ),
    (
        "what a user makes on a volume is the user's, also for the next machine",
        owned,
    ),
    (
        "it is the user's also where an ordinary user of the host runs the machine",
        owned_without_root,
    ),
    (
        "a mount on a volume is found by every walk, and goes with its names",
        mounted_on,
    ),
];

const PROGRAM: &str = "tests/harness/cut_file.c";
const OWNER: &str = "tests/harness/volume_owner.c";
const MOUNTS: &str = "tests/harness/volume_mounts.c";
/// Debian's `nobody`, who owns nothing on the host.
const NOBODY: u32 = 65534;

fn cut_off(setup: &Setup) -> Result<(), String> {
    let program = build::c_linked(Path::new(PROGRAM), Link::StaticMusl)?;
    let folder = Folder::new("volume-cut")?;
    let volume = format!("{}:/volume", folder.0.display());
    let program = program.to_string_lossy();
    let args = ["--net", "none", "-v", &volume, &program, "/volume/file"];
    let end = setup.start(&args)?.wait(BOOT_PATIENCE)?;
    expect_status(&end, 0)?;
    let left = fs::read(folder.0.join("file")).map_err(|error| error.to_string())?;
    match left.len() {
        0x4000 => Ok(()),
        other => Err(format!("the host's file has {other} bytes")),
    }
}

fn mounted_on(setup: &Setup) -> Result<(), String> {
    let program = build::c_linked(Path::new(MOUNTS), Link::StaticMusl)?;
    let folder = Folder::new("volume-mounts")?;
    let volume = format!("{}:/volume", folder.0.display());
    let program = program.to_string_lossy();
    let end = setup
        .start(&["--net", "none", "-v", &volume, &program])?
        .wait(BOOT_PATIENCE)?;
    expect_status(&end, 0)
}

fn owned(setup: &Setup) -> Result<(), String> {
    let folder = Folder::new("volume-owned")?;
    let program = build::c_linked(Path::new(OWNER), Link::StaticMusl)?;
    make_and_look(&folder, &program, &|args| setup.start(args))
}

/// The host's inodes cannot change their owner then.
fn owned_without_root(setup: &Setup) -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        // Then the test above was this one.
        return Ok(());
    }
    let folder = Folder::new("volume-nobody")?;
    let state = Folder::new("volume-nobody-state")?;
    for path in [&folder.0, &state.0] {
        chown(path, Some(NOBODY), Some(NOBODY)).map_err(|error| error.to_string())?;
    }
    // The checkout may lie where only root may look.
    let reached = Folder::new("volume-nobody-reached")?;
    let take = |path: &Path| {
        let copy = reached.0.join(path.file_name().unwrap_or_default());
        fs::copy(path, &copy).map_err(|error| format!("{path:?}: {error}"))?;
        Ok::<_, String>(copy)
    };
    let program = take(&build::c_linked(Path::new(OWNER), Link::StaticMusl)?)?;
    let kernel = take(&setup.kernel())?;
    let sietch = take(Path::new(setup.command(&[]).get_program()))?;
    make_and_look(&folder, &program, &|args| {
        let mut command = Command::new(&sietch);
        command.args(setup.command(args).get_args());
        command.uid(NOBODY).gid(NOBODY);
        command.env("XDG_RUNTIME_DIR", &state.0);
        command.env("SIETCH_KERNEL", &kernel);
        Guest::of(command)
    })
}

/// One machine makes the files, another one looks at them.
fn make_and_look(
    folder: &Folder,
    program: &Path,
    start: &dyn Fn(&[&str]) -> Result<Guest, String>,
) -> Result<(), String> {
    let program = program.to_string_lossy();
    let volume = format!("{}:/volume", folder.0.display());
    let args = ["--net", "none", "-v", &volume, &program, "/volume", "again"];
    for args in [&args[..args.len() - 1], &args[..]] {
        expect_status(&start(args)?.wait(BOOT_PATIENCE)?, 0)?;
    }
    Ok(())
}

/// A folder for one test, removed afterwards.
pub struct Folder(pub PathBuf);

impl Folder {
    /// A new one, with a name that this run has for itself.
    pub fn new(name: &str) -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("sietch-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(|error| format!("{path:?}: {error}"))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is the next run's.
        let _ = fs::remove_dir_all(&self.0);
    }
}
