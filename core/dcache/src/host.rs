//! What the cache asks of the kernel around it.

use base::Memory;
use base::lock::{Family, Lock, RwFamily};

/// The kernel.
pub trait Host: Sized + 'static {
    /// Its short locks and flags.
    type Family: RwFamily;
    /// Its locks that sleep.
    type Sleeping: Family;
    /// Whom it asks for memory.
    type Memory: Memory;
    /// What a name means.
    type Inode;
    /// What kind of file that is.
    type Kind: Copy;
    /// Why it refuses something.
    type Error;

    /// What kind of file an inode is; never changes.
    fn kind(inode: &Self::Inode) -> Self::Kind;

    /// Whether such a file has names in it.
    fn is_directory(kind: Self::Kind) -> bool;

    /// Asks the file system for a name; `None` if it is not there.
    fn look_up(directory: &Self::Inode, name: &[u8]) -> Result<Option<Self::Inode>, Self::Error>;

    /// Nobody uses a file any more whose last name was removed.
    fn ended(inode: &Self::Inode);

    /// Whether others need the memory that a note of a missing name takes.
    fn is_memory_short() -> bool;

    /// How it says that the cache refuses.
    fn refuse(why: Refusal) -> Self::Error;
}

/// Why the cache refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// What is no directory has no names.
    NotDirectory,
    /// No file has a name of more than [`crate::NAME_BYTES_MAX`] bytes.
    NameTooLong,
    /// The name is not there any more.
    NotFound,
    /// There is no memory to note the answer.
    NoMemory,
}

/// A short lock of `H`.
pub(crate) type LockOf<H, T> = <<H as Host>::Family as Family>::Lock<T>;
/// A short lock of `H` that readers share.
pub(crate) type RwLockOf<H, T> = <<H as Host>::Family as RwFamily>::RwLock<T>;
/// A flag of `H`.
pub(crate) type FlagOf<H> = <<H as Host>::Family as Family>::Flag;
/// A number of `H`.
pub(crate) type CountOf<H> = <<H as Host>::Family as Family>::Count;
/// A lock of `H` that sleeps.
pub(crate) type Gate<H> = <<H as Host>::Sleeping as Family>::Lock<()>;
/// Proves that no name of a directory changes.
pub type Guard<'a, H> = <Gate<H> as Lock<()>>::Guard<'a>;
