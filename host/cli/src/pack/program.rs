//! From what the user typed to an image with the program in it.

use std::env;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::closure::Closure;
use super::{Image, PackError, elf, profiles, shell};
use crate::failure::Failure;
use crate::flags::Addition;

/// Searched after `PATH`: servers often live where users' paths do not lead.
const MORE_FOLDERS: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin";
/// Scripts may have scripts as interpreters, but not deeper (execve(2)).
const SCRIPT_DEPTH_MAX: u32 = 4;
/// As much of a script's first line as Linux reads.
const SHEBANG_BYTES_MAX: usize = 256;

/// A packed program.
#[derive(Debug)]
pub struct Packed {
    /// The root file system with the program and what it needs.
    pub image: Image,
    /// The program's absolute path, on the host and in the image.
    pub path: PathBuf,
    /// Its name without folders.
    pub name: String,
}

impl Packed {
    /// Packs the program that `typed` names, with what it needs.
    pub fn new(typed: &str) -> Result<Self, PackError> {
        let path = find(typed)?;
        let mut image = Image::new();
        add_executable(&mut image, &path, 0)?;
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        profiles::add(&mut image, &name)?;
        shell::add_if_called(&mut image)?;
        Ok(Self { image, path, name })
    }

    /// An image without its program, which is on the machine's own disk.
    pub fn nothing(typed: &str) -> Self {
        let path = PathBuf::from(typed);
        let name = path.file_name().unwrap_or_default();
        Self {
            image: Image::new(),
            name: name.to_string_lossy().into_owned(),
            path,
        }
    }

    /// Adds what `--add` names.
    ///
    /// Errors: `NoSuchPath`, and what packing says.
    pub fn add_all(&mut self, additions: &[Addition]) -> Result<(), Failure> {
        for addition in additions {
            if !addition.host.exists() {
                return Err(Failure::NoSuchPath {
                    path: addition.host.clone(),
                    flag: "--add",
                });
            }
            self.add(&addition.host, &addition.guest)?;
        }
        Ok(())
    }

    /// Adds a file or folder of the host as `guest`. A program comes with what it
    /// needs, so that the first program can start it.
    pub fn add(&mut self, host: &Path, guest: &Path) -> Result<(), PackError> {
        let is_program = host.is_file() && elf::is_elf(&read_start(host)?);
        if is_program {
            Closure::new(&mut self.image).add_needs(host)?;
            let name = host
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            profiles::add(&mut self.image, &name)?;
            shell::add_if_called(&mut self.image)?;
        }
        self.image.add(host, guest)
    }
}

/// The absolute path of a program: as given if it has a slash, else searched.
pub fn find(typed: &str) -> Result<PathBuf, PackError> {
    let not_found = || PackError::ProgramNotFound { name: typed.into() };
    if typed.contains('/') {
        let path = std::path::absolute(typed).map_err(|_| not_found())?;
        return if path.is_file() {
            Ok(path)
        } else {
            Err(not_found())
        };
    }
    let search = env::var("PATH").unwrap_or_default() + ":" + MORE_FOLDERS;
    let mut candidates = env::split_paths(&search).map(|folder| folder.join(typed));
    candidates
        .find(|path| path.is_absolute() && path.is_file())
        .ok_or_else(not_found)
}

/// Adds a program or a script with all its interpreters.
fn add_executable(image: &mut Image, path: &Path, depth: u32) -> Result<(), PackError> {
    let start = read_start(path)?;
    if elf::is_elf(&start) {
        return Closure::new(image).add_program(path);
    }
    let not_a_program = || PackError::NotAProgram { path: path.into() };
    let interpreters = interpreters(&start).ok_or_else(not_a_program)?;
    if depth >= SCRIPT_DEPTH_MAX {
        return Err(not_a_program());
    }
    image.add_same(path)?;
    for interpreter in interpreters {
        let found = find(&interpreter).map_err(|_| PackError::InterpreterNotFound {
            interpreter: interpreter.clone(),
            wanted_by: path.into(),
        })?;
        add_executable(image, &found, depth + 1)?;
        let name = found
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        profiles::add(image, &name)?;
    }
    Ok(())
}

fn read_start(path: &Path) -> Result<Vec<u8>, PackError> {
    let mut start = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(SHEBANG_BYTES_MAX as u64).read_to_end(&mut start))
        .map_err(PackError::unreadable(path))?;
    Ok(start)
}

/// The programs that a `#!` line names: one, or `env` and the one that it starts.
fn interpreters(start: &[u8]) -> Option<Vec<String>> {
    let line = start
        .strip_prefix(b"#!")?
        .split(|&byte| byte == b'\n')
        .next()?;
    let line = String::from_utf8_lossy(line).into_owned();
    let mut words = line.split_whitespace();
    let first = words.next()?.to_string();
    let is_env = first.ends_with("/env");
    let started = words.find(|word| is_env && !word.starts_with('-') && !word.contains('='));
    Some(
        [Some(first), started.map(str::to_string)]
            .into_iter()
            .flatten()
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_names_its_interpreters() {
        assert_eq!(
            interpreters(b"#!/bin/sh -e\nx"),
            Some(vec!["/bin/sh".into()])
        );
        assert_eq!(
            interpreters(b"#! /usr/bin/env -S A=1 python3 -u\n"),
            Some(vec!["/usr/bin/env".into(), "python3".into()])
        );
        assert_eq!(interpreters(b"echo\n"), None);
    }

    #[test]
    fn a_name_is_searched_and_a_path_is_taken_as_it_is() {
        assert!(find("sh").expect("every host has one").is_absolute());
        let error = find("./no-such-program")
            .expect_err("not there")
            .to_string();
        assert!(error.starts_with("./no-such-program is neither"), "{error}");
    }

    #[test]
    fn a_text_file_is_not_a_program() {
        let error = Packed::new("/etc/passwd").expect_err("text").to_string();
        assert!(
            error.starts_with("/etc/passwd is not an ELF file"),
            "{error}"
        );
    }
}
