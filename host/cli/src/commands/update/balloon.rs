//! `sietch update --memory`: a machine with a balloon is asked to have so much.
//!
//! It is a wish: the machine keeps what it needs, and takes back what it comes to need. So the command waits until no more
//! changes, and says what has come of it.

use std::path::PathBuf;

use crate::failure::Failure;
use crate::state::{Folder, Settings};

/// What is to be done.
pub(super) struct Balloon {
    name: String,
    qmp_socket: PathBuf,
    wanted_mib: u32,
}

impl Balloon {
    /// Nothing is done yet.
    ///
    /// Errors: the machine has no balloon, or was started with less.
    pub(super) fn of(
        folder: &Folder,
        settings: &Settings,
        wanted_mib: u32,
    ) -> Result<Self, Failure> {
        let name = settings.name.clone();
        match folder.plan() {
            Some((machine, _)) if machine.has_balloon => {
                if wanted_mib > machine.memory_mib {
                    return Err(Failure::TooLittleMemory {
                        name,
                        memory_mib: machine.memory_mib,
                    });
                }
                Ok(Self {
                    name,
                    qmp_socket: machine.qmp_socket(),
                    wanted_mib,
                })
            }
            _ => Err(Failure::MemoryIsFixed { name }),
        }
    }

    /// Does it, as far as the machine can.
    pub(super) fn set(self) -> Result<(), Failure> {
        let wanted = u64::from(self.wanted_mib) << 20;
        let Self {
            name, wanted_mib, ..
        } = self;
        match qemu::set_balloon(&self.qmp_socket, wanted) {
            Ok(has) if has > wanted => eprintln!(
                "sietch: The machine {name} has {} MiB now, not {wanted_mib} MiB: it keeps what it needs, so use `sietch update -m {wanted_mib}M {name}` again when its programs need less.",
                has.div_ceil(1 << 20)
            ),
            Ok(has) if has < wanted => eprintln!(
                "sietch: The machine {name} has taken {} MiB so far, and takes the rest of {wanted_mib} MiB as soon as it comes to that.",
                has >> 20
            ),
            Ok(_) => {}
            Err(reason) => return Err(Failure::BalloonRefused { name, reason }),
        }
        Ok(())
    }
}
