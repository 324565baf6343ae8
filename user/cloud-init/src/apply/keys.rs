//! Public keys: `~/.ssh/authorized_keys` of a user, where the image has a server that reads it. A user whom the image has not is an
//! error, for nobody makes it.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::Path;

use super::files::beneath;
use super::users;
use crate::settings::Keys;

const SERVERS: [&str; 2] = ["usr/sbin/sshd", "usr/sbin/dropbear"];
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

pub(super) fn add(root: &Path, keys: &Keys) -> io::Result<()> {
    let has_server = SERVERS.iter().any(|server| root.join(server).exists());
    if keys.user.is_none() && !has_server {
        return Ok(());
    }
    let user = users::user(root, keys.user.as_deref().unwrap_or("root"))?;
    if keys.keys.is_empty() || !has_server {
        return Ok(());
    }
    let home = beneath(root, &user.home)?;
    if !home.exists() {
        // An image of one program has none. Its user is to get there, so what is above is everybody's way.
        fs::create_dir_all(&home)?;
        chown(&home, Some(user.uid), Some(user.gid))?;
    }
    let folder = home.join(".ssh");
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(FOLDER_MODE).create(&folder)?;
    let path = folder.join("authorized_keys");
    let mut file = File::options().create(true).append(true).open(&path)?;
    let before = fs::read(&path)?;
    if !before.is_empty() && !before.ends_with(b"\n") {
        // What the image has may lack the end of its last line.
        writeln!(file)?;
    }
    for key in &keys.keys {
        writeln!(file, "{key}")?;
    }
    fs::set_permissions(&path, Permissions::from_mode(FILE_MODE))?;
    for path in [&folder, &path] {
        chown(path, Some(user.uid), Some(user.gid))?;
    }
    Ok(())
}
