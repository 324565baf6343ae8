//! `sietch run`: packs a program and runs it in a machine.
//!
//! With `-d` the command starts itself again without a terminal ([`background`]), waits until that machine is
//! listed, and leaves. So there is one way to serve a machine, not two.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::mem;
use std::path::Path;
use std::time::{Duration, Instant};

use qemu::report::Ending;
use qemu::{Accel, Acceleration, Machine, Net, Prepared, Protocol, Qemu};

use super::{background, dry_run, images, life, rm};
use crate::absent::Search;
use crate::events;
use crate::failure::Failure;
use crate::flags::{AccelFlag, Mount, NetFlag, OnUnhealthy, Publish, RestartPolicy, RunFlags};
use crate::health::{self, Check};
use crate::kernel_file;
use crate::machine_plan::{self, GuestConfig, Plan};
use crate::networks::{self, Live, Place};
use crate::oci::{self, Container};
use crate::pack::program;
use crate::processes;
use crate::profile::{Format, Recorder, Wish};
use crate::session::{Served, Session, StopRules};
use crate::signals;
use crate::snapshots::Snapshot;
use crate::state::{self, Folder, Settings};
use crate::stdio::{Console, Stdio as ProgramStdio};
use crate::terminal::{self, RawTerminal};
use crate::turn::Turn;
use crate::volumes::{self, Attached};

/// Runs the command.
pub fn run(flags: &RunFlags) -> Result<u8, Failure> {
    let turn = Turn::of_this_process();
    match background::name() {
        Some(name) if turn.restarts > 0 => run_again(flags, turn, &name),
        _ => run_once(flags),
    }
}

/// Starts a machine that has ended once more. That it does not start is an end, too, after which its policy decides.
fn run_again(flags: &RunFlags, turn: Turn, name: &str) -> Result<u8, Failure> {
    let folder = Folder::of(name);
    if folder.is_wished_to_stop() {
        folder.note_no_restart()?;
        life::remove_numbers(&flags.life);
        return Ok(0);
    }
    let image = folder.own_settings().and_then(|settings| settings.image);
    let failure = match run_once(flags) {
        Err(failure) => failure,
        ended => return ended,
    };
    eprintln!("sietch: {failure}");
    let status = failure.status();
    let next = turn.next(flags.life.restart, &folder, status, Duration::ZERO);
    folder.note_end(status, next.is_some())?;
    events::note(name, "die", Some(status));
    if let Some(next) = next {
        next.begin(&folder)?;
    }
    clear_up(flags, &folder, image.as_deref())?;
    Ok(status)
}

fn run_once(flags: &RunFlags) -> Result<u8, Failure> {
    let detached = background::name();
    if flags.detach && detached.is_none() && !flags.dry_run {
        return detach(flags);
    }
    if let (Some(name), 0) = (&detached, Turn::of_this_process().restarts) {
        background::take_over(name)?;
    }
    if flags.life.restart != RestartPolicy::No && !flags.detach {
        return Err(Failure::RestartInForeground);
    }
    if let Some(snapshot) = &flags.from {
        return run_from(flags, snapshot);
    }
    let flags = &with_others_volumes(flags)?;
    let qemu = Qemu::find()?;
    let around = GuestConfig {
        console: match flags.dry_run {
            true => dry_run::CONSOLE,
            false => console(flags, detached.is_some())?,
        },
        ..GuestConfig::of(flags)?
    };
    let plan = Plan::new(&flags.program, &around)?;
    if flags.dry_run {
        return dry_run::print(flags, plan, &around, &qemu);
    }
    match flags.publish_all {
        true => serve(&publish_all(flags, &around)?, &qemu, &around, plan),
        false => serve(flags, &qemu, &around, plan),
    }
}

