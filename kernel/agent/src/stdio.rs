//! Descriptors 0, 1 and 2 of a command: the program's sides, and the agent's.

use alloc::sync::Arc;

use agent::{Request, Window};
use ipc::pipe;
use mm::io::{Sink, Source};
use sync::poll::Events;
use sync::{Error, Result};
use task::current;
use tty::Master;
use vfs::file::{File, OpenFile, StatusFlags};
use vfs::{self, OpenHow};

/// What the program gets.
pub(crate) enum ProgramSide {
    /// A file for each descriptor; /dev/null where there is none.
    Files([Option<Arc<OpenFile>>; 3]),
    /// The terminal of this master, for all of them.
    Terminal(Arc<Master>),
}

/// What the agent keeps.
pub(crate) struct AgentSide {
    /// Where input goes.
    pub(crate) input: Option<Arc<OpenFile>>,
    /// From where descriptors 1 and 2 are read; a terminal is 1.
    pub(crate) outputs: [Option<Arc<OpenFile>>; 2],
    /// The master, if it is a terminal.
    pub(crate) terminal: Option<Arc<Master>>,
}

/// Makes both.
///
/// Errors: `NoSpace` if there are too many terminals.
pub(crate) fn make(request: &Request<'_>) -> Result<(ProgramSide, AgentSide)> {
    match request.terminal {
        Some(window) if !request.is_detached => terminal(request, window),
        // Nobody would hold the other end of a terminal.
        _ => Ok(pipes(request)),
    }
}

fn terminal(request: &Request<'_>, window: Window) -> Result<(ProgramSide, AgentSide)> {
    let master = tty::open_unlocked_master()?;
    master.set_window(window.rows, window.columns);
    let open = ours(master.clone(), StatusFlags::RDWR);
    let side = AgentSide {
        input: request.has_input.then(|| open.clone()),
        outputs: [Some(open), None],
        terminal: Some(master.clone()),
    };
    Ok((ProgramSide::Terminal(master), side))
}

fn pipes(request: &Request<'_>) -> (ProgramSide, AgentSide) {
    let (stdin, input) = match request.has_input {
        false => (None, None),
        true => {
            let (reader, writer) = pipe::create_for_everybody();
            let stdin = OpenFile::new(reader, StatusFlags::empty());
            (Some(stdin), Some(ours(writer, StatusFlags::WRONLY)))
        }
    };
    let output = || match request.is_detached {
        true => (None, None),
        false => {
            let (reader, writer) = pipe::create_for_everybody();
            let theirs = OpenFile::new(writer, StatusFlags::WRONLY);
            (Some(theirs), Some(ours(reader, StatusFlags::empty())))
        }
    };
    let ((stdout, from_stdout), (stderr, from_stderr)) = (output(), output());
    let side = AgentSide {
        input,
        outputs: [from_stdout, from_stderr],
        terminal: None,
    };
    (ProgramSide::Files([stdin, stdout, stderr]), side)
}

fn ours(file: Arc<dyn File>, flags: StatusFlags) -> Arc<OpenFile> {
    OpenFile::new(file, flags | StatusFlags::NONBLOCK)
}

impl ProgramSide {
    /// Makes them descriptors 0, 1 and 2 of the current process, which leads its session.
    pub(crate) fn install(self) -> Result<()> {
        let files = match self {
            Self::Files(files) => files,
            Self::Terminal(master) => {
                let open = master.control_current_session()?;
                [Some(open.clone()), Some(open.clone()), Some(open)]
            }
        };
        let limit = files.len() as u32;
        for open in files {
            let open = match open {
                Some(open) => open,
                None => nowhere()?,
            };
            current().files.get().insert(open, false, 0, limit)?;
        }
        Ok(())
    }
}

impl ProgramSide {
    /// Descriptors 0 and 1 of what is no program: `None` if they are no pipes.
    pub(crate) fn into_pipes(self) -> Option<(Option<Arc<OpenFile>>, Arc<OpenFile>)> {
        match self {
            Self::Files([input, output, _]) => Some((input, output?)),
            Self::Terminal(_) => None,
        }
    }
}

fn nowhere() -> Result<Arc<OpenFile>> {
    let how = OpenHow {
        status: StatusFlags::RDWR,
        ..OpenHow::READ
    };
    vfs::open(None, b"/dev/null", &how)
}

/// Writes some of `bytes`, as far as there is room; returns how many.
///
/// Errors: `BrokenPipe` if nobody will read them.
pub(crate) fn write(open: &Arc<OpenFile>, bytes: &[u8]) -> Result<usize> {
    if open.file.poll().contains(Events::ERR) {
        return Err(Error::BrokenPipe);
    }
    match open.file.write(open, &mut Source::kernel(bytes)) {
        Err(Error::WouldBlock) => Ok(0),
        result => result,
    }
}

/// What a look at an output finds.
pub(crate) enum Output {
    /// So many bytes.
    Bytes(usize),
    /// Nothing yet.
    Dry,
    /// Nothing ever again.
    End,
}

/// Reads what there is, as far as there is room in `to`.
pub(crate) fn read(open: &Arc<OpenFile>, to: &mut [u8]) -> Output {
    match open.file.read(open, &mut Sink::kernel(to)) {
        Ok(0) => Output::End,
        Ok(count) => Output::Bytes(count),
        Err(Error::WouldBlock) => Output::Dry,
        // A terminal that nobody has open any more.
        Err(_) => Output::End,
    }
}
