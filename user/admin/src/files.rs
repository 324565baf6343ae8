//! The kernel's files that tools read: /proc and what names its numbers.

use std::fs::OpenOptions;
use std::io::{self, Write};

/// Who has them.
pub trait Files {
    /// The text of the file at this path, or a sentence that says why there is none.
    fn read(&mut self, path: &str) -> Result<String, String>;

    /// Writes to the file at this path, in one call.
    fn write(&mut self, path: &str, bytes: &[u8]) -> io::Result<()>;
}

/// Those of the running system.
pub struct SystemFiles;

impl Files for SystemFiles {
    fn read(&mut self, path: &str) -> Result<String, String> {
        let bytes = std::fs::read(path).map_err(|why| format!("{path}: {why}"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn write(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let written = OpenOptions::new().write(true).open(path)?.write(bytes)?;
        match written == bytes.len() {
            true => Ok(()),
            false => Err(io::ErrorKind::WriteZero.into()),
        }
    }
}
