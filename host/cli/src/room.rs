//! A host that has no room left for what a machine writes to its disks.
//!
//! Disks are sparse files, so a write may find none. QEMU then stops the machine before the program is told, and
//! nothing is lost; but nobody would start it again, and it would look as if it hung. So while there is little room
//! we ask QEMU whether it stopped, tell the user, and let it go on when there is room again.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use qemu::{Machine, Qmp};

/// As little as this is looked at more closely.
const LITTLE_BYTES: u64 = 64 << 20;
/// Room with which it is worthwhile to go on.
const ENOUGH_BYTES: u64 = 4 << 20;
const PERIOD: Duration = Duration::from_secs(1);

/// Watches over the machine's disks as long as this process lives.
pub(crate) fn watch(machine: &Machine) {
    let disks = machine.disks.iter().filter(|disk| !disk.read_only);
    let files: Vec<PathBuf> = disks.map(|disk| disk.file.clone()).collect();
    if files.is_empty() {
        return;
    }
    let mut watch = Watch {
        files,
        qmp_socket: machine.qmp_socket(),
        was_little: false,
        is_stopped: false,
    };
    thread::spawn(move || {
        loop {
            thread::sleep(PERIOD);
            watch.look();
        }
    });
}

struct Watch {
    files: Vec<PathBuf>,
    qmp_socket: PathBuf,
    was_little: bool,
    is_stopped: bool,
}

impl Watch {
    fn look(&mut self) {
        let (free, file) = self.least_room();
        let is_little = free < LITTLE_BYTES;
        // Once more after it was little: room may have come since the machine stopped.
        if (is_little || self.was_little) && !self.is_stopped {
            self.is_stopped = self.ask_whether_stopped();
            if self.is_stopped {
                eprintln!(
                    "sietch: The host has no room left for {}, so the machine waits: free some, and it goes on.",
                    file.display()
                );
            }
        }
        self.was_little = is_little;
        if self.is_stopped && free >= ENOUGH_BYTES && self.resume() {
            self.is_stopped = false;
            // It may be too little again.
            self.was_little = true;
            eprintln!("sietch: The host has room again, and the machine goes on.");
        }
    }

    /// The file whose file system has the least room.
    fn least_room(&self) -> (u64, PathBuf) {
        let room = |file: &PathBuf| {
            let room = rustix::fs::statvfs(file);
            room.map_or(u64::MAX, |room| room.f_bavail.saturating_mul(room.f_frsize))
        };
        let rooms = self.files.iter().map(|file| (room(file), file.clone()));
        rooms.min().unwrap_or((u64::MAX, PathBuf::new()))
    }

    /// A machine that is just ending answers nothing.
    fn ask_whether_stopped(&self) -> bool {
        let status = Qmp::connect(&self.qmp_socket).and_then(|mut qmp| qmp.status());
        status.is_ok_and(|status| status == "io-error")
    }

    fn resume(&self) -> bool {
        let resumed = Qmp::connect(&self.qmp_socket).and_then(|mut qmp| qmp.resume());
        resumed.is_ok()
    }
}
