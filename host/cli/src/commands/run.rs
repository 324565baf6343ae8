//! `sietch run`: packs a program and runs it in a machine.
//!
//! With `-d` the command starts itself again without a terminal ([`background`]), waits until that machine is
//! listed, and leaves. So there is one way to serve a machine, not two.

use std::env;
use std::fs;
use std::mem;
use std::path::Path;

use qemu::{Accel, Acceleration, Forwarder, Machine, Protocol, Qemu};

use super::background;
use crate::failure::Failure;
use crate::flags::{AccelFlag, RunFlags};
use crate::kernel_file;
use crate::machine_plan::{self, GuestConfig, Plan};
use crate::oci::Container;
use crate::pack::program;
use crate::profile::{Format, Recorder, Wish};
use crate::session::Session;
use crate::state::{self, Folder, Settings};
use crate::stdio::{Console, Stdio as ProgramStdio};
use crate::terminal::{self, RawTerminal};
use crate::volumes::{self, Attached};

/// Runs the command.
pub fn run(flags: &RunFlags) -> Result<u8, Failure> {
    let detached = background::name();
    if flags.detach && detached.is_none() && !flags.dry_run {
        return detach(flags);
    }
    let qemu = Qemu::find()?;
    let around = GuestConfig {
        console: console(detached.is_some())?,
        ..GuestConfig::of(flags)?
    };
    let mut plan = Plan::new(&flags.program, &around)?;
    if flags.dry_run {
        return dry_run(flags, plan, &around, &qemu);
    }
    check_ports(flags)?;
    let ports = around.container.as_ref();
    let ports = ports.and_then(|container| container.start.hint(flags));
    plan.hints
        .iter()
        .chain(&ports)
        .for_each(|hint| eprintln!("sietch: {hint}"));
    let name = flags.name.as_deref().or(detached.as_deref());
    if let Some(container) = &around.container {
        container.make_volumes(flags)?;
    }
    let volumes = attach(flags, &mut plan)?;
    let (name, folder) = match &detached {
        // The parent took the folder, and our standard error leads into it.
        Some(name) => (name.clone(), Folder::of(name)),
        None => Folder::take(name, &plan.name)?,
    };
    let mut machine = machine_plan::machine(flags, &plan, folder.path())?;
    volumes.add_to(&mut machine);
    around.add_to(&mut machine);
    warn_of_emulation(flags);
    fs::write(&machine.initrd, &plan.image).map_err(Failure::file(&machine.initrd))?;
    drop(plan.image);
    let raw = RawTerminal::enter();
    let mut session = Session::start(&qemu, &machine, &folder.console_log(), plan.console)?;
    if flags.program.strace {
        session.show_trace();
    }
    folder.write_settings(&settings(flags, &name, &machine, &volumes, session.pid()))?;
    let recorder = recorder(flags, &name, &machine);
    let (report, complaints) = session.serve()?;
    drop(raw);
    folder.note_end(report.status())?;
    if let Some(recorder) = recorder {
        recorder.finish();
    }
    let _ = fs::remove_file(&machine.initrd);
    if let qemu::report::Ending::Lost { .. } = report.ending {
        complaints
            .lines()
            .for_each(|line| eprintln!("sietch: {line}"));
    }
    for sentence in report.sentences(&plan.name, &machine.kernel) {
        eprintln!("sietch: {sentence}");
    }
    if flags.rm {
        folder.remove()?;
    }
    Ok(report.status())
}

/// The volumes that the machine has from now on, of which its kernel is told.
fn attach(flags: &RunFlags, plan: &mut Plan) -> Result<Attached, Failure> {
    let attached = volumes::attach(flags)?;
    plan.command_line = attached.told_to_kernel(mem::take(&mut plan.command_line));
    for note in &attached.notes {
        eprintln!("sietch: {note}");
    }
    Ok(attached)
}

/// How the program reaches us: what it has at its descriptors is what we have at ours.
fn console(is_detached: bool) -> Result<Console, Failure> {
    let is_ours = kernel_file::is_ours(&kernel_file::find()?);
    Ok(match (is_ours, is_detached) {
        (false, _) => Console::Serial {
            is_terminal: !is_detached && terminal::is_terminal(),
        },
        (true, true) => Console::Streams(ProgramStdio::DETACHED),
        (true, false) => Console::Streams(ProgramStdio::of_this_process()),
    })
}

