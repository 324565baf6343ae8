//! Why something failed.

/// What a disk says that could not do what it was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceError;

/// A structure on the disk that is not as it must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Corrupt {
    /// The superblock's numbers contradict each other or the disk's size.
    Superblock,
    /// A group descriptor points outside the disk or its checksum is wrong.
    GroupDescriptor(u32),
    /// A bitmap's checksum is wrong, or it contradicts its descriptor.
    Bitmap(u32),
    /// An inode's checksum or a field of it is wrong.
    Inode(u32),
    /// A node of this inode's extent tree.
    ExtentTree(u32),
    /// A block of this directory.
    Directory(u32),
    /// The extended attributes of this inode.
    Attributes(u32),
    /// The journal's superblock or a transaction in it.
    Journal,
    /// The list of orphans has a loop or a wrong number.
    Orphans,
    /// A block number outside the disk.
    BlockNumber(u64),
}

/// Why an operation failed. Nothing has changed then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The disk.
    Device,
    /// The file system is damaged; from now on it can only be read.
    Corrupt(Corrupt),
    /// No such name or attribute.
    NotFound,
    /// The name or attribute is there already.
    Exists,
    /// It is no directory.
    NotDirectory,
    /// It is a directory.
    IsDirectory,
    /// The directory has entries.
    NotEmpty,
    /// No block, no inode or no place for an attribute is free.
    NoSpace,
    /// The file would be larger than its tree can describe.
    FileTooLarge,
    /// The name is too long.
    NameTooLong,
    /// Too many names of one inode.
    TooManyLinks,
    /// Nothing can be changed: so mounted, or after an error.
    ReadOnly,
    /// An argument makes no sense here.
    Invalid,
    /// The inode uses something of ext2, ext3 or later that is not provided.
    Unsupported,
    /// There is nothing at or behind this offset.
    BeyondEnd,
    /// Memory is short.
    OutOfMemory,
    /// The operation is larger than the journal.
    TooLarge,
    /// It needs a commit, and one is under way: again when that has ended.
    Busy,
}

/// What operations return.
pub type Result<T, E = Error> = core::result::Result<T, E>;

impl From<DeviceError> for Error {
    fn from(_: DeviceError) -> Self {
        Self::Device
    }
}

impl From<Corrupt> for Error {
    fn from(what: Corrupt) -> Self {
        Self::Corrupt(what)
    }
}

/// Why an image is not mounted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MountError {
    /// It has no ext4 superblock.
    NotExt4,
    /// It uses a feature that is not provided; the name is that of mke2fs.
    Feature(&'static str),
    /// It can only be mounted for reading because of this feature.
    ReadOnlyFeature(&'static str),
    /// The journal has to be replayed, and the disk cannot be written.
    NeedsRecovery,
    /// Something else.
    Failed(Error),
}

impl<E: Into<Error>> From<E> for MountError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}
