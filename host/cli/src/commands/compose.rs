//! `sietch compose`: starts, ends and shows the machines of a compose file, each by a command that a user could type.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::compose::Project;
use crate::compose::file::{self, OwnNetwork};
use crate::compose::service::{Condition, Service};
use crate::failure::Failure;
use crate::flags::{ComposeCommand, ComposeFlags, NetworkCreateFlags};
use crate::networks::Store;
use crate::state::{Folder, Settings};

const POLL: Duration = Duration::from_millis(100);
/// How long a network's last machine may take to leave it.
const LEAVING: Duration = Duration::from_secs(10);

/// Runs the command.
pub fn compose(flags: &ComposeFlags) -> Result<u8, Failure> {
    let failed = |sentence| Failure::Compose { sentence };
    let path = file::find(flags.file.as_deref()).map_err(failed)?;
    let project = Project::read(&path, flags.project_name.as_deref()).map_err(failed)?;
    match flags.command {
        ComposeCommand::Up { detach } => up(&project, detach),
        ComposeCommand::Down { volumes } => down(&project, volumes),
        ComposeCommand::Ps => Ok(ps(&project)),
        ComposeCommand::Logs { follow } => {
            show(&project, follow, &AtomicBool::new(false));
            Ok(0)
        }
    }
}

fn up(project: &Project, detach: bool) -> Result<u8, Failure> {
    let is_interrupted = Arc::new(AtomicBool::new(false));
    if !detach {
        for signal in [SIGINT, SIGTERM] {
            let noted = signal_hook::flag::register(signal, Arc::clone(&is_interrupted));
            noted.map_err(Failure::Lost)?;
        }
    }
    let store = Store::of_user()?;
    for network in &project.networks {
        make(&store, network)?;
    }
    let started = start_all(project, &is_interrupted);
    if detach {
        return started.map(|()| 0);
    }
    if started.is_ok() {
        show(project, true, &is_interrupted);
    }
    stop_all(project)?;
    started.map(|()| 0)
}

fn start_all(project: &Project, is_interrupted: &AtomicBool) -> Result<(), Failure> {
    for service in &project.services {
        wait_for_others(project, service, is_interrupted)?;
        if is_interrupted.load(Ordering::Relaxed) {
            break;
        }
        start(project, service)?;
    }
    Ok(())
}

fn make(store: &Store, network: &OwnNetwork) -> Result<(), Failure> {
    let flags = NetworkCreateFlags {
        subnet: network.subnet,
        ipv6: network.ipv6,
        name: network.name.clone(),
    };
    match store.create(&flags) {
        Ok(_) => eprintln!("sietch: network {} is made.", network.name),
        Err(Failure::NetworkThere { .. }) => {}
        Err(failure) => return Err(failure),
    }
    Ok(())
}

/// Starts a service that does not run as the file says.
fn start(project: &Project, service: &Service) -> Result<(), Failure> {
    let machine = &service.machine;
    if let Some(settings) = Folder::of(machine).settings().filter(Settings::is_served) {
        if settings.arguments == service.arguments {
            return Ok(());
        }
        stop(service)?;
    }
    eprintln!("sietch: {machine} starts.");
    let mut command = sietch(&service.arguments)?;
    succeed(command.current_dir(&project.folder)).map(drop)
}

/// Waits until those that `service` depends on are as it wants them.
fn wait_for_others(
    project: &Project,
    service: &Service,
    is_interrupted: &AtomicBool,
) -> Result<(), Failure> {
    for (name, condition) in &service.depends_on {
        let other = project.services.iter().find(|own| own.name == *name);
        let Some(other) = other else { continue };
        let begin = Instant::now();
        let patience = patience(other, *condition);
        let is_so = loop {
            if is_interrupted.load(Ordering::Relaxed) {
                return Ok(());
            }
            match state_of(other, *condition)? {
                Some(is_so) => break is_so,
                None if patience.is_some_and(|all| begin.elapsed() > all) => break false,
                None => thread::sleep(pause(other, *condition)),
            }
        };
        if !is_so {
            let sentence = match condition {
                Condition::Healthy => format!(
                    "{} is not healthy, so {} does not start.",
                    other.machine, service.machine
                ),
                _ => format!(
                    "{} has failed, so {} does not start.",
                    other.machine, service.machine
                ),
            };
            return Err(Failure::Compose { sentence });
        }
    }
    Ok(())
}

