//! What an entry asks for, decoded: values only, nothing that the program can still change.

use bitflags::bitflags;

use crate::cancel::Key;

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// To the program.
    In,
    /// From the program.
    Out,
}

/// Where the bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Buffers {
    /// In one range.
    One {
        /// Its address.
        address: u64,
        /// Its bytes.
        len: u32,
    },
    /// In the ranges of an array of `struct iovec`.
    Vector {
        /// Where the array is.
        address: u64,
        /// How many there are.
        count: u32,
    },
    /// In one range within a registered buffer.
    Fixed {
        /// Its address.
        address: u64,
        /// Its bytes.
        len: u32,
        /// Which buffer.
        index: u16,
    },
    /// In a buffer that the program lent.
    Lent {
        /// Of which group.
        group: u16,
        /// No more bytes than these; 0 for what fits.
        len: u32,
    },
}

/// Where in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// At its position, which moves on.
    Current,
    /// There.
    At(u64),
}

bitflags! {
    /// How a timeout counts (IORING_TIMEOUT_*).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct TimeoutFlags: u32 {
        /// The time is a moment and no span.
        const ABS = 1;
        /// Changes another timeout.
        const UPDATE = 2;
        /// By the clock that counts while the machine sleeps.
        const BOOTTIME = 4;
        /// By the wall clock.
        const REALTIME = 8;
        /// Changes the timeout of a link.
        const LINK_UPDATE = 16;
        /// Its end is no failure.
        const ETIME_SUCCESS = 32;
    }
}

/// A system call that runs as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are Linux's calls")]
pub enum Call {
    Openat,
    Openat2,
    Statx,
    Fallocate,
    SyncFileRange,
    Fadvise,
    Madvise,
    EpollCtl,
    Renameat2,
    Unlinkat,
    Mkdirat,
    Symlinkat,
    Linkat,
    Socket,
}

/// What is to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Nothing.
    Nop,
    /// Reads or writes.
    Transfer {
        /// Which way.
        direction: Direction,
        /// The program's memory.
        buffers: Buffers,
        /// Where in the file.
        place: Place,
        /// RWF_*.
        flags: u32,
    },
    /// Sends or receives bytes.
    Message {
        /// Which way.
        direction: Direction,
        /// The program's memory.
        buffers: Buffers,
        /// MSG_*.
        flags: u32,
        /// Goes on after the first message.
        is_multishot: bool,
    },
    /// Sends or receives what a `struct msghdr` describes.
    Header {
        /// Which way.
        direction: Direction,
        /// Where that is.
        address: u64,
        /// MSG_*.
        flags: u32,
        /// The group of lent buffers that messages go to, one after the other ([`Frame`](crate::Frame)).
        group: Option<u16>,
    },
    /// Takes a connection.
    Accept {
        /// Where the peer's name goes; 0 for nowhere.
        address: u64,
        /// Where its length lies.
        len_address: u64,
        /// SOCK_*.
        flags: u32,
        /// Goes on after the first.
        is_multishot: bool,
        /// One more than the index it gets among the ring's files; 0 for a descriptor.
        slot: u32,
    },
    /// Connects.
    Connect {
        /// Where the name is.
        address: u64,
        /// Its bytes.
        len: u32,
    },
    /// Ends directions of a socket.
    Shutdown {
        /// SHUT_*.
        how: u32,
    },
    /// Brings a file's bytes to where they are kept.
    Fsync {
        /// Not what only describes it.
        is_data_only: bool,
    },
    /// Waits for readiness.
    Poll {
        /// For what (EPOLL*).
        events: u32,
        /// Goes on after the first.
        is_multishot: bool,
    },
    /// Ends a poll, or changes it.
    PollUpdate {
        /// Which one.
        target: u64,
        /// What it waits for from now on.
        events: Option<u32>,
        /// What it is called from now on.
        user_data: Option<u64>,
        /// Whether it goes on after the first.
        is_multishot: bool,
    },
    /// Waits for a time, or for a number of completions.
    Timeout {
        /// Where the time is.
        address: u64,
        /// How many completions end it; 0 for none.
        count: u32,
        /// How it counts.
        flags: TimeoutFlags,
    },
    /// Ends a timeout, or changes it.
    TimeoutRemove {
        /// Which one.
        target: u64,
        /// Its new time, if it is to be changed.
        address: Option<u64>,
        /// How that counts.
        flags: TimeoutFlags,
    },
    /// Limits the time of the entry before it.
    LinkTimeout {
        /// Where the time is.
        address: u64,
        /// How it counts.
        flags: TimeoutFlags,
    },
    /// Ends other requests.
    Cancel {
        /// Which ones; the file stands for itself.
        key: Key,
        /// Its descriptor is an index among the ring's files.
        is_fixed_file: bool,
        /// By file.
        by_file: bool,
        /// All of them, and says how many.
        is_all: bool,
    },
    /// Gives up a descriptor.
    Close {
        /// One more than an index among the ring's files; 0 for a descriptor.
        slot: u32,
    },
    /// Changes the ring's files.
    FilesUpdate {
        /// Where the descriptors are.
        address: u64,
        /// How many.
        count: u32,
        /// The first index.
        first: u32,
    },
    /// Runs a system call.
    Call {
        /// Which.
        call: Call,
        /// With what.
        args: [u64; 6],
    },
}

impl Operation {
    /// Whether it works on the file that the entry's descriptor stands for.
    pub fn needs_file(&self) -> bool {
        matches!(
            self,
            Self::Transfer { .. }
                | Self::Message { .. }
                | Self::Header { .. }
                | Self::Accept { .. }
                | Self::Connect { .. }
                | Self::Shutdown { .. }
                | Self::Fsync { .. }
                | Self::Poll { .. }
        )
    }

    /// Whether it may go on after a completion.
    pub fn is_multishot(&self) -> bool {
        match self {
            Self::Message { is_multishot, .. }
            | Self::Accept { is_multishot, .. }
            | Self::Poll { is_multishot, .. } => *is_multishot,
            Self::Header { group, .. } => group.is_some(),
            _ => false,
        }
    }

    /// The group of the lent buffers that it uses.
    pub fn buffer_group(&self) -> Option<(u16, u32)> {
        match self {
            Self::Transfer { buffers, .. } | Self::Message { buffers, .. } => match buffers {
                Buffers::Lent { group, len } => Some((*group, *len)),
                _ => None,
            },
            Self::Header { group, .. } => group.map(|group| (group, 0)),
            _ => None,
        }
    }
}
