//! `sietch cp`: files between this host and a machine that runs.
//!
//! ```text
//! place.rs     NAME:PATH, and docker's rules for where things go
//! machine.rs   what is asked of a machine: what is at a path, send, receive
//! records.rs   the stream between (`core/agent`'s trees)
//! walk.rs      files of this host to records
//! unpack.rs    records to files of this host
//! links.rs     files that have several names
//! tape.rs      both for `-`: a tar at standard input or output
//! progress.rs  how far it is, at a terminal
//! ```
//!
//! The machine is not believed: whatever its names are, nothing is written outside the folder that was asked for, and what it
//! sends is held a chunk at a time. A file takes the place of another one when it is whole, on both sides.

mod links;
mod machine;
mod place;
mod progress;
mod records;
mod tape;
mod unpack;
mod walk;

pub use machine::{Found, fetch, listing};

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use crate::copy_error::CopyError;
use crate::failure::Failure;
use crate::flags::CpFlags;

use machine::{At, Copied};
use place::{Landing, Place, Target};
use progress::Progress;

/// Copies what `flags` say; the exit status.
pub fn copy(flags: &CpFlags) -> Result<u8, Failure> {
    let source = Place::parse(&flags.source);
    let target = Place::parse(&flags.target);
    let copied = match (&source, &target) {
        (Place::Machine { name, path }, Place::Host(to)) => out(flags, name, path, to)?,
        (Place::Machine { name, path }, Place::Stdio) => {
            tape::write(name, path, flags.follow_link)?
        }
        (Place::Host(from), Place::Machine { name, path }) => into(flags, from, name, path)?,
        (Place::Stdio, Place::Machine { name, path }) => {
            let folder = machine::look(name, path, true)?;
            if !matches!(folder, Some(At::Folder)) {
                return Err(CopyError::NoFolder(target.shown()).into());
            }
            let keeps_owners = flags.archive;
            machine::receive(name, path, Progress::new(flags.quiet), move |records| {
                tape::read(records, keeps_owners)
            })?
        }
        (Place::Machine { .. }, Place::Machine { .. }) => {
            return Err(CopyError::TwoMachines.into());
        }
        _ => return Err(CopyError::NoMachine.into()),
    };
    for trouble in &copied.troubles {
        eprintln!("sietch: {trouble}");
    }
    if !flags.quiet && target != Place::Stdio {
        let (bytes, files) = (crate::flags::told(copied.bytes), copied.files);
        progress::say(&format!(
            "Copied {files} files, {bytes}, to {}.",
            target.shown()
        ));
    }
    Ok(u8::from(!copied.troubles.is_empty()))
}

/// From a machine into the files of this host.
fn out(flags: &CpFlags, name: &str, from: &[u8], to: &Path) -> Result<Copied, Failure> {
    if fs::metadata(to).is_ok_and(|to| to.file_type().is_char_device() || to.file_type().is_fifo())
    {
        return machine::into_device(name, from, to, flags.follow_link);
    }
    let found = machine::look(name, from, flags.follow_link)?;
    let found = found.ok_or_else(|| CopyError::NotInMachine {
        machine: name.into(),
        path: String::from_utf8_lossy(from).into_owned(),
    })?;
    let real = match fs::canonicalize(to) {
        Ok(real) => real,
        Err(_) => to.to_path_buf(),
    };
    let target = Target::of_host(&real);
    let landing = Landing::of(
        found.is_folder(),
        from,
        real.as_os_str().as_bytes(),
        place::wants_folder(to.as_os_str().as_bytes()),
        target,
    )?;
    let folder = Path::new(std::ffi::OsStr::from_bytes(&landing.folder));
    let mut unpack = unpack::Unpack::new(folder, &landing.top, flags.archive)?;
    machine::send(
        name,
        from,
        flags.follow_link,
        Progress::new(flags.quiet),
        |record, records| unpack.take(record, records),
    )
    .and_then(|copied| {
        unpack.finish()?;
        Ok(copied)
    })
}

/// From this host into a machine.
fn into(flags: &CpFlags, from: &Path, name: &str, to: &[u8]) -> Result<Copied, Failure> {
    let source = match flags.follow_link {
        true => fs::metadata(from),
        false => fs::symlink_metadata(from),
    };
    let source = source.map_err(Failure::file(from))?;
    let to = machine::followed(name, to)?;
    let target = match machine::look(name, &to, true)? {
        Some(At::Folder) => Target::Folder,
        Some(_) => Target::File,
        None => {
            let (parent, _) = place::split(&to);
            match machine::look(name, parent, true)? {
                Some(At::Folder) => Target::Missing,
                _ => Target::Nowhere,
            }
        }
    };
    let landing = Landing::of(
        source.is_dir(),
        from.as_os_str().as_bytes(),
        &to,
        place::wants_folder(&to),
        target,
    )?;
    let walk = walk::Walk {
        root: from.to_path_buf(),
        top: landing.top.clone(),
        follows: flags.follow_link,
        keeps_owners: flags.archive,
    };
    machine::receive(
        name,
        &landing.folder,
        Progress::new(flags.quiet),
        move |records| walk.send(records),
    )
}

/// A tree that ends too early, or says what makes no sense.
fn malformed() -> io::Error {
    io::Error::from(io::ErrorKind::InvalidData)
}
