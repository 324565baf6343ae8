//! The kernel's files that tools read: /proc and what names its numbers.

/// Who has them.
pub trait Files {
    /// The text of the file at this path, or a sentence that says why there is none.
    fn read(&mut self, path: &str) -> Result<String, String>;
}

/// Those of the running system.
pub struct SystemFiles;

impl Files for SystemFiles {
    fn read(&mut self, path: &str) -> Result<String, String> {
        let bytes = std::fs::read(path).map_err(|why| format!("{path}: {why}"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
