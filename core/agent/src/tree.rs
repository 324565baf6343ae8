//! Files on their way into a machine or out of it (`sietch cp`).
//!
//! A tree is a stream of *records*, within the input or the output of a channel. A record is a header of
//! [`Header::BYTES`], the name, the target of a link, and for a file its bytes in chunks:
//!
//! ```text
//! kind[1] zero[1] name_len[2] target_len[2] mode[2] uid[4] gid[4] seconds[8] nanos[4] size[8]  name  target
//! file: (len[2] bytes[len])*  zero[2], or ffff[2] where it cannot be read further
//! ```
//!
//! Little endian. Names are relative to the tree's root, whose name is empty, and a folder comes before what is in it. A
//! file's `size` is what it was when somebody looked; its chunks say how long it is. [`Kind::End`] is the last record: a
//! stream without it was cut. The target of a file that has several names is its [`FileId`], so that who unpacks the tree can
//! give the same file all those names that the tree has of it; its bytes follow each of them. A file that cannot be read further is none: the [`Kind::Trouble`] that follows says why.
//!
//! Nobody trusts the names: [`components`] gives those of one that stays below the root.

/// What a record is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A folder.
    Folder,
    /// A folder that what follows is in: if it is there, it stays as it is.
    Parent,
    /// A regular file, whose bytes follow; the target is its [`FileId`] if it has several names.
    File,
    /// A symbolic link; the target is its text.
    Symlink,
    /// One more name for a file; the target is the name it had in this tree.
    Link,
    /// A device, a named pipe or a socket: only its name is sent.
    Special,
    /// Something failed; the mode is a [`Trouble`].
    Trouble,
    /// Nothing follows.
    End,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::Folder,
        Self::Parent,
        Self::File,
        Self::Symlink,
        Self::Link,
        Self::Special,
        Self::Trouble,
        Self::End,
    ];
}

/// Why something is not copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// There is no such file or folder.
    NotFound,
    /// Something on the way to it is no folder, or a folder is to take the place of what is none.
    NotFolder,
    /// A file is to take the place of a folder.
    IsFolder,
    /// It is not allowed.
    Denied,
    /// It cannot be written to.
    ReadOnly,
    /// The disk is full.
    NoSpace,
    /// The machine has too little memory.
    NoMemory,
    /// A path is too long.
    TooLong,
    /// Symbolic links lead in a circle, or one is in the way.
    Links,
    /// The name leads out of the folder, or the record makes no sense.
    BadRecord,
    /// The stream ended too early.
    Cut,
    /// Something else.
    Other,
}

impl Trouble {
    const ALL: [Self; 12] = [
        Self::NotFound,
        Self::NotFolder,
        Self::IsFolder,
        Self::Denied,
        Self::ReadOnly,
        Self::NoSpace,
        Self::NoMemory,
        Self::TooLong,
        Self::Links,
        Self::BadRecord,
        Self::Cut,
        Self::Other,
    ];

    /// As a record's mode.
    pub fn code(self) -> u16 {
        self as u16
    }

    /// Of a record's mode.
    pub fn of_code(code: u16) -> Self {
        let mut all = Self::ALL.into_iter();
        all.find(|trouble| trouble.code() == code)
            .unwrap_or(Self::Other)
    }
}

/// Bytes of a name or a target, at most.
pub const NAME_BYTES_MAX: usize = 4095;
/// What tells a file that has several names from others of its machine: its device and its number, little endian. Another file may
/// have both after its end.
pub type FileId = [u8; 16];

/// That of a file.
pub fn file_id(device: u64, number: u64) -> FileId {
    let mut id = FileId::default();
    let (first, second) = id.split_at_mut(8);
    first.copy_from_slice(&device.to_le_bytes());
    second.copy_from_slice(&number.to_le_bytes());
    id
}

