//! What `--cidfile`, `--pidfile`, `--cpuset-cpus` and their kin do around a machine's life.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::failure::Failure;
use crate::flags::LifeFlags;

/// Lets QEMU, which inherits it, run on the CPUs that the user names.
pub fn pin(flags: &LifeFlags) -> Result<(), Failure> {
    let Some(list) = &flags.cpuset_cpus else {
        return Ok(());
    };
    let mut set = CpuSet::new();
    list.0.iter().for_each(|&cpu| set.set(cpu));
    sched_setaffinity(None, &set).map_err(|_| Failure::NoSuchCpus)
}

/// Writes down under which name and numbers the machine runs.
pub fn write_numbers(flags: &LifeFlags, name: &str, qemu: u32) -> Result<(), Failure> {
    if let Some(path) = &flags.cidfile {
        write_new(path, name)?;
    }
    let numbers = [
        (&flags.pidfile, qemu),
        (&flags.conmon_pidfile, std::process::id()),
    ];
    for (path, number) in numbers {
        if let Some(path) = path {
            fs::write(path, number.to_string()).map_err(Failure::file(path))?;
        }
    }
    if let Some(score) = flags.oom_score_adj {
        let path = format!("/proc/{qemu}/oom_score_adj");
        fs::write(&path, score.to_string()).map_err(Failure::file(path))?;
    }
    Ok(())
}

/// What tells of processes goes with them, but for the files that another machine has written meanwhile.
pub fn remove_numbers(flags: &LifeFlags) {
    let files = [&flags.pidfile, &flags.conmon_pidfile];
    for path in files.into_iter().flatten() {
        if !tells_of_another(path) {
            // It may be gone, which is as good.
            let _ = fs::remove_file(path);
        }
    }
}

/// Whether the file has the number of a process that is there, and not this one.
fn tells_of_another(path: &Path) -> bool {
    let number = fs::read_to_string(path).ok();
    let number = number.and_then(|text| text.trim().parse::<u32>().ok());
    number.is_some_and(|number| {
        number != std::process::id() && Path::new("/proc").join(number.to_string()).exists()
    })
}

/// Another machine's file is not written over; one with this name in it is this machine's, which was started again.
fn write_new(path: &Path, name: &str) -> Result<(), Failure> {
    if fs::read_to_string(path).is_ok_and(|former| former == name) {
        return Ok(());
    }
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    file.and_then(|mut file| file.write_all(name.as_bytes()))
        .map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Failure::CidfileExists { path: path.into() },
            _ => Failure::file(path)(error),
        })
}
