//! What the new process does before its program runs, and how the agent hears of it.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;

use agent::{CHANNELS_MAX, Refusal, Request};
use exec::Arguments;
use linux_task::start::{Identity, STATUS_NOT_FOUND, find_program};
use linux_task::{exec as program, leave};
use mach::mem::fallible::{self, TryPush};
use mach::sync::Spin;
use mach::trap::UserRegs;
use sync::poll::{Events, Pollee};
use sync::{Error, Result};
use task::{ExitStatus, Process, current};
use vfs::file::File;
use vfs::{self, Walk};

use crate::SETTING;
use crate::environment;
use crate::links::LinkChange;
use crate::stdio::ProgramSide;
use crate::tree::Copy;

/// Launches of channels, from the making of a process until it looks. Channels are the machine's.
static LAUNCHES: Spin<[Option<Arc<Launch>>; CHANNELS_MAX as usize + 1]> =
    Spin::new([const { None }; CHANNELS_MAX as usize + 1]);

/// Whether the program runs.
pub(crate) type Outcome = core::result::Result<(), Refusal>;

/// What one process is to do, and what became of it. As a file it is readable once that is known.
pub(crate) struct Launch {
    work: Spin<Option<Work>>,
    outcome: Spin<Option<Outcome>>,
    pollee: Pollee,
}

struct Work {
    job: Job,
    stdio: ProgramSide,
}

enum Job {
    Command(Command),
    Copy(Copy),
    Links(LinkChange),
}

struct Command {
    arguments: Arguments,
    directory: Vec<u8>,
    identity: Identity<'static>,
}

/// What the process does when it has begun.
enum Begun {
    /// It goes to user mode, at its program's first instruction.
    Program(UserRegs),
    /// It has done all that it was for.
    Done(ExitStatus),
}

/// Starts a process for `request` on that channel.
pub(crate) fn start(
    channel: u16,
    request: &Request<'_>,
    stdio: ProgramSide,
) -> core::result::Result<(Arc<Process>, Arc<Launch>), Refusal> {
    let setting = SETTING.get().ok_or(Refusal::Other)?;
    let work = Work::new(request, stdio).map_err(refusal_of_start)?;
    let launch = fallible::arc(Launch {
        work: Spin::new(Some(work)),
        outcome: Spin::new(None),
        pollee: Pollee::new(),
    });
    let launch = launch.map_err(|_| Refusal::OutOfMemory)?;
    let thread = task::start_parentless(begin, usize::from(channel), &setting.template);
    let thread = thread.map_err(refusal_of_start)?;
    let former = LAUNCHES
        .lock()
        .get_mut(usize::from(channel))
        .and_then(|place| place.replace(launch.clone()));
    drop(former);
    let process = thread.process.clone();
    sched::launch(thread.sched.clone(), thread);
    Ok((process, launch))
}

fn refusal_of_start(error: Error) -> Refusal {
    match error {
        Error::OutOfMemory => Refusal::OutOfMemory,
        Error::WouldBlock | Error::NoSpace => Refusal::TooMany,
        _ => Refusal::Other,
    }
}

impl Work {
    fn new(request: &Request<'_>, stdio: ProgramSide) -> Result<Self> {
        let job = match (Copy::of(request)?, LinkChange::of(request)?) {
            (Some(copy), _) => Job::Copy(copy),
            (None, Some(change)) => Job::Links(change),
            (None, None) => Job::Command(Command::new(request)?),
        };
        Ok(Self { job, stdio })
    }
}

impl Command {
    fn new(request: &Request<'_>) -> Result<Self> {
        let setting = SETTING.get().ok_or(Error::Invalid)?;
        let mut values = Vec::new();
        for value in request.arguments {
            values.try_push(fallible::copied(value)?)?;
        }
        let directory = match request.directory {
            [] => setting.defaults.directory,
            directory => directory,
        };
        let arguments = Arguments {
            path: Vec::new(),
            values,
            environment: environment::merged(setting.defaults.environment, request.environment)?,
        };
        Ok(Self {
            arguments,
            directory: fallible::copied(directory)?,
            identity: match request.user {
                Some(user) => Identity {
                    user: Some(user),
                    groups: &[],
                    ..setting.defaults.identity
                },
                None => setting.defaults.identity,
            },
        })
    }

    /// Becomes the program.
    fn execute(mut self, stdio: ProgramSide) -> core::result::Result<UserRegs, Refusal> {
        stdio.install().map_err(refusal_of_start)?;
        if !self.directory.is_empty() {
            let place = vfs::resolve(None, &self.directory, Walk::FOLLOW | Walk::DIRECTORY);
            let place = place.map_err(|_| Refusal::NoDirectory)?;
            vfs::context().set_cwd(place);
        }
        self.identity.take().map_err(refusal_of_start)?;
        let name = self.arguments.values.first().ok_or(Refusal::BadRequest)?;
        let path = find_program(name, &self.arguments.environment);
        self.arguments.path = path.map_err(refusal_of_start)?;
        program::open_and_exec(self.arguments).map_err(|error| match error {
            Error::NotFound | Error::NotDirectory => Refusal::NoProgram,
            Error::OutOfMemory => Refusal::OutOfMemory,
            Error::ArgumentsTooLong => Refusal::ArgumentsTooLong,
            _ => Refusal::NotExecutable,
        })
    }
}

/// The first thing that the process does.
fn begin(channel: usize) -> ! {
    // It has no registers yet: exec makes them.
    let _ = task::begin_thread();
    match do_work(channel) {
        Some(Begun::Program(mut regs)) => {
            leave::before_user(&current(), &mut regs);
            mach::task::enter_user(&regs)
        }
        Some(Begun::Done(status)) => task::exit_thread(status),
        None => task::exit_thread(ExitStatus::Exited(STATUS_NOT_FOUND)),
    }
}

fn do_work(channel: usize) -> Option<Begun> {
    let launch = LAUNCHES.lock().get_mut(channel).and_then(Option::take)?;
    let Work { job, stdio } = launch.work.lock().take()?;
    match job {
        Job::Command(command) => {
            let result = command.execute(stdio);
            launch.tell(result.as_ref().map(|_| ()).map_err(|reason| *reason));
            result.ok().map(Begun::Program)
        }
        Job::Copy(copy) => {
            launch.tell(Ok(()));
            // Its channel has one that looks at it for longer.
            drop(launch);
            let (input, output) = stdio.into_pipes()?;
            Some(Begun::Done(copy.run(input, output)))
        }
        Job::Links(change) => {
            launch.tell(Ok(()));
            let (_, output) = stdio.into_pipes()?;
            Some(Begun::Done(change.run(&output)))
        }
    }
}

impl Launch {
    fn tell(&self, outcome: Outcome) {
        *self.outcome.lock() = Some(outcome);
        self.pollee.notify(Events::READABLE);
    }

    /// Whether the program runs, once that is decided.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        *self.outcome.lock()
    }
}

impl File for Launch {
    fn poll(&self) -> Events {
        match self.outcome() {
            Some(_) => Events::READABLE,
            None => Events::empty(),
        }
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.pollee)
    }

    fn label(&self) -> String {
        String::from("anon_inode:[launch]")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
