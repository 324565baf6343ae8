//! Checking a volume that no machine uses: e2fsck(8).

use std::process::Stdio;

use super::lock::{Access, Lock};
use super::make::remove_lost_and_found;
use super::store::{Volume, summary_of};
use super::tools;
use crate::failure::Failure;

/// Bits of e2fsck's exit status.
const CORRECTED: i32 = 1 | 2;
const LEFT: i32 = 4;

/// What may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Nothing.
    Nothing,
    /// What can be mended without losing anything: the journal is replayed.
    Safe,
    /// Whatever is damaged.
    All,
}

/// Checks it; what e2fsck says is passed on to the user. True if something was mended.
///
/// It is looked at before it is mended: e2fsck misses a `lost+found`, and would make one for nothing.
///
/// Errors: `VolumeInUse`, `VolumeDamaged` if it is not whole afterwards.
pub fn check(volume: &Volume, repair: Repair) -> Result<bool, Failure> {
    let access = match repair {
        Repair::Nothing => Access::Read,
        Repair::Safe | Repair::All => Access::Write,
    };
    let ours = Lock::take(volume, access)?;
    let has_journal = summary_of(ours.file()).is_some_and(|summary| summary.needs_recovery);
    let is_recovered = has_journal && repair != Repair::Nothing && recover(volume).is_ok();
    let how = match repair {
        Repair::Nothing => return run(volume, "-fn"),
        Repair::Safe => "-fp",
        Repair::All => "-fy",
    };
    if run(volume, "-fn").is_ok() {
        return Ok(is_recovered);
    }
    let mended = run(volume, how);
    remove_lost_and_found(volume.path())?;
    mended
}

/// Runs e2fsck; true if it has corrected something.
fn run(volume: &Volume, how: &str) -> Result<bool, Failure> {
    let mut command = tools::command("e2fsck")?;
    let status = command.arg(how).arg(volume.path()).status();
    match status.map_err(Failure::file("e2fsck"))?.code() {
        Some(0) => Ok(false),
        Some(code) if code & !CORRECTED == 0 => Ok(true),
        Some(code) if code & LEFT != 0 => Err(damaged(volume)),
        _ => Err(Failure::ImageTool {
            name: "e2fsck".into(),
            said: "the check did not come to its end".into(),
        }),
    }
}

fn damaged(volume: &Volume) -> Failure {
    Failure::VolumeDamaged {
        name: volume.name().to_string(),
    }
}

/// Replays the journal of a volume that is ours.
pub(super) fn recover(volume: &Volume) -> Result<(), Failure> {
    let mut command = tools::command("e2fsck")?;
    command.arg("-p").arg(volume.path());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    match command.status().map_err(Failure::file("e2fsck"))?.code() {
        Some(code) if code & !CORRECTED == 0 => Ok(()),
        _ => Err(damaged(volume)),
    }
}