/// Starts to profile if the user wants it.
fn recorder(flags: &RunFlags, name: &str, machine: &Machine) -> Option<Recorder> {
    let path = flags.profile.clone()?;
    Some(Recorder::start(Wish {
        name: name.into(),
        folder: machine.state.clone(),
        kernel: machine.kernel.clone(),
        waits: flags.off_cpu,
        format: Format::of_name(&path),
        path,
    }))
}

/// The line works by itself: QEMU's own network leads the ports, without a passt beside it.
fn dry_run(
    flags: &RunFlags,
    mut plan: Plan,
    around: &GuestConfig,
    qemu: &Qemu,
) -> Result<u8, Failure> {
    let volumes = attach(flags, &mut plan)?;
    let name = flags.name.as_deref().unwrap_or(&plan.name);
    let mut machine = machine_plan::machine(flags, &plan, Folder::of(name).path())?;
    volumes.add_to(&mut machine);
    around.add_to(&mut machine);
    machine.forwarder = Forwarder::Qemu;
    let args = machine.qemu_args(Acceleration::choose(machine.accel)?);
    let quoted: Vec<String> = args.iter().map(|arg| shell_quoted(arg)).collect();
    println!("{} {}", qemu.path.display(), quoted.join(" "));
    Ok(0)
}

/// Quotes an argument for a POSIX shell if it needs it.
fn shell_quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+%@".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        return argument.to_string();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

fn check_ports(flags: &RunFlags) -> Result<(), Failure> {
    for forward in flags.publish.iter().map(|publish| publish.0) {
        if !qemu::is_port_free(&forward) {
            let holder = qemu::holder_of_port(forward.host_port, forward.protocol);
            return Err(Failure::PortTaken {
                port: forward.host_port,
                holder: holder.unwrap_or_else(|| "another process".into()),
                suggestion: qemu::free_tcp_port().unwrap_or(0),
                guest_port: forward.guest_port,
            });
        }
    }
    Ok(())
}

fn warn_of_emulation(flags: &RunFlags) {
    let is_auto = matches!(flags.accel, AccelFlag::Auto);
    if is_auto && matches!(Acceleration::choose(Accel::Auto), Ok(Acceleration::Tcg)) {
        eprintln!(
            "sietch: This host has no KVM, so the machine is emulated, which is slow (--accel tcg hides this)."
        );
    }
}

fn settings(
    flags: &RunFlags,
    name: &str,
    machine: &Machine,
    volumes: &Attached,
    qemu_pid: u32,
) -> Settings {
    let ports = machine.forwards.iter().map(|forward| {
        let protocol = match forward.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        };
        format!(
            "{}:{}->{}/{protocol}",
            forward.host_ip, forward.host_port, forward.guest_port
        )
    });
    Settings {
        name: name.to_string(),
        command: flags.program.command().to_vec(),
        qemu_pid,
        session_pid: std::process::id(),
        ports: ports.collect(),
        kernel: machine.kernel.clone(),
        volumes: volumes.paths(),
        memory_mib: machine.memory_mib,
        started_s: state::now_s(),
        arguments: env::args().skip(1).collect(),
        directory: env::current_dir().unwrap_or_default(),
        ended: None,
    }
}

/// What a machine is called that has no name of its own. An image is brought here already, for all to see how far
/// it is, or what is wrong with it.
fn machine_name(flags: &RunFlags) -> Result<String, Failure> {
    if let Some(container) = Container::of(flags)? {
        return Ok(container.name);
    }
    let path = match flags.root.is_own() {
        true => flags.program.program().into(),
        false => program::find(flags.program.program())?,
    };
    let name = path.file_name().unwrap_or_default();
    Ok(name.to_string_lossy().into_owned())
}

/// Starts this command again in the background and waits until its machine runs.
fn detach(flags: &RunFlags) -> Result<u8, Failure> {
    let program = machine_name(flags)?;
    let (name, folder) = Folder::take(flags.name.as_deref(), &program)?;
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    background::start(&name, &folder, &arguments, Path::new("."))?;
    println!("{name}");
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        assert_eq!(shell_quoted("a=b,c"), "a=b,c");
        assert_eq!(shell_quoted("it's a b"), r"'it'\''s a b'");
        assert_eq!(shell_quoted(""), "''");
    }
}