/// Starts the machine, and keeps it until it ends; its status.
fn serve(
    flags: &RunFlags,
    qemu: &Qemu,
    around: &GuestConfig,
    mut plan: Plan,
) -> Result<u8, Failure> {
    check_ports(flags)?;
    hint(flags, around, &plan);
    let (detached, turn) = (background::name(), Turn::of_this_process());
    let name = flags.name.as_deref().or(detached.as_deref());
    if let Some(container) = &around.container {
        container.make_volumes(flags)?;
    }
    let volumes = attach(flags, &mut plan)?;
    let (name, folder) = match &detached {
        // The parent took the folder, and our standard error leads into it.
        Some(name) => (name.clone(), Folder::of(name)),
        None => take(flags, name, &plan.name)?,
    };
    let mut machine = machine_plan::machine(flags, &plan, folder.path())?;
    volumes.add_to(&mut machine);
    around.add_to(&mut machine);
    let places = networks::join(&around.networks, flags, &name, &mut machine)?;
    let leases = networks::further(&places);
    let image = networks::with_links(mem::take(&mut plan.image), &leases);
    warn_of_emulation(flags);
    fs::write(&machine.initrd, &image).map_err(Failure::file(&machine.initrd))?;
    drop(image);
    let started = Started {
        search: plan.packed.map(|image| Search::of(image, flags)),
        qemu,
        machine: &machine,
        folder: &folder,
        console: plan.console,
        title: &plan.name,
        settings: Settings {
            restarts: turn.restarts,
            further_networks: networks::addresses(&leases),
            ..settings(flags, &name, around, &machine, &volumes)?
        },
        disks: Disks {
            volumes: Some(&volumes),
            container: around.container.as_ref(),
        },
        places,
    };
    // Volumes are held as long.
    started.serve(flags, turn)
}

/// Goes on from a snapshot.
fn run_from(flags: &RunFlags, snapshot: &str) -> Result<u8, Failure> {
    check_ports(flags)?;
    let (detached, turn) = (background::name(), Turn::of_this_process());
    let snapshot = Snapshot::of(snapshot)?;
    let saved = snapshot.saved()?;
    let (name, folder) = match &detached {
        Some(name) => (name.clone(), Folder::of(name)),
        None => take(flags, flags.name.as_deref(), snapshot.name())?,
    };
    let forwards = flags.publish.iter().map(|publish| publish.0).collect();
    let machine = snapshot.machine(&saved, forwards, folder.path())?;
    let mut labels = saved.settings.labels.clone();
    labels.extend(flags.life.labels()?);
    let started = Started {
        search: None,
        qemu: &Qemu::find()?,
        machine: &machine,
        folder: &folder,
        console: Console::Streams(ProgramStdio::of_files(
            saved.files,
            detached.is_none(),
            flags.habits.interactive,
        )),
        title: snapshot.name(),
        settings: Settings {
            name,
            ports: ports(&machine),
            labels,
            annotations: flags.life.annotations(),
            stop_signal: flags.life.stop_signal.or(saved.settings.stop_signal),
            stop_timeout_s: flags.life.stop_timeout.or(saved.settings.stop_timeout_s),
            restarts: turn.restarts,
            ..saved.settings
        }
        .of_now(),
        disks: Disks::default(),
        places: Vec::new(),
    };
    started.serve(flags, turn)
}

/// A machine that is about to start.
struct Started<'a> {
    qemu: &'a Qemu,
    machine: &'a Machine,
    folder: &'a Folder,
    console: Console,
    /// What its program is called.
    title: &'a str,
    /// Without QEMU's number.
    settings: Settings,
    disks: Disks<'a>,
    /// Where it is on networks.
    places: Vec<Place>,
    /// For what a packed program lacked.
    search: Option<Search>,
}

/// What QEMU keeps as long as it runs, whatever becomes of us.
#[derive(Clone, Copy, Default)]
struct Disks<'a> {
    volumes: Option<&'a Attached>,
    container: Option<&'a Container>,
}

