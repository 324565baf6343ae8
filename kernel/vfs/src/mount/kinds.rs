//! The kinds of file system that mount(2) can make, by name.

use alloc::sync::Arc;
use alloc::vec::Vec;

use mach::sync::Spin;
use sync::{Error, Result};

use crate::FileSystem;

/// Makes a file system from its source and its options.
pub type Make = fn(source: &[u8], options: &[u8]) -> Result<Arc<dyn FileSystem>>;

/// A kind: its name, whether it needs no device, and how it is made.
#[derive(Clone, Copy)]
pub struct Kind {
    /// As mount(2) calls it.
    pub name: &'static str,
    /// Shown as `nodev` in /proc/filesystems.
    pub nodev: bool,
    /// The names of its options.
    pub options: &'static [&'static str],
    /// Makes one.
    pub make: Make,
}

/// Kinds of file systems that the kernel has, said at boot.
static KINDS: Spin<Vec<Kind>> = Spin::new(Vec::new());

/// Adds a kind; at boot.
pub fn register(kind: Kind) {
    KINDS.lock().push(kind);
}

/// All kinds.
pub fn all() -> Vec<Kind> {
    KINDS.lock().clone()
}

/// The kind `name`.
///
/// Errors: `WrongDevice` if there is none.
pub fn find(name: &[u8]) -> Result<Kind> {
    let kind = all().into_iter().find(|kind| kind.name.as_bytes() == name);
    kind.ok_or(Error::WrongDevice)
}

impl Kind {
    /// Whether it has an option of this name.
    pub fn takes(&self, name: &[u8]) -> bool {
        self.options.iter().any(|option| option.as_bytes() == name)
    }
}

/// Makes a file system of the kind `name`.
///
/// Errors: `WrongDevice` for an unknown kind, `Invalid` for an unknown option, and what the kind
/// says.
pub fn make(name: &[u8], source: &[u8], options: &[u8]) -> Result<Arc<dyn FileSystem>> {
    let kind = find(name)?;
    let names = options
        .split(|byte| *byte == b',')
        .filter(|option| !option.is_empty());
    let mut names = names.map(|option| option.split(|byte| *byte == b'=').next().unwrap_or(option));
    match names.all(|name| kind.takes(name) || name == b"source") {
        true => (kind.make)(source, options),
        false => Err(Error::Invalid),
    }
}
