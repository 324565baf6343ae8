//! `sietch man` and `sietch completions`: made from the flags, so that they say what there is.

use std::fs;
use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::failure::Failure;
use crate::flags::{Cli, ManualFlags};

/// Writes all pages into a folder, or one to standard output.
pub fn man(flags: &ManualFlags) -> Result<u8, Failure> {
    if let Some(folder) = &flags.output {
        fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
            .map_err(Failure::file(folder))?;
        return Ok(0);
    }
    let mut whole = Cli::command();
    whole.build();
    let command = match &flags.command {
        None => Some(whole),
        Some(name) => whole.find_subcommand(name).cloned(),
    };
    let Some(command) = command else {
        let name = flags.command.clone().unwrap_or_default();
        return Err(Failure::NoSuchCommand { name });
    };
    print(|to| Man::new(command).render(to))
}

/// Prints what a shell reads to complete our lines.
pub fn completions(shell: Shell) -> Result<u8, Failure> {
    print(|to| {
        clap_complete::generate(shell, &mut Cli::command(), "sietch", to);
        Ok(())
    })
}

/// Who reads no further is no failure.
fn print(make: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Result<u8, Failure> {
    let mut text = Vec::new();
    make(&mut text).map_err(Failure::file("standard output"))?;
    let _ = io::stdout().write_all(&text);
    Ok(0)
}