/// Whether a service is as `condition` has it; `None` if that may still come.
fn state_of(service: &Service, condition: Condition) -> Result<Option<bool>, Failure> {
    let settings = Folder::of(&service.machine).settings();
    let is_served = settings.as_ref().is_some_and(Settings::is_served);
    Ok(match (condition, &service.check) {
        (Condition::Completed, _) if is_served => None,
        (Condition::Completed, _) => Some(settings.is_some_and(|own| own.status() == 0)),
        (Condition::Healthy, _) if !is_served => Some(false),
        (Condition::Healthy, Some(check)) => {
            let words = ["exec", service.machine.as_str()].into_iter();
            let words = words.chain(check.command.iter().map(String::as_str));
            is_done_within(&mut sietch(words)?, check.timeout)?.then_some(true)
        }
        (Condition::Started, _) | (Condition::Healthy, None) => Some(true),
    })
}

fn patience(service: &Service, condition: Condition) -> Option<Duration> {
    let check = service.check.as_ref();
    check
        .filter(|_| condition == Condition::Healthy)
        .map(|check| check.patience)
}

fn pause(service: &Service, condition: Condition) -> Duration {
    let check = service.check.as_ref();
    let check = check.filter(|_| condition == Condition::Healthy);
    check.map_or(POLL, |check| check.interval)
}

fn down(project: &Project, with_volumes: bool) -> Result<u8, Failure> {
    stop_all(project)?;
    for service in &project.services {
        if Folder::of(&service.machine).settings().is_some() {
            succeed(&mut sietch(["rm", &service.machine])?)?;
        }
    }
    let store = Store::of_user()?;
    for network in &project.networks {
        remove(&store, &network.name)?;
    }
    for volume in project.volumes.iter().filter(|_| with_volumes) {
        let removed = output(&mut sietch(["volume", "rm", volume])?)?;
        // One that was never made is no failure.
        if removed.status.success() {
            eprintln!("sietch: volume {volume} is removed.");
        }
    }
    Ok(0)
}

/// Removes a network once the last machine has left it; one that others use stays.
fn remove(store: &Store, name: &str) -> Result<(), Failure> {
    let begin = Instant::now();
    loop {
        match store.remove(name) {
            Ok(()) => eprintln!("sietch: network {name} is removed."),
            Err(Failure::NoSuchNetwork { .. }) => {}
            Err(Failure::NetworkUsed { .. }) if begin.elapsed() < LEAVING => {
                thread::sleep(POLL);
                continue;
            }
            Err(failure) => return Err(failure),
        }
        return Ok(());
    }
}

/// Ends what runs, each before those that it depends on.
fn stop_all(project: &Project) -> Result<(), Failure> {
    project.services.iter().rev().try_for_each(stop)
}

fn stop(service: &Service) -> Result<(), Failure> {
    let machine = &service.machine;
    let is_served = || {
        Folder::of(machine)
            .settings()
            .is_some_and(|own| own.is_served())
    };
    if !is_served() {
        return Ok(());
    }
    eprintln!("sietch: {machine} stops.");
    let seconds = service.stop_seconds.to_string();
    let stopped = succeed(&mut sietch(["stop", "-t", &seconds, machine])?);
    // It may have ended by itself meanwhile.
    match is_served() {
        true => stopped.map(drop),
        false => Ok(()),
    }
}

