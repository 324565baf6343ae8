//! `sietch doctor`: checks this host and says what is missing and how to get it.

use std::fs::OpenOptions;

use qemu::{Accel, Acceleration, Qemu};
use serde::Serialize;

use crate::bootable::tools;
use crate::failure::Failure;
use crate::flags::OutputFlags;
use crate::kernel_file;
use crate::networks;
use crate::oci;
use crate::snapshots;
use crate::state::{self, Folder};
use crate::volumes;

/// One check's result. The tag and the sentence are the fields of `--output json`.
#[derive(Serialize)]
#[serde(tag = "state", content = "sentence", rename_all = "lowercase")]
enum Finding {
    /// All is well: the fact.
    #[serde(rename = "ok")]
    Fine(String),
    /// Works with less: what and how to improve it.
    Note(String),
    /// Does not work: what and how to get it.
    Missing(String),
    /// Is there and cannot be used: what and the way out.
    Damaged(String),
}

/// Runs the command: status 1 if something is missing or damaged.
pub fn doctor(output: &OutputFlags) -> Result<u8, Failure> {
    let checks = [
        qemu(),
        acceleration(),
        kernel(),
        passt(),
        virtiofsd(),
        tap(),
        image_tools(),
        file_system_tools(),
    ];
    let findings = checks.into_iter().chain(leftovers()).chain(damages());
    let findings: Vec<Finding> = findings.collect();
    output.list(&findings, |findings| {
        for finding in findings {
            match finding {
                Finding::Fine(fact) => println!("ok       {fact}"),
                Finding::Note(note) => println!("note     {note}"),
                Finding::Missing(what) => println!("missing  {what}"),
                Finding::Damaged(what) => println!("damaged  {what}"),
            }
        }
    })?;
    let is_bad = |finding: &Finding| matches!(finding, Finding::Missing(_) | Finding::Damaged(_));
    Ok(u8::from(findings.iter().any(is_bad)))
}

fn qemu() -> Finding {
    match Qemu::find().and_then(|qemu| qemu.major()) {
        Ok(major) => Finding::Fine(format!("QEMU {major} is there.")),
        Err(error) => Finding::Missing(error.to_string()),
    }
}

fn acceleration() -> Finding {
    match Acceleration::choose(Accel::Auto) {
        Ok(Acceleration::Kvm) => Finding::Fine("KVM runs machines at full speed.".into()),
        _ => Finding::Note(
            "KVM is missing, so machines are emulated: use a host whose /proc/cpuinfo shows vmx or svm and whose /dev/kvm you may open.".into(),
        ),
    }
}

fn kernel() -> Finding {
    match kernel_file::find() {
        Ok(path) => Finding::Fine(format!("The kernel is built: {}.", path.display())),
        Err(failure) => Finding::Missing(failure.to_string()),
    }
}

fn passt() -> Finding {
    match qemu::passt::is_installed() {
        true => Finding::Fine("passt leads ports into machines (-p), for many connections.".into()),
        false => Finding::Note(
            "passt is missing, so QEMU's own network serves -p, a few connections at a time: install passt (`make setup` does it as root on Debian).".into(),
        ),
    }
}

fn virtiofsd() -> Finding {
    match qemu::virtiofsd::program() {
        Some(_) => Finding::Fine("virtiofsd serves folders (-v FOLDER:GUEST:virtiofs).".into()),
        None => Finding::Note(
            "virtiofsd is missing, so -v FOLDER:GUEST:virtiofs does not work: install virtiofsd (Debian's name), or let QEMU serve folders.".into(),
        ),
    }
}

fn tap() -> Finding {
    match OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
        Ok(_) => Finding::Fine("Tap interfaces can be used.".into()),
        Err(_) => Finding::Note(
            "/dev/net/tun cannot be opened, so --net tap=... does not work: run as root, or keep to --net user.".into(),
        ),
    }
}

/// Removes what commands left that were killed, where the next command does not.
fn leftovers() -> Option<Finding> {
    let removed = state::abandoned().into_iter();
    let remove = |folder: &Folder| matches!(folder.remove_if(Folder::is_abandoned), Ok(true));
    let removed = removed.filter(remove).count();
    (removed > 0).then(|| {
        Finding::Note(format!(
            "What was left of {removed} machines whose start was cut off is removed."
        ))
    })
}

/// What is there and cannot be read, each with the way out.
fn damages() -> Vec<Finding> {
    let images = oci::of_user().and_then(|store| Ok(store.list()?)).err();
    let networks = networks::Store::of_user().map_or_else(|_| Vec::new(), |own| own.damaged());
    let networks = networks
        .into_iter()
        .map(|name| Failure::NetworkDamaged { name });
    let snapshots = snapshots::damaged().into_iter();
    let all = images.into_iter().chain(networks).chain(snapshots);
    all.map(|failure| Finding::Damaged(failure.to_string()))
        .collect()
}

fn file_system_tools() -> Finding {
    match volumes::tools::missing().as_slice() {
        [] => {
            Finding::Fine("e2fsprogs make and check volumes (sietch volume, -v NAME:/data).".into())
        }
        missing => Finding::Note(format!(
            "There are no volumes (sietch volume, -v NAME:/data) without {}: install e2fsprogs.",
            missing.join(", ")
        )),
    }
}

fn image_tools() -> Finding {
    let packages = tools::missing_packages();
    match packages.is_empty() {
        true => {
            Finding::Fine("GRUB makes images that a PC boots (sietch build --format iso).".into())
        }
        false => Finding::Note(format!(
            "GRUB or a helper is missing, so `sietch build` makes no images that a PC boots: install {}.",
            packages.join(" ")
        )),
    }
}
