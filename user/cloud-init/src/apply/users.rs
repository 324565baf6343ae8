//! Users and groups of the image, by `/etc/passwd` and `/etc/group`.

use std::fs;
use std::io;
use std::path::Path;

/// A line of `/etc/passwd`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct User {
    pub uid: u32,
    pub gid: u32,
    pub home: String,
}

/// The user of that name.
///
/// Errors: `NotFound`.
pub(super) fn user(root: &Path, name: &str) -> io::Result<User> {
    let found = fields(root, "etc/passwd", name)?;
    let number = |at: usize| found.get(at).and_then(|text| text.parse().ok());
    match (number(2), number(3), found.get(5)) {
        (Some(uid), Some(gid), Some(home)) => Ok(User {
            uid,
            gid,
            home: home.clone(),
        }),
        _ => Err(missing(name)),
    }
}

/// The group of that name.
pub(super) fn group(root: &Path, name: &str) -> io::Result<u32> {
    let found = fields(root, "etc/group", name)?;
    let number = found.get(2).and_then(|text| text.parse().ok());
    number.ok_or_else(|| missing(name))
}

/// The fields of the line that begins with the name.
fn fields(root: &Path, file: &str, name: &str) -> io::Result<Vec<String>> {
    let text = fs::read_to_string(root.join(file))?;
    let mut lines = text.lines().map(|line| line.split(':'));
    let line = lines.find(|line| line.clone().next() == Some(name));
    let line = line.ok_or_else(|| missing(name))?;
    Ok(line.map(Into::into).collect())
}

fn missing(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("the image has no {name}"))
}