fn ps(project: &Project) -> u8 {
    println!("{:<16} {:<24} {:<14} PORTS", "SERVICE", "NAME", "STATUS");
    for service in &project.services {
        let settings = Folder::of(&service.machine).settings();
        let status = match &settings {
            None => "-".to_string(),
            Some(settings) if settings.is_served() => "Up".into(),
            Some(settings) => format!("Exited ({})", settings.status()),
        };
        let ports = settings.map(|settings| settings.ports.join(", "));
        let (name, machine) = (&service.name, &service.machine);
        let row = format!(
            "{name:<16} {machine:<24} {status:<14} {}",
            ports.unwrap_or_default()
        );
        println!("{}", row.trim_end());
    }
    0
}

/// A service's log, as far as it was shown.
struct Log<'a> {
    service: &'a Service,
    file: Option<File>,
    /// A line that has not ended.
    begun: Vec<u8>,
}

/// Shows what services wrote, each line with its service; with `follow` until all have ended or `is_interrupted`.
fn show(project: &Project, follow: bool, is_interrupted: &AtomicBool) {
    let mut logs: Vec<Log> = project
        .services
        .iter()
        .map(|service| Log {
            service,
            file: File::open(Folder::of(&service.machine).console_log()).ok(),
            begun: Vec::new(),
        })
        .collect();
    let width = project
        .services
        .iter()
        .map(|own| own.name.len())
        .max()
        .unwrap_or(0);
    loop {
        // Looked at before the logs, so that last words are shown too.
        let is_served = |service: &Service| {
            let settings = Folder::of(&service.machine).settings();
            settings.is_some_and(|settings| settings.is_served())
        };
        let goes_on = follow && project.services.iter().any(is_served);
        logs.iter_mut().for_each(|log| log.show(width));
        if !goes_on || is_interrupted.load(Ordering::Relaxed) {
            return logs.iter_mut().for_each(|log| log.end(width));
        }
        thread::sleep(POLL);
    }
}

impl Log<'_> {
    fn show(&mut self, width: usize) {
        let Some(file) = &mut self.file else { return };
        let mut fresh = Vec::new();
        if file.read_to_end(&mut fresh).is_err() {
            return;
        }
        self.begun.extend(fresh);
        while let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.begun.drain(..=end).collect();
            self.print(&line, width);
        }
    }

    fn end(&mut self, width: usize) {
        let line = std::mem::take(&mut self.begun);
        if !line.is_empty() {
            self.print(&line, width);
        }
    }

    fn print(&self, line: &[u8], width: usize) {
        let text = String::from_utf8_lossy(line);
        println!(
            "{:<width$} | {}",
            self.service.name,
            text.trim_end_matches(['\n', '\r'])
        );
    }
}

/// This command again, with these arguments.
fn sietch<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Result<Command, Failure> {
    let this = env::current_exe().map_err(Failure::file("sietch"))?;
    let mut command = Command::new(this);
    command.args(words);
    Ok(command)
}

fn output(command: &mut Command) -> Result<Output, Failure> {
    command.stdin(Stdio::null()).output().map_err(Failure::Lost)
}

/// Whether the command ends well in that time; it is ended after it.
fn is_done_within(command: &mut Command, patience: Duration) -> Result<bool, Failure> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().map_err(Failure::Lost)?;
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(Failure::Lost)? {
            return Ok(status.success());
        }
        if begin.elapsed() > patience {
            // It may have ended right now, which is late all the same.
            let _ = child.kill();
            let _ = child.wait();
            return Ok(false);
        }
        thread::sleep(POLL);
    }
}

/// Fails with the command's own sentence if it does.
fn succeed(command: &mut Command) -> Result<Output, Failure> {
    let output = output(command)?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
    let lost = || Failure::Lost(io::ErrorKind::BrokenPipe.into());
    match said.strip_prefix("sietch: ") {
        Some(sentence) => Err(Failure::Compose {
            sentence: sentence.into(),
        }),
        None if said.is_empty() => Err(lost()),
        None => Err(Failure::Compose { sentence: said }),
    }
}
