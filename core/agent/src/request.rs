//! What is to run, or which files are to be copied.
//!
//! `flags[1] rows[2] columns[2] uid[4] gid[4]`, then the directory, the arguments and the environment, each
//! `bytes[2]` and that many bytes; arguments and environment are blocks of strings, each `bytes[2]` and the
//! string. Little endian.

use alloc::vec::Vec;

use crate::REQUEST_BYTES_MAX;

/// A terminal's size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Window {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// What a channel is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Task {
    /// A command.
    #[default]
    Run,
    /// The arguments are paths; each becomes a [`tree`](crate::tree) at the output.
    Send {
        /// How much of each.
        depth: Depth,
        /// Whether a symbolic link at the end of a path is followed.
        follows: bool,
    },
    /// The only argument is a folder; the tree at the input is put into it.
    Receive,
    /// The arguments are records of links (`core/linkctl`), which are made; what is refused is a sentence at the output.
    AddLinks,
    /// The arguments are names of VNICs, which are removed.
    RemoveLinks,
}

/// How much is sent of what a path names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// What it is.
    Look,
    /// Also what is in a folder, without bytes.
    List,
    /// All.
    All,
}

/// A command, or what takes the place of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Request<'a> {
    /// What it asks for; all but arguments is for commands only.
    pub task: Task,
    /// The terminal that it gets; without one it gets pipes.
    pub terminal: Option<Window>,
    /// Whether there will be `Stdin`; else descriptor 0 is /dev/null.
    pub has_input: bool,
    /// Whether its output is nobody's: the channel ends as soon as it runs.
    pub is_detached: bool,
    /// Its user and group; those of process 1 at its start if there is none.
    pub user: Option<(u32, u32)>,
    /// Where it starts; where process 1 started if it is empty.
    pub directory: &'a [u8],
    /// The program, a path or a name to search in `PATH`, and its arguments.
    pub arguments: Strings<'a>,
    /// What is added to the environment of process 1, or takes the place of its variables.
    pub environment: Strings<'a>,
}

const TERMINAL: u8 = 1 << 0;
const INPUT: u8 = 1 << 1;
const DETACHED: u8 = 1 << 2;
const USER: u8 = 1 << 3;
const TASK_SHIFT: u32 = 4;
const TASK_MASK: u8 = 7 << TASK_SHIFT;
const FOLLOWS: u8 = 1 << 7;

impl Task {
    fn flags(self) -> u8 {
        let (task, follows) = match self {
            Self::Run => (0, false),
            Self::Send { depth, follows } => (1 + depth as u8, follows),
            Self::Receive => (4, false),
            Self::AddLinks => (5, false),
            Self::RemoveLinks => (6, false),
        };
        task << TASK_SHIFT | if follows { FOLLOWS } else { 0 }
    }

    fn of_flags(flags: u8) -> Option<Self> {
        let follows = flags & FOLLOWS != 0;
        let send = |depth| Some(Self::Send { depth, follows });
        match (flags & TASK_MASK) >> TASK_SHIFT {
            0 => Some(Self::Run),
            1 => send(Depth::Look),
            2 => send(Depth::List),
            3 => send(Depth::All),
            4 => Some(Self::Receive),
            5 => Some(Self::AddLinks),
            6 => Some(Self::RemoveLinks),
            _ => None,
        }
    }
}

impl<'a> Request<'a> {
    /// Reads a request; `None` if it is none, or names no program.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (&[flags, r0, r1, c0, c1], rest) = bytes.split_first_chunk()?;
        let (&uid, rest) = rest.split_first_chunk()?;
        let (&gid, rest) = rest.split_first_chunk()?;
        let (directory, rest) = split_string(rest)?;
        let (arguments, rest) = split_string(rest)?;
        let (environment, rest) = split_string(rest)?;
        let window = Window {
            rows: u16::from_le_bytes([r0, r1]),
            columns: u16::from_le_bytes([c0, c1]),
        };
        let has = |flag| flags & flag != 0;
        let arguments = Strings::of_block(arguments)?;
        arguments.clone().next().filter(|name| !name.is_empty())?;
        rest.is_empty().then_some(Self {
            task: Task::of_flags(flags)?,
            terminal: has(TERMINAL).then_some(window),
            has_input: has(INPUT),
            is_detached: has(DETACHED),
            user: has(USER).then_some((u32::from_le_bytes(uid), u32::from_le_bytes(gid))),
            directory,
            arguments,
            environment: Strings::of_block(environment)?,
        })
    }

    /// Writes a request; `None` if it is too long.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = flag(self.terminal.is_some(), TERMINAL)
            | flag(self.has_input, INPUT)
            | flag(self.is_detached, DETACHED)
            | flag(self.user.is_some(), USER)
            | self.task.flags();
        let window = self.terminal.unwrap_or_default();
        let (uid, gid) = self.user.unwrap_or_default();
        let mut bytes = Vec::from([flags]);
        bytes.extend(window.rows.to_le_bytes());
        bytes.extend(window.columns.to_le_bytes());
        bytes.extend(uid.to_le_bytes());
        bytes.extend(gid.to_le_bytes());
        for part in [self.directory, self.arguments.0, self.environment.0] {
            bytes.extend(u16::try_from(part.len()).ok()?.to_le_bytes());
            bytes.extend(part);
        }
        (bytes.len() <= REQUEST_BYTES_MAX).then_some(bytes)
    }
}

/// Strings, one after the other. Invariant: the bytes are a block of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Strings<'a>(&'a [u8]);

impl<'a> Strings<'a> {
    /// Those of a block; `None` if it is none. Strings have no NUL.
    pub fn of_block(bytes: &'a [u8]) -> Option<Self> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (string, after) = split_string(rest)?;
            if string.contains(&0) {
                return None;
            }
            rest = after;
        }
        Some(Self(bytes))
    }
}

impl<'a> Iterator for Strings<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (string, rest) = split_string(self.0)?;
        self.0 = rest;
        Some(string)
    }
}

/// A block of these strings; `None` if one of them is too long.
pub fn block<'s>(strings: impl IntoIterator<Item = &'s [u8]>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for string in strings {
        bytes.extend(u16::try_from(string.len()).ok()?.to_le_bytes());
        bytes.extend(string);
    }
    Some(bytes)
}

fn split_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&len, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::from(u16::from_le_bytes(len)))
}