impl Disks<'_> {
    /// Starts QEMU, which inherits them. Nobody else does: a switch lives longer than its machines, and passt may live longer
    /// than its own.
    fn keep_in<T>(self, start: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        self.volumes.map_or(Ok(()), Attached::inherit)?;
        self.container.map_or(Ok(()), Container::inherit)?;
        let started = start();
        self.volumes.map_or(Ok(()), Attached::withhold)?;
        self.container.map_or(Ok(()), Container::withhold)?;
        started
    }
}

impl Started<'_> {
    /// Keeps it until it ends; its status.
    fn serve(self, flags: &RunFlags, turn: Turn) -> Result<u8, Failure> {
        let (machine, folder, name) = (self.machine, self.folder, &self.settings.name);
        life::pin(&flags.life)?;
        let prepared = Prepared::new(machine)?;
        // From here on signals are heard soon, and the terminal is given back.
        let raw = RawTerminal::enter();
        let log = folder.console_log();
        let start = || Session::start(self.qemu, prepared, &log, self.console);
        let mut session = self.disks.keep_in(start)?;
        life::write_numbers(&flags.life, name, session.pid())?;
        if flags.program.strace {
            session.show_trace();
        }
        if let Console::Streams(stdio) = self.console {
            folder.write_plan(session.machine(), stdio.files)?;
        }
        let settings = self.settings.clone().with_qemu(session.pid());
        // Before it is listed, so that who finds it running finds it listening.
        Live::serve(self.places, session.machine(), &settings.name, flags);
        folder.write_started(settings.clone())?;
        if folder.is_wished_to_stop() {
            // Whoever stopped it while it was started again found nobody to ask.
            session.ender().end(OnUnhealthy::Stop);
        }
        events::note(name, "start", None);
        if let Some(check) = Check::of(&flags.health, settings.healthcheck.as_ref()) {
            let ender = session.ender();
            health::watch(name, folder, check, move |how| ender.end(how));
        }
        let recorder = recorder(flags, name, machine);
        let (start, viewers) = (Instant::now(), session.viewers());
        let served = session.serve(&stop_rules(flags, &settings))?;
        drop(raw);
        let status = status_of(&served, folder);
        let next = turn.next(flags.life.restart, folder, status, start.elapsed());
        let next = next.filter(|_| !served.was_asked);
        if let Err(failure) = folder.note_end(status, next.is_some()) {
            // How the program ended counts more than that it cannot be kept.
            eprintln!("sietch: {failure}");
        }
        events::note(name, "die", Some(status));
        viewers.end(status);
        if let Some(recorder) = recorder {
            recorder.finish();
        }
        remove_initrd(folder, machine);
        if status != state::STATUS_KILLED || !is_lost(&served) {
            tell(self.qemu, &served, self.title, machine);
        }
        if let Some(search) = self.search.filter(|_| !served.was_asked) {
            search.tell(&served.report, self.title);
        }
        if let Some(next) = next {
            // What it holds, volumes' locks too, goes with this process.
            next.begin(folder)?;
        }
        clear_up(flags, folder, settings.image.as_deref())?;
        Ok(status)
    }
}

/// Gives back what only its start needed.
fn remove_initrd(folder: &Folder, machine: &Machine) {
    // Or the next machine's folder comes between.
    let _lock = folder.lock();
    if !folder.is_of_another() {
        // One that goes on from a snapshot has none.
        let _ = fs::remove_file(&machine.initrd);
    }
}

/// How the machine is ended.
fn stop_rules<'a>(flags: &RunFlags, settings: &'a Settings) -> StopRules<'a> {
    StopRules {
        name: &settings.name,
        signal: settings.stop_signal,
        patience: settings.stop_patience(None),
        after: flags.life.timeout.map(Duration::from_secs),
    }
}

/// Says what may surprise the user.
fn hint(flags: &RunFlags, around: &GuestConfig, plan: &Plan) {
    let ports = around.container.as_ref();
    let ports = ports.and_then(|container| container.start.hint(flags));
    let hints = plan.hints.iter().chain(&ports);
    hints.for_each(|hint| eprintln!("sietch: {hint}"));
}

