//! The program `sietch`: reads the command line and calls the command.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use cli::commands;
use cli::flags::{Cli, Command};

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(flags) => commands::run::run(&flags),
        Command::Build(flags) => commands::build::build(&flags),
        Command::Ps(flags) => commands::ps::ps(&flags),
        Command::Logs(flags) => commands::logs::logs(&flags),
        Command::Exec(flags) => commands::exec::exec(&flags),
        Command::Kill(flags) => commands::kill::kill(&flags),
        Command::Stop(flags) => commands::stop::stop(&flags),
        Command::Restart(flags) => commands::restart::restart(&flags),
        Command::Wait(flags) => commands::wait::wait(&flags),
        Command::Rm(flags) => commands::rm::rm(&flags),
        Command::Inspect(flags) => commands::inspect::inspect(&flags),
        Command::Port(flags) => commands::port::port(&flags),
        Command::Profile(flags) => commands::profile::profile(&flags),
        Command::Wakeups(flags) => commands::wakeups::wakeups(&flags),
        Command::Volume(command) => commands::volume::volume(&command),
        Command::Images => commands::images::images(),
        Command::Pull(flags) => commands::images::pull(&flags),
        Command::Rmi(flags) => commands::images::rmi(&flags),
        Command::Doctor => Ok(commands::doctor::doctor()),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            eprintln!("sietch: {failure}");
            ExitCode::from(failure.status())
        }
    }
}
