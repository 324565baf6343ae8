//! A descriptor that stands for a process (pidfd_open(2)): it is readable once the process
//! has ended, and names it even if the number has a new owner.

use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;
use core::fmt::Write;

use sync::poll::{Events, Pollee};
use sync::{Error, Result};

use super::Process;
use vfs::file::{File, FileRef, OpenFile};
use vfs::pseudo::Text;

struct PidFile {
    process: Arc<Process>,
}

/// A file that stands for `process`.
pub fn pid_file(process: Arc<Process>) -> FileRef {
    Arc::new(PidFile { process })
}

/// The process that `open` stands for.
///
/// Errors: `BadFile` if it is no such file.
pub fn process_of(open: &OpenFile) -> Result<Arc<Process>> {
    let file = open.file.as_any().downcast_ref::<PidFile>();
    file.map(|file| file.process.clone()).ok_or(Error::BadFile)
}

impl File for PidFile {
    fn poll(&self) -> Events {
        if self.process.has_ended() {
            Events::READABLE
        } else {
            Events::empty()
        }
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.process.ended)
    }

    fn describe(&self, text: &mut Text) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "Pid:\t{}", self.process.id());
    }

    fn label(&self) -> String {
        String::from("anon_inode:[pidfd]")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
