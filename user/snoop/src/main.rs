//! The program `snoop`: reads the command line and calls the library.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match snoop::run(&snoop::Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("snoop: {sentence}");
            ExitCode::FAILURE
        }
    }
}
