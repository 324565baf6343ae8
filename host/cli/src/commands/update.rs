//! `sietch update`: changes of a machine that runs.
//!
//! The host's CPUs that work for a machine are chosen by the affinity of QEMU's threads, which takes effect at once and without
//! rights, and lasts until QEMU ends. The machine keeps its virtual CPUs, which share what there is. Whether it is started again is
//! a word of its line ([`crate::line`]), and lasts. Its memory is changed by a device ([`balloon`]), until QEMU ends.

mod balloon;

use std::fs;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::failure::Failure;
use crate::flags::{RestartPolicy, RunFlags, UpdateFlags};
use crate::line;
use crate::state::{Folder, Settings};

use balloon::Balloon;

/// Runs the command.
pub fn update(flags: &UpdateFlags) -> Result<u8, Failure> {
    let has_change = flags.cpus.is_some()
        || flags.cpuset_cpus.is_some()
        || flags.restart.is_some()
        || flags.memory.is_some();
    if !has_change {
        return Err(Failure::NoUpdate);
    }
    for name in &flags.names {
        update_one(flags, name)?;
        println!("{name}");
    }
    Ok(0)
}

fn update_one(flags: &UpdateFlags, name: &str) -> Result<(), Failure> {
    let folder = Folder::of(name);
    let settings = folder.settings().filter(Settings::is_served);
    let settings = settings.ok_or_else(|| Failure::NoSuchMachine { name: name.into() })?;
    let balloon = match flags.memory {
        Some(memory) => Some(Balloon::of(&folder, &settings, memory.mib)?),
        None => None,
    };
    if let Some(policy) = flags.restart {
        check_restart(&settings, policy)?;
    }
    if let Some(cpus) = flags.cpus {
        let own = folder.plan().map_or(u8::MAX, |(machine, _)| machine.cpus);
        if cpus > own {
            return Err(Failure::TooFewCpus {
                name: name.into(),
                cpus: own,
            });
        }
        pin(settings.qemu_pid, &some_of(&settings, cpus, own)?)?;
    }
    if let Some(list) = &flags.cpuset_cpus {
        pin(settings.qemu_pid, &set_of(&list.0))?;
    }
    if let Some(policy) = flags.restart {
        line::change(name, |settings| Ok(with_policy(settings, policy)))?;
    }
    match balloon {
        Some(balloon) => balloon.set(),
        None => Ok(()),
    }
}

/// Whether somebody could start it again, by its own line.
///
/// Errors: `NotInBackground`; `RemovedAtItsEnd`.
fn check_restart(settings: &Settings, policy: RestartPolicy) -> Result<(), Failure> {
    let line = ["sietch".to_string()].into_iter();
    let line = line.chain(settings.arguments.iter().cloned());
    let name = settings.name.clone();
    match RunFlags::of_line(line) {
        Ok(flags) if flags.rm && policy != RestartPolicy::No => {
            Err(Failure::RemovedAtItsEnd { name })
        }
        Ok(flags) if flags.detach => Ok(()),
        _ => Err(Failure::NotInBackground { name }),
    }
}

/// The line of a machine with that policy, and as it was before if that is none.
fn with_policy(settings: &Settings, policy: RestartPolicy) -> Vec<String> {
    let told = policy.to_string();
    let is_given = policy != RestartPolicy::No;
    line::with(settings, "--restart", is_given.then_some(&told))
}

fn set_of(cpus: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(cpu));
    set
}

/// So many of the CPUs that the machine's session has; all, if there are as many as it has virtual ones. Machines begin at
/// different ones.
fn some_of(settings: &Settings, count: u8, own: u8) -> Result<CpuSet, Failure> {
    let all = sched_getaffinity(pid(settings.session_pid)).map_err(|_| Failure::NoSuchCpus)?;
    let usable: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|&cpu| all.is_set(cpu))
        .collect();
    if count >= own || usize::from(count) >= usable.len() {
        return Ok(all);
    }
    let first = settings.qemu_pid as usize % usable.len();
    let some = usable.iter().cycle().skip(first).take(usize::from(count));
    Ok(set_of(&some.copied().collect::<Vec<_>>()))
}

fn pid(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

/// All threads of a process; those that it makes later have what their maker has.
fn pin(process: u32, set: &CpuSet) -> Result<(), Failure> {
    let path = format!("/proc/{process}/task");
    let threads = fs::read_dir(&path).map_err(Failure::file(&path))?;
    let numbers = threads.flatten().filter_map(|thread| {
        let name = thread.file_name().into_string().ok()?;
        name.parse().ok()
    });
    let is_main = |&number: &u32| number == process;
    let (main, others): (Vec<u32>, Vec<u32>) = numbers.partition(is_main);
    for number in main {
        sched_setaffinity(pid(number), set).map_err(|_| Failure::NoSuchCpus)?;
    }
    for number in others {
        // One that has just ended needs none.
        let _ = sched_setaffinity(pid(number), set);
    }
    Ok(())
}
