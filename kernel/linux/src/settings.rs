//! What the host wants to be set before the first program starts: limits, and files below `/proc/sys`.
//!
//! A setting that the kernel refuses is fatal, with a word in the log: a program that runs otherwise than its user
//! said is worse than one that does not run.

use alloc::vec::Vec;

use cred::{Limit, Resource};
use mach::klog;
use mach::mem::fallible;
use mm::io::Source;
use sync::{Error, Result};
use task::current;
use vfs::file::StatusFlags;
use vfs::{self, OpenHow};

/// They are those of process 1, and of commands that enter the machine.
#[derive(Default)]
pub struct Settings {
    /// Limits of resources (setrlimit(2)).
    pub limits: Vec<(Resource, Limit)>,
    /// Which permission bits new files do not get (umask(2)), if not the usual ones.
    pub umask: Option<u32>,
    /// Names as sysctl(8) has them, and values.
    pub values: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Settings {
    /// Sets them for the current process and the machine.
    ///
    /// Errors: `Invalid` for a value that the kernel refuses, and what opening says.
    pub(crate) fn apply(&self) -> Result<()> {
        for (resource, limit) in &self.limits {
            if limit.soft > limit.hard {
                klog!("a limit that is above itself: {resource:?}");
                return Err(Error::Invalid);
            }
            current().process.limits.set(*resource, *limit);
        }
        let process = &current().process;
        process.timers.limit_cpu(process);
        if let Some(umask) = self.umask {
            vfs::context().set_umask(umask);
        }
        for (name, value) in &self.values {
            write(name, value).inspect_err(|error| {
                klog!(
                    "sysctl {} not set to {}: {error:?}",
                    name.escape_ascii(),
                    value.escape_ascii()
                );
            })?;
        }
        Ok(())
    }
}

/// Writes the file of `name`, whose dots are slashes.
fn write(name: &[u8], value: &[u8]) -> Result<()> {
    const FOLDER: &[u8] = b"/proc/sys/";
    let mut path = fallible::vec(FOLDER.len() + name.len())?;
    path.extend_from_slice(FOLDER);
    path.extend(name.iter().map(|&byte| match byte {
        b'.' => b'/',
        byte => byte,
    }));
    let how = OpenHow {
        status: StatusFlags::WRONLY,
        ..OpenHow::READ
    };
    let file = vfs::open(None, &path, &how)?;
    match file.write(&mut Source::kernel(value))? == value.len() {
        true => Ok(()),
        false => Err(Error::Invalid),
    }
}
