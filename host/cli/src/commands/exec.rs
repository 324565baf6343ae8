//! `sietch exec`: runs a command in a machine that runs.

use std::env;

use agent::{Refusal, Request, Strings, Task, block};

use crate::agent::client;
use crate::failure::Failure;
use crate::flags::ExecFlags;
use crate::terminal::{self, RawTerminal};

/// Runs the command.
pub fn exec(flags: &ExecFlags) -> Result<u8, Failure> {
    if flags.tty && flags.interactive && !terminal::is_terminal() {
        return Err(Failure::NoTerminal);
    }
    let too_long = || client::refused(flags, Refusal::ArgumentsTooLong);
    let arguments = block(flags.command.iter().map(String::as_bytes)).ok_or_else(too_long)?;
    let environment = environment(flags);
    let environment = block(environment.iter().map(String::as_bytes)).ok_or_else(too_long)?;
    let request = Request {
        task: Task::Run,
        terminal: flags.tty.then(client::window),
        has_input: flags.interactive && !flags.detach,
        is_detached: flags.detach,
        user: flags.user.as_ref().map(|user| (user.uid, user.gid)),
        directory: flags.folder.as_deref().unwrap_or_default().as_bytes(),
        arguments: Strings::of_block(&arguments).ok_or_else(too_long)?,
        environment: Strings::of_block(&environment).ok_or_else(too_long)?,
    };
    let _raw = (flags.tty && flags.interactive)
        .then(RawTerminal::enter)
        .flatten();
    client::run(flags, &request)
}

/// What the command has beside what the machine's program was given.
fn environment(flags: &ExecFlags) -> Vec<String> {
    let of_host = |name: &str| env::var(name).ok().map(|value| format!("{name}={value}"));
    let mut words = Vec::new();
    if flags.tty {
        words.extend(of_host("TERM").or_else(|| Some("TERM=xterm".into())));
    }
    words.extend(
        flags
            .env
            .iter()
            .filter_map(|word| match word.contains('=') {
                true => Some(word.clone()),
                false => of_host(word),
            }),
    );
    words
}
