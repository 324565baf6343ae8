//! Where the host's programs are.

use std::env;
use std::path::PathBuf;

/// Where Debian keeps programs that users seldom call.
const MORE_FOLDERS: [&str; 2] = ["/usr/sbin", "/sbin"];

/// The program `name`, if it is installed.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(MORE_FOLDERS.map(PathBuf::from));
    folders
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}
