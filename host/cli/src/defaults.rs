//! Defaults of the user's own for some flags of `sietch run`: in the environment, or in a file by XDG's rules.
//!
//! What is typed wins over `SIETCH_MEMORY` and its kin, and those over `$XDG_CONFIG_HOME/sietch/config`
//! (`~/.config/sietch/config`), which has `memory = 512M` a line. Only flags that say how machines are in general can have
//! one: what a single machine is, its line says.

use std::env;
use std::fs;
use std::path::PathBuf;

use clap::{Command, CommandFactory};

use crate::failure::Failure;
use crate::flags::Cli;

/// Flags by clap's name for them, and their variables.
const FLAGS: [(&str, &str); 9] = [
    ("memory", "SIETCH_MEMORY"),
    ("cpus", "SIETCH_CPUS"),
    ("accel", "SIETCH_ACCEL"),
    ("machine", "SIETCH_MACHINE"),
    ("net", "SIETCH_NET"),
    ("nic", "SIETCH_NIC"),
    ("pull", "SIETCH_PULL"),
    ("stop_timeout", "SIETCH_STOP_TIMEOUT"),
    ("tz", "SIETCH_TZ"),
];

/// The command line's grammar, with the user's defaults.
///
/// Errors: a file that cannot be read, or that names other flags.
pub fn command() -> Result<Command, Failure> {
    let settings = match file() {
        Some(path) if path.exists() => {
            let text = fs::read_to_string(&path).map_err(Failure::file(&path))?;
            parse(&text).map_err(|line| Failure::BadConfiguration { path, line })?
        }
        _ => Vec::new(),
    };
    Ok(Cli::command().mut_subcommand("run", |run| {
        let run = FLAGS.iter().fold(run, |run, (flag, variable)| {
            run.mut_arg(*flag, |arg| arg.env(*variable).hide_env_values(true))
        });
        settings.into_iter().fold(run, |run, (flag, value)| {
            run.mut_arg(flag, |arg| arg.default_value(value))
        })
    }))
}

/// Where the file is, if it is anywhere.
fn file() -> Option<PathBuf> {
    let of = |name: &str| env::var_os(name).map(PathBuf::from);
    let folder = of("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let folder = folder.or_else(|| Some(of("HOME")?.join(".config")))?;
    Some(folder.join("sietch/config"))
}

/// Flags and values.
///
/// Errors: the line that is none.
fn parse(text: &str) -> Result<Vec<(&'static str, String)>, String> {
    let is_entry = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let setting = |line: &str| {
        let (name, value) = line.split_once('=')?;
        let name = name.trim().replace('-', "_");
        let known = FLAGS.iter().find(|(flag, _)| *flag == name)?;
        Some((known.0, value.trim().to_string()))
    };
    let lines = text.lines().map(str::trim).filter(is_entry);
    lines
        .map(|line| setting(line).ok_or_else(|| line.to_string()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_flags_values_and_comments() {
        let text = "# mine\n\nmemory = 512M\nstop-timeout=3\n";
        let wanted = vec![("memory", "512M".into()), ("stop_timeout", "3".into())];
        assert_eq!(parse(text), Ok(wanted));
        assert_eq!(parse("name = x"), Err("name = x".into()));
        assert_eq!(parse("memory"), Err("memory".into()));
    }

    #[test]
    fn each_flag_that_can_have_a_default_is_there() {
        let command = Cli::command();
        let run = command.find_subcommand("run").unwrap();
        for (flag, _) in FLAGS {
            assert!(
                run.get_arguments().any(|arg| arg.get_id() == flag),
                "{flag}"
            );
        }
    }
}
