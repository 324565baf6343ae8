//! Why a machine does not start: each a sentence with the way out.

use std::io;
use std::path::PathBuf;

/// What keeps a machine from starting.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No QEMU on the search path.
    #[error("QEMU is missing: install qemu-system-x86 (`make setup` does it as root on Debian).")]
    QemuMissing,
    /// A QEMU from before the version that we build on.
    #[error(
        "QEMU {found} is too old, Sietch needs {needed} or newer: install qemu-system-x86 from your distribution's backports."
    )]
    QemuTooOld {
        /// The major version found.
        found: u32,
        /// The major version needed.
        needed: u32,
    },
    /// `--accel kvm` where it cannot work.
    #[error("KVM does not work here ({reason}): use --accel tcg or --accel auto.")]
    NoKvm {
        /// What is missing.
        reason: String,
    },
    /// A card of one queue at an interface of several: QEMU would leave frames in the others.
    #[error(
        "The tap interface {interface} has several queues and the card only one: make the interface without `multi_queue`, or choose --nic virtio or igb."
    )]
    OneQueue {
        /// The host's interface.
        interface: String,
    },
    /// QEMU could not be started or ended at once.
    #[error("QEMU did not start: {0}.")]
    Start(#[source] io::Error),
    /// A folder that virtiofsd is to serve and does not.
    #[error(
        "virtiofsd does not serve {} ({reason}): install it, or leave :virtiofs out, and QEMU serves the folder.", folder.display()
    )]
    Virtiofsd {
        /// The folder.
        folder: PathBuf,
        /// Its last words, or what is missing.
        reason: String,
    },
    /// A snapshot that QEMU does not write or read.
    #[error(
        "QEMU does not take part in the snapshot: {reason}. One that was taken with another QEMU must be taken again."
    )]
    Snapshot {
        /// Its words.
        reason: String,
    },
    /// A file of the machine cannot be made.
    #[error("{} cannot be written: {source}.", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}
