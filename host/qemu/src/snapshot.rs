//! Snapshots: machines that go on where another one was.
//!
//! A snapshot is a folder of two files: `memory`, byte for byte, and `devices`, which is everything else as QEMU writes
//! it. A machine that begins there maps the memory privately. So nothing of it is read before it is touched, and machines of one
//! snapshot share what none of them has written.
//!
//! QEMU leaves memory out of what it writes only where that is a file which it shares with others (`x-ignore-shared`). Machines
//! do not have such memory, which has no large pages. So the machine hands over, as if it moved to another host, to
//! a *template*: a second QEMU that never runs, whose memory is the file. The machine stands for as long as that takes, and
//! goes on.
//!
//! What cannot be kept: folders of the host, of which QEMU holds open files; and disks that the machine writes, since
//! they go on without the snapshot; and a balloon, by which a machine of the snapshot would have QEMU cut holes into the
//! snapshot's own file, which the others read ([`obstacle`]).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::Error;
use crate::machine::{Forwarder, Machine, Net, Origin, Stdio};
use crate::program::Qemu;
use crate::qmp::Qmp;
use crate::vm::Vm;

/// How long a machine of many gigabytes may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// The template's folder, in that of the machine.
const TEMPLATE: &str = "template";

/// What a machine has that is on a network, also if it joined that while it ran: two of one address would meet there.
pub const OWN_ADDRESS: &str = "an address of its own in a network";

/// The file with its memory.
pub(crate) fn memory(folder: &Path) -> PathBuf {
    folder.join("memory")
}

/// The file with the rest.
fn devices(folder: &Path) -> PathBuf {
    folder.join("devices")
}

/// Whether the snapshot of a machine with so much memory is there to its last byte: QEMU would be killed where memory has none.
pub fn is_whole(folder: &Path, memory_mib: u32) -> bool {
    let bytes = |path: PathBuf| fs::metadata(path).map_or(0, |file| file.len());
    bytes(memory(folder)) == u64::from(memory_mib) << 20 && bytes(devices(folder)) > 0
}

/// Where a template with that state folder is handed the state.
pub(crate) fn handover(state: &Path) -> PathBuf {
    state.join("handover")
}

/// What a machine has that no snapshot can hold, in words that follow "it has".
pub fn obstacle(machine: &Machine) -> Option<&'static str> {
    let writes = machine.disks.iter().any(|disk| !disk.read_only);
    match machine {
        _ if !machine.volumes.is_empty() => Some("a folder of the host"),
        _ if writes => Some("a disk that it writes"),
        _ if machine.net != Net::User && machine.net != Net::None => Some(OWN_ADDRESS),
        _ if machine.nodes > 1 => Some("several NUMA nodes"),
        _ if machine.has_balloon => Some("a balloon (--balloon)"),
        _ if machine.is_card_for_program => Some("a program that drives the card"),
        _ if machine.stdio != Stdio::Ports => Some("a kernel that is not ours"),
        _ => None,
    }
}

/// Writes a snapshot of a machine that runs, which goes on, into an empty folder.
///
/// # Errors
/// [`Error::Snapshot`] with QEMU's words, [`Error::Start`] if the template does not start.
pub fn save(qemu: &Qemu, machine: &Machine, folder: &Path) -> Result<(), Error> {
    let mut source = Qmp::connect(&machine.qmp_socket()).map_err(refused)?;
    let template = Machine {
        state: machine.state.join(TEMPLATE),
        origin: Origin::Template(folder.into()),
        forwards: Vec::new(),
        forwarder: Forwarder::Qemu,
        net: idle_net(machine),
        ..machine.clone()
    };
    let saved = write(qemu, &template, &mut source, folder);
    // It goes on whatever came of it.
    let went_on = source.resume().map_err(refused);
    // What is left of it there says nothing about the machine.
    let _ = fs::remove_dir_all(&template.state);
    saved.and(went_on)
}

/// Lets a machine go on that stands for a snapshot which nobody makes any more.
///
/// # Errors
/// [`Error::Snapshot`] with QEMU's words.
pub fn give_up(machine: &Machine) -> Result<(), Error> {
    let mut source = Qmp::connect(&machine.qmp_socket()).map_err(refused)?;
    // It would stand again at the end of one that goes on.
    let cancelled = source.cancel_migration(PATIENCE);
    let went_on = source.resume();
    let _ = fs::remove_dir_all(machine.state.join(TEMPLATE));
    cancelled.and(went_on).map_err(refused)
}

