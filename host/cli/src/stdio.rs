//! What this process has at its descriptors 0, 1 and 2: the program in the machine gets the
//! same, each descriptor on its own, as if it ran here.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::fstat;
use rustix::termios::tcgetwinsize;
use serde::{Deserialize, Serialize};

/// What one descriptor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StdFile {
    /// The user's terminal.
    Terminal,
    /// A file, a pipe or a device.
    Stream,
    /// The same file as descriptor 1: what goes to either stays in order.
    SameAsOutput,
}

/// How a machine's program reaches us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Console {
    /// By the serial port, for kernels that know no other way.
    Serial {
        /// Whether somebody sits there.
        is_terminal: bool,
    },
    /// By a stream for each of its descriptors.
    Streams(Stdio),
}

impl Default for Console {
    fn default() -> Self {
        Self::Serial { is_terminal: false }
    }
}

impl Console {
    /// Whether the program sees a terminal.
    pub fn has_terminal(&self) -> bool {
        match self {
            Self::Serial { is_terminal } => *is_terminal,
            Self::Streams(stdio) => stdio.has_terminal(),
        }
    }
}

/// How many lines and columns a terminal shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Lines.
    pub rows: u16,
    /// Columns.
    pub columns: u16,
}

/// All three descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stdio {
    /// By number.
    pub files: [StdFile; 3],
    /// The terminal's window, if one of them is a terminal.
    pub window: Window,
    /// Whether these are ours, or nobody's: what is written goes to the log, and to who attaches.
    pub is_ours: bool,
    /// Whether somebody who attaches may type.
    pub is_open: bool,
}

impl Stdio {
    /// Nobody's.
    pub const DETACHED: Self = Self {
        files: [StdFile::Stream, StdFile::Stream, StdFile::SameAsOutput],
        window: Window {
            rows: 0,
            columns: 0,
        },
        is_ours: false,
        is_open: false,
    };

    /// Nobody's, as `-i` and `-t` want them.
    pub fn detached(is_open: bool, has_terminal: bool) -> Self {
        let files = match has_terminal {
            true => [StdFile::Terminal; 3],
            false => Self::DETACHED.files,
        };
        Self {
            files,
            is_open,
            ..Self::DETACHED
        }
    }

    /// This process' own.
    pub fn of_this_process() -> Self {
        let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
        let kind = |is_terminal: bool| match is_terminal {
            true => StdFile::Terminal,
            false => StdFile::Stream,
        };
        let mut files = [
            kind(stdin.is_terminal()),
            kind(stdout.is_terminal()),
            kind(stderr.is_terminal()),
        ];
        let streams = [StdFile::Stream; 2];
        if files[1..] == streams && is_same(stdout.as_fd(), stderr.as_fd()) {
            files[2] = StdFile::SameAsOutput;
        }
        let mut stdio = Self {
            files,
            window: Window::default(),
            is_ours: true,
            is_open: true,
        };
        if let Some(window) = stdio.terminal().and_then(|terminal| window_of(&terminal)) {
            stdio.window = window;
        }
        stdio
    }

    /// What a program has that was given those files, at this process' descriptors if it is to be seen.
    pub fn of_files(files: [StdFile; 3], is_ours: bool, is_open: bool) -> Self {
        Self {
            files,
            is_ours,
            is_open: is_ours || is_open,
            ..Self::DETACHED
        }
    }

    /// Whether the program sees a terminal.
    pub fn has_terminal(&self) -> bool {
        self.files.contains(&StdFile::Terminal)
    }

    /// A letter for each descriptor, as the kernel reads them.
    pub fn letters(&self) -> String {
        let letter = |file: StdFile| match file {
            StdFile::Terminal => 't',
            StdFile::Stream => 's',
            StdFile::SameAsOutput => 'o',
        };
        self.files.map(letter).iter().collect()
    }

    /// The user's terminal, to write to: at the first of descriptors 1, 2 and 0 that is one.
    pub fn terminal(&self) -> Option<File> {
        let is_terminal = |&number: &usize| self.is_ours && self.files[number] == StdFile::Terminal;
        [1, 2, 0].into_iter().find(is_terminal).and_then(duplicate)
    }
}

/// The window of a terminal; `None` if it has none.
pub fn window_of(terminal: impl AsFd) -> Option<Window> {
    let size = tcgetwinsize(terminal).ok()?;
    Some(Window {
        rows: size.ws_row,
        columns: size.ws_col,
    })
}

/// Another descriptor for what is at `number`, without a buffer.
pub fn duplicate(number: usize) -> Option<File> {
    let copy = match number {
        0 => io::stdin().as_fd().try_clone_to_owned(),
        1 => io::stdout().as_fd().try_clone_to_owned(),
        _ => io::stderr().as_fd().try_clone_to_owned(),
    };
    copy.ok().map(File::from)
}

/// Standard output for whoever gets it, who alone holds it from now on: when they let go,
/// its reader sees the end.
pub fn take_output() -> Option<File> {
    let output = duplicate(1)?;
    let nowhere = OpenOptions::new().write(true).open("/dev/null").ok()?;
    rustix::stdio::dup2_stdout(nowhere).ok()?;
    Some(output)
}

/// Whether two descriptors lead to one file.
fn is_same(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    match (fstat(one), fstat(other)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}
