//! The administrator's tools, as a library: `dladm`, `flowadm` and `ipadm` for links, flows and addresses,
//! `netstat` and `kstat` for sockets, routes and counters, `prstat` for where the time of threads goes,
//! `use` for what is short, `tcpretrans`, `tcptimewait` and `tcpdrop` for trouble with TCP, `linkdrop` for frames that links drop, `vsaadm` for areas of disks that programs own.
//!
//! Each command is a module with its arguments and one function. It asks the kernel by a
//! [`Kernel`] about links and by [`Files`] about all else, and talks by a [`Console`], so that tests run the same commands against a
//! simulated card. What is to outlast a restart is kept in a file ([`keep`]).
//!
//! Exit codes: 0 done, 1 refused or failed, with one sentence on standard error that says
//! why; 2 the arguments make no sense.
//!
//! Not here: what links are (`core/link`) and how they are asked for (`core/linkctl`).
#![forbid(unsafe_code)]

mod ask;
mod device;
pub mod dladm;
mod files;
pub mod flowadm;
pub mod ipadm;
pub mod keep;
pub mod kstat;
pub mod linkdrop;
pub mod netstat;
pub mod prstat;
mod refusals;
pub mod resources;
mod settings;
mod table;
pub mod tcpwatch;
mod terminal;
pub mod vsaadm;
mod watch;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use linkctl::{Answer, Request};

pub use device::Device;
pub use files::Files;

/// Who answers.
pub trait Kernel {
    /// The answer, or a sentence that says why there is none.
    fn call(&mut self, request: &Request) -> Result<Answer, String>;
}

/// Whom a command talks to.
pub trait Console {
    /// Says it on standard output; false if nobody listens any more.
    fn print(&mut self, text: &str) -> bool;
    /// Whether standard output is a screen.
    fn is_terminal(&self) -> bool;
    /// Says it on standard error.
    fn complain(&mut self, text: &str);
    /// Lets so many seconds pass; false if the command is to end.
    fn wait(&mut self, seconds: u32) -> bool;
}

/// What a command works with.
pub struct World<'a> {
    /// Who answers.
    pub kernel: &'a mut dyn Kernel,
    /// Who has the kernel's files.
    pub files: &'a mut dyn Files,
    /// Whom to talk to.
    pub console: &'a mut dyn Console,
}

/// The command was refused or failed.
pub const FAILED: u8 = 1;
/// The arguments make no sense.
pub const USAGE: u8 = 2;

/// What a tool's `main` does: its arguments, the kernel's device and the terminal.
pub fn start(tool: fn(&[String], &mut World<'_>) -> u8) -> ExitCode {
    let arguments: Vec<String> = std::env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let mut world = World {
        kernel: &mut device::SystemDevice::default(),
        files: &mut files::SystemFiles,
        console: &mut terminal::Terminal,
    };
    ExitCode::from(tool(&arguments, &mut world))
}

/// Reads a tool's arguments, the first of which is its name, and runs the command.
fn run<P: Parser>(
    arguments: &[String],
    world: &mut World<'_>,
    command: impl FnOnce(P, &mut World<'_>) -> Result<(), String>,
) -> u8 {
    let parsed = match P::try_parse_from(arguments) {
        Ok(parsed) => parsed,
        Err(error) => return explain(&error, world),
    };
    match command(parsed, world) {
        Ok(()) => 0,
        Err(sentence) => {
            let tool = P::command().get_name().to_string();
            world.console.complain(&format!("{tool}: {sentence}\n"));
            FAILED
        }
    }
}

/// Help that was asked for is no complaint.
fn explain(error: &clap::Error, world: &mut World<'_>) -> u8 {
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp => {
            world.console.print(&text);
            0
        }
        _ => {
            world.console.complain(&text);
            USAGE
        }
    }
}