/// A network that has the card's state and leads nowhere. QEMU's own has state itself, which must find its like.
fn idle_net(machine: &Machine) -> Net {
    match (&machine.net, machine.forwarder) {
        (Net::User, Forwarder::Passt) => Net::Datagrams {
            local: machine.state.join("template/net"),
            remote: machine.state.join("template/nowhere"),
        },
        (net, _) => net.clone(),
    }
}

fn write(qemu: &Qemu, template: &Machine, source: &mut Qmp, folder: &Path) -> Result<(), Error> {
    let (vm, _console) = Vm::start(qemu, template)?;
    let mut target = vm.qmp().map_err(refused)?;
    let moved = move_state(source, &mut target, template, folder);
    moved.map_err(refused)
}

fn move_state(
    source: &mut Qmp,
    target: &mut Qmp,
    template: &Machine,
    folder: &Path,
) -> io::Result<()> {
    source.stop()?;
    source.migrate(
        &format!("unix:{}", handover(&template.state).display()),
        PATIENCE,
    )?;
    target.wait_for_migration(PATIENCE)?;
    target.leave_out_shared_memory()?;
    target.migrate(&format!("file:{}", devices(folder).display()), PATIENCE)
}

/// Gives a machine that stands where its snapshot was taken the state of its devices.
pub(crate) fn load(qmp: &mut Qmp, folder: &Path) -> Result<(), Error> {
    let mut loaded = || {
        qmp.leave_out_shared_memory()?;
        qmp.receive(&format!("file:{}", devices(folder).display()), PATIENCE)
    };
    loaded().map_err(refused)
}

fn refused(error: io::Error) -> Error {
    Error::Snapshot {
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;
    use std::process;
    use std::thread;

    use serde_json::{Value, json};

    use super::*;
    use crate::args::tests::machine;

    #[test]
    fn a_machine_goes_on_once_what_is_left_of_its_migration_has_ended() {
        let state = env::temp_dir().join(format!("sietch-give-up-{}", process::id()));
        fs::create_dir_all(state.join(TEMPLATE)).expect("room");
        let machine = Machine {
            state: state.clone(),
            ..machine()
        };
        let listener = UnixListener::bind(machine.qmp_socket()).expect("bound");
        let qemu = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a call");
            writeln!(stream, "{}", json!({"QMP": {}})).expect("it listens");
            let (mut asked, mut statuses) = (Vec::new(), ["cancelled", "active"].to_vec());
            for line in BufReader::new(stream.try_clone().expect("a file")).lines() {
                let line = line.expect("text");
                let request: Value = serde_json::from_str(&line).expect("JSON");
                let command = request["execute"].as_str().expect("a command").to_string();
                let status = match command.as_str() {
                    "query-migrate" => statuses.pop(),
                    _ => None,
                };
                asked.push(command);
                writeln!(stream, "{}", json!({"return": {"status": status}})).expect("it listens");
            }
            asked
        });
        give_up(&machine).expect("it goes on");
        let asked = qemu.join().expect("it ended");
        let expected = [
            "qmp_capabilities",
            "migrate_cancel",
            "query-migrate",
            "query-migrate",
            "cont",
        ];
        assert_eq!(asked, expected);
        assert!(!state.join(TEMPLATE).exists());
        fs::remove_dir_all(state).expect("ours");
    }

    #[test]
    fn what_a_snapshot_cannot_hold_is_named() {
        let kept = Machine {
            stdio: Stdio::Ports,
            volumes: Vec::new(),
            ..machine()
        };
        assert_eq!(obstacle(&kept), None);
        assert_eq!(
            obstacle(&Machine {
                net: Net::Tap {
                    interface: "tap0".into()
                },
                ..kept.clone()
            }),
            Some("an address of its own in a network")
        );
        assert_eq!(
            obstacle(&Machine {
                has_balloon: true,
                ..kept.clone()
            }),
            Some("a balloon (--balloon)")
        );
        assert_eq!(
            obstacle(&Machine {
                stdio: Stdio::Serial,
                ..kept
            }),
            Some("a kernel that is not ours")
        );
    }
}
