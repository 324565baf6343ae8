//! The program that stands before the real one in disks for clouds, and applies what the cloud says
//! (`user/cloud-init`).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::flags::CloudInit;
use crate::kernel_file;
use crate::pack::{Packed, RunFile, elf};

/// Names the program, where it is not in the target folder.
const VARIABLE: &str = "SIETCH_CLOUD_INIT";
/// Where `make cloud-init` puts it, from the target folder.
const IN_TARGET: &str = "x86_64-unknown-linux-gnu/release/sietch-cloud-init";
pub(super) const IN_MACHINE: &str = "/.sietch/cloud-init";

/// Puts it into the program's image.
pub(super) fn add_to(packed: &mut Packed) -> Result<(), Failure> {
    let program = program()?;
    // As it is: it brings no libraries, and calls no shell.
    packed.image.add_folder("/.sietch", 0o700);
    Ok(packed.image.add(&program, Path::new(IN_MACHINE))?)
}

/// Has it started with the words that it needs to become `run`'s program.
pub(super) fn in_front(run: RunFile, program: &Path, asked: CloudInit) -> RunFile {
    let mut arguments = vec![IN_MACHINE.to_string(), "start".into()];
    if asked == CloudInit::Metadata {
        arguments.push("--metadata".into());
    }
    if let Some((uid, gid)) = run.user {
        arguments.extend(["--user".into(), format!("{uid}:{gid}")]);
    }
    arguments.push(program.to_string_lossy().into_owned());
    arguments.extend(run.arguments);
    RunFile {
        arguments,
        user: None,
        ..run
    }
}

fn program() -> Result<PathBuf, Failure> {
    let path = match env::var_os(VARIABLE) {
        Some(path) => PathBuf::from(path),
        None => kernel_file::built_or_installed(IN_TARGET),
    };
    let bytes = fs::read(&path).unwrap_or_default();
    let is_static = elf::is_elf(&bytes) && elf::needs(&path, &bytes)?.interpreter.is_none();
    match is_static {
        true => Ok(path),
        false => Err(Failure::NoCloudInit { path }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_keeps_its_words_and_gets_its_user_later() {
        let run = RunFile {
            arguments: vec!["redis-server".into(), "--save".into()],
            user: Some((7, 8)),
            folder: "/data".into(),
            ..RunFile::default()
        };
        let program = Path::new("/usr/bin/redis-server");
        let run = in_front(run, program, CloudInit::Metadata);
        let words = "/.sietch/cloud-init start --metadata --user 7:8 /usr/bin/redis-server redis-server --save";
        assert_eq!(run.arguments.join(" "), words);
        assert_eq!((run.user, run.folder.as_str()), (None, "/data"));
        let plain = in_front(RunFile::default(), program, CloudInit::Seed);
        assert_eq!(plain.arguments.len(), 3);
    }
}