/// Whether its kernel had no time to say how it ended.
fn is_lost(served: &Served) -> bool {
    matches!(served.report.ending, Ending::Lost { .. })
}

/// Its status: of one that did not end when it was asked to, and was ended by force, that of a program that was killed.
fn status_of(served: &Served, folder: &Folder) -> u8 {
    let was_to_end = served.was_asked || folder.is_wished_to_stop();
    match is_lost(served) && was_to_end {
        true => state::STATUS_KILLED,
        false => served.report.status(),
    }
}

/// Says how the machine ended.
fn tell(qemu: &Qemu, served: &Served, program: &str, machine: &Machine) {
    if is_lost(served) {
        if let Err(is_too_old) = qemu.major() {
            // It knows devices less.
            eprintln!("sietch: {is_too_old}");
            return;
        }
        served
            .complaints
            .lines()
            .for_each(|line| eprintln!("sietch: {line}"));
    }
    for sentence in served.report.sentences(program, &machine.kernel) {
        eprintln!("sietch: {sentence}");
    }
}

/// Removes what is not to be kept of a machine that has ended; nothing of the next one of its name, which may be there.
fn clear_up(flags: &RunFlags, folder: &Folder, image: Option<&str>) -> Result<(), Failure> {
    life::remove_numbers(&flags.life);
    if folder.is_of_another() {
        return Ok(());
    }
    if flags.rm && folder.path().exists() {
        folder.remove_if(|folder| !folder.is_of_another())?;
    }
    if let Some(image) = image.filter(|_| flags.rmi) {
        remove_image(image);
    }
    Ok(())
}

/// With the mounts of the machines of `--volumes-from`.
fn with_others_volumes(flags: &RunFlags) -> Result<RunFlags, Failure> {
    let mut flags = flags.clone();
    for text in flags.volumes_from.clone() {
        let (name, is_read_only) = match text.strip_suffix(":ro") {
            Some(name) => (name, true),
            None => (text.strip_suffix(":rw").unwrap_or(&text), false),
        };
        let other = Folder::of(name).settings();
        let other = other.ok_or_else(|| Failure::NoSuchMachine { name: name.into() })?;
        let line = ["sietch".to_string()].into_iter().chain(other.arguments);
        let Ok(others) = RunFlags::of_line(line) else {
            return Err(Failure::NoSuchMachine { name: name.into() });
        };
        let mounts = others.volume.into_iter().map(|mount| Mount {
            read_only: mount.read_only || is_read_only,
            ..mount.within(&other.directory)
        });
        flags.volume.extend(mounts);
    }
    Ok(flags)
}

/// Takes a folder for a machine, that of another one with `--replace`.
fn take(flags: &RunFlags, name: Option<&str>, program: &str) -> Result<(String, Folder), Failure> {
    if let (true, Some(name)) = (flags.life.replace, name)
        && Folder::of(name).settings().is_some()
    {
        rm::rm_one(name, true)?;
    }
    Folder::take(name, program)
}

/// Removes an image that no other machine has; that one does is no failure.
fn remove_image(name: &str) {
    let _ = oci::of_user().and_then(|store| match images::is_used(&store, name) {
        true => Ok(()),
        false => Ok(store.remove(name).map(drop)?),
    });
}

/// The volumes that the machine has from now on, of which its kernel is told.
pub(super) fn attach(flags: &RunFlags, plan: &mut Plan) -> Result<Attached, Failure> {
    let attached = volumes::attach(flags)?;
    plan.command_line = attached.told_to_kernel(mem::take(&mut plan.command_line));
    for note in &attached.notes {
        eprintln!("sietch: {note}");
    }
    Ok(attached)
}

