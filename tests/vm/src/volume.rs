//! Files of the host, in a volume (`sietch run -v`).

use std::fs;
use std::path::{Path, PathBuf};

use crate::Test;
use crate::build::{self, Link};
use crate::guest::{BOOT_PATIENCE, Setup};
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[(
    "what a file of a volume has lost raises SIGBUS where it is mapped",
    cut_off,
)];

const PROGRAM: &str = "tests/harness/cut_file.c";

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
