//! Links that come and go while the machine runs (`sietch network connect`, `disconnect`).
//!
//! The host has led the machine's card to one more network, on which the machine has a station and addresses of its own: a
//! VNIC over the card, as the records say that the image would have at a start (`linux::links`). What is refused is a
//! sentence at the output, and what was done before it stays: who asked takes it back by the VNIC's name. Where the VNIC is
//! refused nothing is done: another one may have its name.
//!
//! It is a process, as a copy is, since changes of links wait for one another.

use alloc::string::ToString;
use alloc::vec::Vec;

use agent::{Request, Task};
use mach::mem::fallible::{TryGrow, TryPush};
use mm::io::Source;
use sync::Result;
use task::ExitStatus;
use vfs::file::OpenFile;

/// The status of a change of which something was refused.
const STATUS_REFUSED: u8 = 1;

/// What is to be done.
pub(crate) enum LinkChange {
    /// Of these lines, which are records.
    Add(Vec<u8>),
    /// Of VNICs with these names, a line each.
    Remove(Vec<u8>),
}

impl LinkChange {
    /// The one that `request` asks for; `None` if it asks for something else.
    ///
    /// Errors: `OutOfMemory`.
    pub(crate) fn of(request: &Request<'_>) -> Result<Option<Self>> {
        let make = match request.task {
            Task::AddLinks => Self::Add,
            Task::RemoveLinks => Self::Remove,
            Task::Run | Task::Send { .. } | Task::Receive => return Ok(None),
        };
        let mut lines = Vec::new();
        for line in request.arguments {
            lines.make_room(line.len())?;
            lines.extend_from_slice(line);
            lines.try_push(b'\n')?;
        }
        Ok(Some(make(lines)))
    }

    /// Does it. Who reads `output` may have gone; then nobody hears what was refused.
    pub(crate) fn run(self, output: &OpenFile) -> ExitStatus {
        let mut status = 0;
        let mut complain = |why: &str| {
            status = STATUS_REFUSED;
            say(output, why);
        };
        match self {
            Self::Add(records) => add(&records, &mut complain),
            Self::Remove(names) => remove(&names, &mut complain),
        }
        ExitStatus::Exited(status)
    }
}

/// A link, which the first record is of, with its addresses, which are for no other one that has its name.
fn add(records: &[u8], complain: &mut dyn FnMut(&str)) {
    if has_ipv6(records) {
        net::start6();
    }
    let end = records.iter().position(|byte| *byte == b'\n');
    let (link, addresses) = records.split_at(end.unwrap_or(records.len()));
    let mut is_made = true;
    net::restore_links(link, &mut |why| {
        is_made = false;
        complain(why);
    });
    if is_made {
        // They begin with the end of the first line, so that their lines keep their numbers.
        net::restore_links(addresses, complain);
    }
}

/// Whether an address is among them that a machine whose networks had none of IPv6 could not take.
fn has_ipv6(records: &[u8]) -> bool {
    let mut lines = records.split(|byte| *byte == b'\n');
    lines.any(|line| line.starts_with(b"address\t") && line.contains(&b':'))
}

fn remove(names: &[u8], complain: &mut dyn FnMut(&str)) {
    let names = names.split(|byte| *byte == b'\n');
    for name in names.filter(|name| !name.is_empty()) {
        match core::str::from_utf8(name).map(net::remove_vnic) {
            Ok(Ok(())) => {}
            Ok(Err(why)) => complain(&why.to_string()),
            Err(_) => complain("that is no name"),
        }
    }
}

/// A sentence and the end of its line.
fn say(output: &OpenFile, sentence: &str) {
    for mut bytes in [sentence.as_bytes(), b"\n"] {
        while !bytes.is_empty() {
            match output.write(&mut Source::kernel(bytes)) {
                Ok(count) if count > 0 => bytes = bytes.get(count..).unwrap_or_default(),
                _ => return,
            }
        }
    }
}