/// How the program reaches us: what it has at its descriptors is what we have at ours.
fn console(flags: &RunFlags, is_detached: bool) -> Result<Console, Failure> {
    let is_ours = kernel_file::is_ours(&kernel_file::find()?);
    Ok(match (is_ours, is_detached) {
        (false, _) => Console::Serial {
            is_terminal: !is_detached && terminal::is_terminal(),
        },
        (true, true) => Console::Streams(ProgramStdio::detached(
            flags.habits.interactive,
            flags.habits.tty,
        )),
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

/// Leads a free port of this host to each that the image or `--expose` names, and that none leads to yet.
fn publish_all(flags: &RunFlags, around: &GuestConfig) -> Result<RunFlags, Failure> {
    let mut flags = flags.clone();
    let of_image = around.container.iter();
    let of_image = of_image.flat_map(|container| container.start.exposed.clone());
    let exposed: Vec<String> = of_image.chain(flags.expose.clone()).collect();
    for port in exposed {
        let (number, protocol) = port.split_once('/').unwrap_or((&port, "tcp"));
        let is_led = |publish: &Publish| publish.0.guest_port.to_string() == number;
        if flags.publish.iter().any(is_led) {
            continue;
        }
        let free = qemu::free_tcp_port().map_err(Failure::Lost)?;
        let line = format!("{free}:{number}/{protocol}");
        flags.publish.extend(line.parse::<Publish>());
    }
    Ok(flags)
}

fn warn_of_emulation(flags: &RunFlags) {
    let is_auto = matches!(flags.accel, AccelFlag::Auto);
    if is_auto && matches!(Acceleration::choose(Accel::Auto), Ok(Acceleration::Tcg)) {
        eprintln!(
            "sietch: This host has no KVM, so the machine is emulated, which is slow (--accel tcg hides this)."
        );
    }
}

/// Ports that lead into a machine, for people.
fn ports(machine: &Machine) -> Vec<String> {
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
    ports.collect()
}

fn settings(
    flags: &RunFlags,
    name: &str,
    around: &GuestConfig,
    machine: &Machine,
    volumes: &Attached,
) -> Result<Settings, Failure> {
    let container = around.container.as_ref();
    let process = container.map(|container| &container.process);
    let mut labels = process
        .map(|process| process.labels.clone())
        .unwrap_or_default();
    labels.extend(flags.life.labels()?);
    let of_image = process.and_then(|process| signals::number_of(&process.stop_signal));
    Ok(Settings {
        name: name.to_string(),
        command: flags.program.command().to_vec(),
        qemu_pid: 0,
        qemu_mark: None,
        session_pid: std::process::id(),
        session_mark: processes::mark_of(std::process::id()),
        ports: ports(machine),
        network: match flags.first_net() {
            NetFlag::Network(on) => Some(on.name.clone()),
            _ => None,
        },
        further_networks: BTreeMap::new(),
        address: match machine.net {
            Net::Switched(place) => Some(place.address),
            _ => None,
        },
        kernel: machine.kernel.clone(),
        volumes: volumes.paths(),
        memory_mib: machine.memory_mib,
        started_s: state::now_s(),
        arguments: env::args().skip(1).collect(),
        directory: env::current_dir().unwrap_or_default(),
        labels,
        annotations: flags.life.annotations(),
        image: container.map(|container| container.image.clone()),
        image_id: container.map(|container| container.image_id.clone()),
        stop_signal: flags.life.stop_signal.or(of_image),
        stop_timeout_s: flags.life.stop_timeout,
        healthcheck: process.and_then(|process| process.healthcheck.clone()),
        restarts: 0,
        is_restarting: false,
        ended: None,
    })
}

/// What a machine is called that has no name of its own. An image is brought here already, for all to see how far
/// it is, or what is wrong with it.
fn machine_name(flags: &RunFlags) -> Result<String, Failure> {
    if let Some(snapshot) = &flags.from {
        return Snapshot::of(snapshot)?.saved().map(|_| snapshot.clone());
    }
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
    flags.life.labels()?;
    let (name, folder) = take(flags, flags.name.as_deref(), &program)?;
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    background::start(&name, &folder, &arguments, Path::new("."))?;
    println!("{name}");
    Ok(0)
}