/// Bytes of a chunk, at most.
pub const CHUNK_BYTES_MAX: usize = 32 << 10;
/// In the place of a chunk's length: the file cannot be read further.
pub const BROKEN_OFF: u16 = u16::MAX;

/// What precedes a record's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// What it is about.
    pub kind: Kind,
    /// Bytes of the name.
    pub name_len: usize,
    /// Bytes of the target.
    pub target_len: usize,
    /// Permission bits, with set-id and sticky.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Time of the last write, in seconds since 1970, and its nanoseconds.
    pub modified: (i64, u32),
    /// Bytes.
    pub size: u64,
}

impl Header {
    /// Bytes of a header.
    pub const BYTES: usize = 36;

    /// One that says nothing but its kind.
    pub fn of(kind: Kind) -> Self {
        Self {
            kind,
            name_len: 0,
            target_len: 0,
            mode: 0,
            uid: 0,
            gid: 0,
            modified: (0, 0),
            size: 0,
        }
    }

    /// That of a failure.
    pub fn of_trouble(trouble: Trouble, name_len: usize) -> Self {
        Self {
            mode: trouble.code(),
            name_len,
            ..Self::of(Kind::Trouble)
        }
    }

    /// As bytes. Lengths are at most [`NAME_BYTES_MAX`].
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let (seconds, nanos) = self.modified;
        let parts: [&[u8]; 9] = [
            &[self.kind as u8, 0],
            &(self.name_len as u16).to_le_bytes(),
            &(self.target_len as u16).to_le_bytes(),
            &self.mode.to_le_bytes(),
            &self.uid.to_le_bytes(),
            &self.gid.to_le_bytes(),
            &seconds.to_le_bytes(),
            &nanos.to_le_bytes(),
            &self.size.to_le_bytes(),
        ];
        let mut rest = bytes.as_mut_slice();
        for part in parts {
            let (to, after) = rest.split_at_mut(part.len().min(rest.len()));
            to.copy_from_slice(part);
            rest = after;
        }
        bytes
    }

    /// What bytes say; `None` if that is nothing.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (&[kind, zero], rest) = bytes.split_first_chunk()?;
        let (&name_len, rest) = rest.split_first_chunk()?;
        let (&target_len, rest) = rest.split_first_chunk()?;
        let (&mode, rest) = rest.split_first_chunk()?;
        let (&uid, rest) = rest.split_first_chunk()?;
        let (&gid, rest) = rest.split_first_chunk()?;
        let (&seconds, rest) = rest.split_first_chunk()?;
        let (&nanos, rest) = rest.split_first_chunk()?;
        let header = Self {
            kind: Kind::ALL.into_iter().find(|known| *known as u8 == kind)?,
            name_len: usize::from(u16::from_le_bytes(name_len)),
            target_len: usize::from(u16::from_le_bytes(target_len)),
            mode: u16::from_le_bytes(mode),
            uid: u32::from_le_bytes(uid),
            gid: u32::from_le_bytes(gid),
            modified: (i64::from_le_bytes(seconds), u32::from_le_bytes(nanos)),
            size: u64::from_le_bytes(rest.try_into().ok()?),
        };
        let is_sound = zero == 0
            && header.name_len <= NAME_BYTES_MAX
            && header.target_len <= NAME_BYTES_MAX
            && header.modified.1 < 1_000_000_000;
        is_sound.then_some(header)
    }
}

/// The names of which `name` consists, if it stays below the root: each is a file's, none of them `.` or `..`. An empty
/// name, that of the root, has none.
pub fn components(name: &[u8]) -> Option<impl DoubleEndedIterator<Item = &[u8]> + Clone> {
    let is_plain =
        |part: &[u8]| !part.is_empty() && part != b"." && part != b".." && !part.contains(&0);
    let parts = name.split(|&byte| byte == b'/');
    let is_sound = name.is_empty() || parts.clone().all(is_plain);
    is_sound.then(|| parts.filter(|part| !part.is_empty()))
}
