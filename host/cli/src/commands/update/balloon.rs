//! `sietch update --memory`: a machine with a balloon is asked to have so much.
//!
//! It is a wish: the machine keeps what it needs, and takes back what it comes to need. So the command waits until no more
//! changes, and says what has come of it.

use qemu::{Machine, Qmp};

use crate::failure::Failure;
use crate::state::{Folder, Settings};

/// What is to be done.
pub(super) struct Balloon {
    name: String,
    machine: Machine,
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
                    machine,
                    wanted_mib,
                })
            }
            _ => Err(Failure::MemoryIsFixed { name }),
        }
    }

    /// Does it, as far as the machine can.
    pub(super) fn set(self) -> Result<(), Failure> {
        let wanted = u64::from(self.wanted_mib) << 20;
        let has =
            Qmp::connect(&self.machine.qmp_socket()).and_then(|mut qmp| qmp.set_balloon(wanted));
        let has = has.map_err(|reason| Failure::BalloonRefused {
            name: self.name.clone(),
            reason,
        })?;
        if has > wanted {
            eprintln!("sietch: {}", self.note(has >> 20));
        }
        Ok(())
    }

    fn note(&self, has_mib: u64) -> String {
        let Self {
            name, wanted_mib, ..
        } = self;
        format!(
            "The machine {name} needs more than {wanted_mib} MiB and has {has_mib} MiB now: use `sietch update -m {wanted_mib}M {name}` again when its programs need less."
        )
    }
}
