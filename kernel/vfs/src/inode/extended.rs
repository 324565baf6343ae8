//! Extended attributes of an inode (xattr(7)): names with values, kept beside its bytes.
//!
//! Those in memory ([`ExtendedAttributes`]) are bounded for each inode, because they are memory that no limit counts. Most
//! inodes have none and pay an empty list. Who may see and set which name, `kernel/linux` decides.

use alloc::vec::Vec;

use mach::sync::Spin;
use sync::{Error, Result};

/// The longest value (Linux's XATTR_SIZE_MAX).
pub const VALUE_BYTES_MAX: usize = 64 << 10;
/// The longest name (XATTR_NAME_MAX).
pub const NAME_BYTES_MAX: usize = 255;
/// The list of an inode's names is no longer (XATTR_LIST_MAX).
pub const LIST_BYTES_MAX: usize = 64 << 10;
/// All names and values of an inode in memory.
const TOTAL_BYTES_MAX: usize = 128 << 10;

/// What setting an attribute expects of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expect {
    /// Nothing.
    Any,
    /// That it is not there.
    Absent,
    /// That it is there.
    Present,
}

/// The attributes of one inode.
pub trait Extended {
    /// The value of `name`.
    ///
    /// Errors: `NoData`, `OutOfMemory`.
    fn get(&self, name: &[u8]) -> Result<Vec<u8>>;

    /// Gives `name` a value.
    ///
    /// Errors: `Exists`, `NoData`, `NoSpace`, `OutOfMemory`; then nothing has changed.
    fn set(&self, name: &[u8], value: &[u8], expect: Expect) -> Result<()>;

    /// Takes `name` away.
    ///
    /// Errors: `NoData`.
    fn remove(&self, name: &[u8]) -> Result<()>;

    /// All names, each with a zero behind it.
    ///
    /// Errors: `OutOfMemory`.
    fn list(&self) -> Result<Vec<u8>>;
}

struct Attribute {
    name: Vec<u8>,
    value: Vec<u8>,
}

/// The attributes of one inode, in memory.
#[derive(Default)]
pub struct ExtendedAttributes(Spin<Vec<Attribute>>);

impl Extended for ExtendedAttributes {
    fn get(&self, name: &[u8]) -> Result<Vec<u8>> {
        let held = self.0.lock();
        let found = held.iter().find(|attribute| attribute.name == name);
        copy(&found.ok_or(Error::NoData)?.value)
    }

    fn set(&self, name: &[u8], value: &[u8], expect: Expect) -> Result<()> {
        let new = Attribute {
            name: copy(name)?,
            value: copy(value)?,
        };
        let mut all = self.0.lock();
        let at = all.iter().position(|attribute| attribute.name == name);
        match (expect, at) {
            (Expect::Absent, Some(_)) => return Err(Error::Exists),
            (Expect::Present, None) => return Err(Error::NoData),
            _ => {}
        }
        let others = all.iter().filter(|attribute| attribute.name != name);
        let total: usize = others.chain([&new]).map(Attribute::bytes).sum();
        if total > TOTAL_BYTES_MAX {
            return Err(Error::NoSpace);
        }
        let old = match at {
            Some(at) => Some(core::mem::replace(&mut all[at], new)),
            None => {
                all.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
                all.push(new);
                None
            }
        };
        drop(all);
        drop(old);
        Ok(())
    }

    fn remove(&self, name: &[u8]) -> Result<()> {
        let mut all = self.0.lock();
        let at = all.iter().position(|attribute| attribute.name == name);
        let old = all.swap_remove(at.ok_or(Error::NoData)?);
        drop(all);
        drop(old);
        Ok(())
    }

    fn list(&self) -> Result<Vec<u8>> {
        let held = self.0.lock();
        let mut names = Vec::new();
        for attribute in held.iter() {
            let more = attribute.name.len() + 1;
            names.try_reserve(more).map_err(|_| Error::OutOfMemory)?;
            names.extend_from_slice(&attribute.name);
            names.push(0);
        }
        Ok(names)
    }
}

impl Attribute {
    fn bytes(&self) -> usize {
        self.name.len() + self.value.len()
    }
}

fn copy(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len())
        .map_err(|_| Error::OutOfMemory)?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}
