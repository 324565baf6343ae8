//! Files: `write_files`, and those that tell of the machine.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown};
use std::path::{Component, Path, PathBuf};

use super::users;
use crate::settings::WriteFile;

/// Until a file is whole and its owner's, either of which may fail: it may be a secret.
const UNFINISHED_MODE: u32 = 0o600;

/// Where a path of the machine's is beneath `root`, which is `/` but in tests.
///
/// Errors: `InvalidInput` for a path that climbs.
pub(super) fn beneath(root: &Path, path: &str) -> io::Result<PathBuf> {
    let path = Path::new(path);
    let has_climbed = path.components().any(|part| part == Component::ParentDir);
    match path.strip_prefix("/") {
        Ok(path) if !has_climbed => Ok(root.join(path)),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Writes what the user wants.
pub(super) fn write(root: &Path, wanted: &WriteFile) -> io::Result<()> {
    let path = beneath(root, &wanted.path)?;
    make_folder_of(&path)?;
    let mut options = File::options();
    options.create(true).write(true).mode(UNFINISHED_MODE);
    options
        .append(wanted.is_appended)
        .truncate(!wanted.is_appended);
    let mut file = options.open(&path)?;
    file.write_all(&wanted.content)?;
    if let Some(owner) = &wanted.owner {
        let (uid, gid) = numbers(root, owner)?;
        chown(&path, Some(uid), gid)?;
    }
    // After the owner, whose change takes set-user-ID away.
    fs::set_permissions(&path, Permissions::from_mode(wanted.mode))
}

/// `USER` or `USER:GROUP`.
fn numbers(root: &Path, owner: &str) -> io::Result<(u32, Option<u32>)> {
    match owner.split_once(':') {
        None => Ok((users::user(root, owner)?.uid, None)),
        Some((user, group)) => {
            let group = users::group(root, group)?;
            Ok((users::user(root, user)?.uid, Some(group)))
        }
    }
}

/// Writes a text file of the machine's.
pub(super) fn replace(root: &Path, path: &str, text: &str) -> io::Result<()> {
    let path = beneath(root, path)?;
    make_folder_of(&path)?;
    fs::write(path, text)
}

fn make_folder_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}
