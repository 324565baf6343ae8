//! `sietch compose`: starts, ends and shows the machines of a compose file, each by a command that a user could type.

mod interrupt;
mod logs;

use std::env;
use std::ffi::OsStr;
use std::io;
use std::iter;
use std::os::unix::process::CommandExt;
use std::panic;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::compose::Project;
use crate::compose::file::{self, OwnNetwork};
use crate::compose::service::{Condition, Service};
use crate::failure::Failure;
use crate::flags::{ComposeCommand, ComposeFlags, NetworkCreateFlags, RunFlags};
use crate::health::Health;
use crate::networks::Store;
use crate::oci::Container;
use crate::state::{self, Folder, Settings};
use interrupt::Interrupt;

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
            logs::show(&project, follow);
            Ok(0)
        }
    }
}

fn up(project: &Project, detach: bool) -> Result<u8, Failure> {
    fetch_all(project)?;
    let interrupt = match detach {
        true => Interrupt::default(),
        false => Interrupt::of(project)?,
    };
    let store = Store::of_user()?;
    for network in &project.networks {
        make(&store, network)?;
    }
    let started = start_all(project, &interrupt);
    if detach {
        return started.map(|()| 0);
    }
    let ended = match started {
        Ok(()) => attend(project, &interrupt),
        Err(_) => stop_all(project),
    };
    started.and(ended).map(|()| 0)
}

/// Brings images before anything starts, as that may take long: whoever loses patience leaves nothing half done.
fn fetch_all(project: &Project) -> Result<(), Failure> {
    env::set_current_dir(&project.folder).map_err(Failure::file(&project.folder))?;
    for service in &project.services {
        if runs_as_described(service) {
            continue;
        }
        let line = iter::once("sietch").chain(service.arguments.iter().map(String::as_str));
        // It is a line of `run`, or the file would have been refused.
        if let Ok(flags) = RunFlags::of_line(line) {
            Container::of(&flags)?;
        }
    }
    Ok(())
}

fn start_all(project: &Project, interrupt: &Interrupt) -> Result<(), Failure> {
    for service in &project.services {
        wait_for_others(project, service, interrupt)?;
        if interrupt.is_there() {
            break;
        }
        start(project, service)?;
    }
    Ok(())
}

/// Shows what machines write until all have ended: by themselves, or as an interrupt asks them to.
fn attend(project: &Project, interrupt: &Interrupt) -> Result<(), Failure> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let ender = scope.spawn(|| {
            while !interrupt.is_there() && !is_over.load(Ordering::Relaxed) {
                thread::sleep(POLL);
            }
            stop_all(project)
        });
        logs::show(project, true);
        // If nobody reads any more, they end too.
        is_over.store(true, Ordering::Relaxed);
        ender
            .join()
            .unwrap_or_else(|panicked| panic::resume_unwind(panicked))
    })
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
    // One of an `up` that was killed goes on.
    Folder::of(machine).wait_for_start();
    if runs_as_described(service) {
        return Ok(());
    }
    stop(service)?;
    eprintln!("sietch: {machine} starts.");
    let mut command = sietch(&service.arguments)?;
    let started = succeed(command.current_dir(&project.folder));
    Folder::of(machine).wait_for_start();
    match started {
        // The same line of an `up` that was killed was faster.
        Err(_) if runs_as_described(service) => Ok(()),
        started => started.map(drop),
    }
}

/// Whether its machine runs, by the line that the file makes.
fn runs_as_described(service: &Service) -> bool {
    let settings = Folder::of(&service.machine).settings();
    let served = settings.filter(Settings::is_served);
    served.is_some_and(|settings| settings.arguments == service.arguments)
}

/// Waits until those that `service` depends on are as it wants them.
fn wait_for_others(
    project: &Project,
    service: &Service,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    for (name, condition) in &service.depends_on {
        let other = project.services.iter().find(|own| own.name == *name);
        let Some(other) = other else { continue };
        let is_so = loop {
            if interrupt.is_there() {
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
    // One of an `up` that was killed goes on.
    Folder::of(machine).wait_for_start();
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

/// That it runs, and whether it is well if somebody asks.
fn up_as(service: &Service) -> String {
    match Health::read(Folder::of(&service.machine).path()) {
        Some(health) => format!("Up ({})", health.status),
        None => "Up".into(),
    }
}

fn ps(project: &Project) -> u8 {
    println!("{:<16} {:<24} {:<16} PORTS", "SERVICE", "NAME", "STATUS");
    for service in &project.services {
        let settings = Folder::of(&service.machine).settings();
        let status = match &settings {
            None => "-".to_string(),
            Some(settings) if settings.is_served() => up_as(service),
            Some(settings) => format!("Exited ({})", settings.status()),
        };
        let ports = settings.map(|settings| settings.ports.join(", "));
        let (name, machine) = (&service.name, &service.machine);
        let row = format!(
            "{name:<16} {machine:<24} {status:<16} {}",
            ports.unwrap_or_default()
        );
        println!("{}", row.trim_end());
    }
    0
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
