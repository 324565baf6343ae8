//! `sietch compose`: starts, ends and shows the machines of a compose file, each by a command that a user could type.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Take};
use std::os::unix::process::CommandExt;
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
use crate::health::Health;
use crate::log::{Lines, PIECE_BYTES};
use crate::networks::Store;
use crate::state::{self, Folder, Settings};

const POLL: Duration = Duration::from_millis(100);
/// How long a network's last machine may take to leave it.
const LEAVING: Duration = Duration::from_secs(10);
/// How old a machine is, in seconds, that is asked about its health and has written nothing down yet.
const FIRST_HEALTH_S: u64 = 5;

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
    started.and(stop_all(project)).map(|()| 0)
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
        let is_so = loop {
            if is_interrupted.load(Ordering::Relaxed) {
                return Ok(());
            }
            match state_of(other, *condition)? {
                Some(is_so) => break is_so,
                None => thread::sleep(POLL),
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
    let served = settings.as_ref().filter(|own| own.is_served());
    match (condition, served) {
        (Condition::Started, _) => Ok(Some(true)),
        (Condition::Completed, Some(_)) => Ok(None),
        (Condition::Completed, None) => Ok(Some(settings.is_some_and(|own| own.status() == 0))),
        (Condition::Healthy, Some(settings)) => health_of(service, settings),
        (Condition::Healthy, None) => Ok(Some(false)),
    }
}

/// What the session of a machine that runs has heard.
fn health_of(service: &Service, settings: &Settings) -> Result<Option<bool>, Failure> {
    // What is written down is of the machine before, if it is about to be started again.
    if settings.is_restarting {
        return Ok(None);
    }
    let health = Health::read(Folder::of(&service.machine).path());
    match health.as_ref().map(|health| health.status.as_str()) {
        Some("healthy") => Ok(Some(true)),
        Some("unhealthy") => Ok(Some(false)),
        Some(_) => Ok(None),
        None if state::now_s() < settings.started_s + FIRST_HEALTH_S => Ok(None),
        None => Err(Failure::Compose {
            sentence: format!(
                "{} is never healthy: neither the file nor its image has a health check.",
                service.machine
            ),
        }),
    }
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

/// Ends what runs, each before those that it depends on; all of them, whatever happens to one.
fn stop_all(project: &Project) -> Result<(), Failure> {
    let stopped = project.services.iter().rev().map(stop);
    stopped.fold(Ok(()), Result::and)
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
    let stopped = succeed(&mut sietch(["stop", machine])?);
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
    file: Option<Take<File>>,
    lines: Lines,
}

/// Shows what services wrote, each line with its service; with `follow` until all have ended or `is_interrupted`.
fn show(project: &Project, follow: bool, is_interrupted: &AtomicBool) {
    let services = project.services.iter();
    let mut logs: Vec<Log> = services.map(|service| Log::open(service, follow)).collect();
    let names = project.services.iter().map(|own| own.name.len());
    let width = names.max().unwrap_or(0);
    let is_over = || is_interrupted.load(Ordering::Relaxed);
    loop {
        // Looked at before the logs, so that last words are shown too.
        let is_served = |service: &Service| {
            let settings = Folder::of(&service.machine).settings();
            settings.is_some_and(|settings| settings.is_served())
        };
        let goes_on = follow && project.services.iter().any(is_served);
        // A piece of each in turn: one that is written fast keeps none of the others waiting.
        while show_pieces(&mut logs, width) && !is_over() {}
        if !goes_on || is_over() {
            return logs.iter_mut().for_each(|log| log.end(width));
        }
        thread::sleep(POLL);
    }
}

/// Whether there was any.
fn show_pieces(logs: &mut [Log], width: usize) -> bool {
    let shown = logs.iter_mut().map(|log| log.show_piece(width));
    shown.fold(false, |any, is_shown| any | is_shown)
}

impl<'a> Log<'a> {
    /// Of what there is now only, unless it is followed.
    fn open(service: &'a Service, follow: bool) -> Self {
        let file = File::open(Folder::of(&service.machine).console_log()).ok();
        let len = |file: &File| file.metadata().map_or(0, |known| known.len());
        Self {
            service,
            file: file.map(|file| {
                let len = if follow { u64::MAX } else { len(&file) };
                file.take(len)
            }),
            lines: Lines::default(),
        }
    }

    /// Shows what is new, [`PIECE_BYTES`] at the most; whether there was something.
    fn show_piece(&mut self, width: usize) -> bool {
        let Some(file) = &mut self.file else {
            return false;
        };
        let mut piece = vec![0; PIECE_BYTES];
        let len = file.read(&mut piece).unwrap_or(0);
        let name = &self.service.name;
        self.lines
            .add(&piece[..len], |line| print(name, line, width));
        len > 0
    }

    fn end(&mut self, width: usize) {
        let name = &self.service.name;
        self.lines.end(|line| print(name, line, width));
    }
}

fn print(service: &str, line: &[u8], width: usize) {
    let text = String::from_utf8_lossy(line);
    println!(
        "{service:<width$} | {}",
        text.trim_end_matches(['\n', '\r'])
    );
}

/// This command again, with these arguments. Ctrl-C at our terminal is for us: we end what it began.
fn sietch<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Result<Command, Failure> {
    let this = env::current_exe().map_err(Failure::file("sietch"))?;
    let mut command = Command::new(this);
    command.args(words).process_group(0);
    Ok(command)
}

fn output(command: &mut Command) -> Result<Output, Failure> {
    command.stdin(Stdio::null()).output().map_err(Failure::Lost)
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
