//! Process 1: what the host wants to run, and with what around it.
//!
//! The command line names the program (`init=`, percent-encoded); the file `/.sietch/run`
//! in the image tells its arguments, its environment, its working directory and whether a
//! terminal is at the console. Its records are `key=value` and end with a zero byte.

use alloc::vec;
use alloc::vec::Vec;

use kernel::exec::{self, Arguments, Start};
use kernel::file::{FdTable, OpenFile, StatusFlags};
use kernel::fs::{self, HowToOpen, Walk};
use kernel::io::Sink;
use kernel::task::{self, ExitStatus, Resource, Thread, family};
use kernel::tty::console::{self, Host};
use kernel::{Error, Result};
use mach::sync::Once;

use crate::errno::Errno;
use crate::{leave, strace};

const RUN_FILE: &[u8] = b"/.sietch/run";
/// Bytes of the run file that are read: arguments and environment have limits anyway.
const RUN_FILE_BYTES_MAX: usize = 8 << 20;

/// Status of a shell for a program that is not there, or cannot be run.
const STATUS_NOT_FOUND: u8 = 127;
const STATUS_NOT_EXECUTABLE: u8 = 126;

static PROGRAM: Once<Vec<u8>> = Once::new();

/// Makes process 1; it starts when the scheduler does. `program` is the path from the
/// command line; `trace` reports each call on the log.
///
/// Errors: `OutOfMemory`.
pub fn start(program: Vec<u8>, trace: bool) -> Result<()> {
    PROGRAM.call_once(|| program);
    let files = FdTable::default();
    let thread = task::start_init(begin, files.into()).ok_or(Error::OutOfMemory)?;
    if trace {
        strace::enable(&thread);
    }
    kernel::sched::launch(thread);
    Ok(())
}

/// The first thing that process 1 does.
fn begin(_: usize) -> ! {
    // There are no registers to start with: exec makes them.
    let _ = task::begin_thread();
    let thread = task::current();
    match set_up(&thread) {
        Ok(start) => {
            let mut regs = crate::exec::registers(start);
            leave::before_user(&thread, &mut regs, None);
            mach::task::enter_user(&regs)
        }
        Err(error) => {
            let errno = Errno::from(error);
            mach::klog!("cannot run the program error={}", errno.name());
            let found = errno != Errno::ENOENT;
            let status = if found {
                STATUS_NOT_EXECUTABLE
            } else {
                STATUS_NOT_FOUND
            };
            task::exit_thread(ExitStatus::Exited(status))
        }
    }
}

/// What the run file says.
#[derive(Default)]
struct Run {
    arguments: Vec<Vec<u8>>,
    environment: Vec<Vec<u8>>,
    folder: Vec<u8>,
    is_terminal: bool,
}

fn set_up(thread: &Thread) -> Result<Start> {
    let run = read_run_file()?;
    let host = Host::Terminal {
        rows: 0,
        columns: 0,
    };
    kernel::tty::init(if run.is_terminal { host } else { Host::Stream });
    open_console(thread)?;
    if run.is_terminal {
        // Process 1 leads its session from its birth.
        console::control_session(family::INIT);
    }
    if !run.folder.is_empty() {
        thread.fs.get().set_cwd(fs::resolve(
            None,
            &run.folder,
            Walk::FOLLOW | Walk::DIRECTORY,
        )?);
    }
    let path = PROGRAM.get().cloned().unwrap_or_default();
    let mut values = run.arguments;
    if values.is_empty() {
        values.push(path.clone());
    }
    let open = fs::open_for_exec(None, &path, Walk::FOLLOW)?;
    let arguments = Arguments {
        path,
        values,
        environment: run.environment,
    };
    exec::exec(open, arguments, &crate::exec::abi_entries())
}

/// Standard input, output and error are the console.
fn open_console(thread: &Thread) -> Result<()> {
    let open = OpenFile::new(console::open()?, StatusFlags::RDWR);
    let files = thread.files.get();
    let limit = thread.process.limits.soft(Resource::Files);
    for _ in 0..3 {
        files.insert(
            open.clone(),
            false,
            0,
            u32::try_from(limit).unwrap_or(u32::MAX),
        )?;
    }
    Ok(())
}

fn read_run_file() -> Result<Run> {
    let mut run = Run::default();
    let open = match fs::open(None, RUN_FILE, &HowToOpen::READ) {
        Err(Error::NotFound) => return Ok(run),
        other => other?,
    };
    let size = open.metadata()?.size as usize;
    let mut text = vec![0; size.min(RUN_FILE_BYTES_MAX)];
    let mut sink = Sink::kernel(&mut text);
    open.read(&mut sink)?;
    for record in text.split(|&byte| byte == 0) {
        let Some(split) = record.iter().position(|&byte| byte == b'=') else {
            continue;
        };
        let (key, value) = record.split_at(split);
        let value = value.get(1..).unwrap_or_default().to_vec();
        match key {
            b"arg" => run.arguments.push(value),
            b"env" => run.environment.push(value),
            b"cwd" => run.folder = value,
            b"tty" => run.is_terminal = value == b"1",
            _ => {}
        }
    }
    Ok(run)
}
