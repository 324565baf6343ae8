//! The program `sietch`: reads the command line and calls the command.

#![forbid(unsafe_code)]

use std::panic;
use std::process::{self, ExitCode};

use clap::FromArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use cli::commands;
use cli::defaults;
use cli::failure::Failure;
use cli::flags::{Cli, Command, from, refused};
use cli::state;

/// setrlimit(2).
const SIGXFSZ: i32 = 25;
/// The status of a program that SIGPIPE ends, as shells have it.
const NOBODY_READS: i32 = 128 + 13;

/// `println!` panics when nobody reads any more, as behind `| head`: then there is nothing left to be said.
fn end_without_reader() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let words = info.payload().downcast_ref::<String>();
        let is_closed = |words: &String| {
            words.starts_with("failed printing to stdout") && words.contains("Broken pipe")
        };
        match words.is_some_and(is_closed) {
            true => process::exit(NOBODY_READS),
            false => usual(info),
        }
    }));
}

fn main() -> ExitCode {
    end_without_reader();
    let grammar = match defaults::command() {
        Ok(grammar) => grammar,
        Err(failure) => return failed(&failure),
    };
    let parsed = grammar
        .try_get_matches()
        .and_then(|matches| Ok((Cli::from_arg_matches(&matches)?.command, matches)));
    let (command, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return unparsed(&error),
    };
    // A write beyond the user's limit (RLIMIT_FSIZE) fails then, and is told as such.
    let _ = signal_hook::flag::register(SIGXFSZ, Default::default());
    let ready = from::check(&matches).and_then(|()| state::claim_folders());
    if let Err(failure) = ready {
        return failed(&failure);
    }
    let result = match command {
        Command::Run(flags) => commands::run::run(&flags.settled()),
        Command::Build(flags) => commands::build::build(&flags),
        Command::Ps(flags) => commands::ps::ps(&flags),
        Command::Logs(flags) => commands::logs::logs(&flags),
        Command::Exec(flags) => commands::exec::exec(&flags),
        Command::Attach(flags) => cli::attach::client::attach(&flags),
        Command::Cp(flags) => commands::cp::cp(&flags),
        Command::Kill(flags) => commands::kill::kill(&flags),
        Command::Stop(flags) => commands::stop::stop(&flags),
        Command::Restart(flags) => commands::restart::restart(&flags),
        Command::Wait(flags) => commands::wait::wait(&flags),
        Command::Rm(flags) => commands::rm::rm(&flags),
        Command::Inspect(flags) => commands::inspect::inspect(&flags),
        Command::Rename(flags) => commands::rename::rename(&flags),
        Command::Update(flags) => commands::update::update(&flags),
        Command::Top(flags) => commands::top::top(&flags),
        Command::Stats(flags) => commands::stats::stats(&flags),
        Command::Events(flags) => commands::events::events(&flags),
        Command::Port(flags) => commands::port::port(&flags),
        Command::Profile(flags) => commands::profile::profile(&flags),
        Command::Wakeups(flags) => commands::wakeups::wakeups(&flags),
        Command::Snapshot(flags) => commands::snapshot::snapshot(&flags),
        Command::Snapshots(flags) => commands::snapshot::snapshots(&flags),
        Command::Volume(command) => commands::volume::volume(&command),
        Command::Network(command) => commands::network::network(&command),
        Command::Compose(flags) => commands::compose::compose(&flags),
        Command::Images(output) => commands::images::images(&output),
        Command::Pull(flags) => commands::images::pull(&flags),
        Command::Rmi(flags) => commands::images::rmi(&flags),
        Command::Doctor(output) => commands::doctor::doctor(&output),
        Command::Version(output) => commands::version::version(&output),
        Command::Man(flags) => commands::manual::man(&flags),
        Command::Completions { shell } => commands::manual::completions(shell),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        Err(failure) => failed(&failure),
    }
}

fn failed(failure: &Failure) -> ExitCode {
    eprintln!("sietch: {failure}");
    ExitCode::from(failure.status())
}

/// A line that is none: a flag or a command of docker's that we do not have has a sentence of its own, and docker's status.
fn unparsed(error: &clap::Error) -> ExitCode {
    let is_run = std::env::args()
        .nth(1)
        .is_some_and(|command| command == "run");
    let sentence = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(flag))) if is_run => {
            refused::sentence(flag)
        }
        (ErrorKind::InvalidSubcommand, _) => {
            let command = std::env::args().nth(1);
            command.and_then(|command| refused::command_sentence(&command))
        }
        _ => None,
    };
    let Some(sentence) = sentence else {
        // Where nobody reads it there is nothing to be done.
        let _ = error.print();
        return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(u8::MAX));
    };
    failed(&Failure::RefusedFlag(sentence))
}
