//! Debian's programs with all that belongs to them: the host's folders in the machine, and a
//! folder of the host for what a server makes.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::guest::state_folder;

/// The flags for the host's programs, libraries and settings, as they lie there.
pub const FOLDERS: &[&str] = &[
    "--volume",
    "/usr:/usr:ro",
    "--volume",
    "/lib64:/lib64:ro",
    "--volume",
    "/lib:/lib:ro",
    "--volume",
    "/bin:/bin:ro",
    "--volume",
    "/etc:/etc:ro",
];

/// An empty folder in which every user may make files, as the volume `/data`.
pub fn data(name: &str) -> Result<String, String> {
    let data = state_folder().join(name);
    // What an earlier test has left.
    let _ = fs::remove_dir_all(&data);
    fs::create_dir_all(&data)
        .and_then(|()| fs::set_permissions(&data, PermissionsExt::from_mode(0o777)))
        .map_err(|error| format!("{}: {error}", data.display()))?;
    Ok(format!("{}:/data", data.display()))
}
