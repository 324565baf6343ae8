//! /proc/sysvipc: what there is of System V's kinds (proc(5)).

use core::fmt::{Result, Write};

use ipc::sysv::{Look, messages, semaphores, shared};
use sched::resched_point;
use vfs::pseudo::{Entry, Text};

/// The table's lines.
pub const ENTRIES: &[Entry] = &[
    Entry::new("sysvipc/msg", msg),
    Entry::new("sysvipc/sem", sem),
    Entry::new("sysvipc/shm", shm),
];

/// What `look` finds at each place up to the highest.
fn each<T>(
    highest: usize,
    look: impl Fn(Look) -> sync::Result<T>,
    mut line: impl FnMut(T) -> Result,
) -> Result {
    for place in 0..=highest {
        resched_point();
        if let Ok(facts) = look(Look::PlaceForAll(place as u32)) {
            line(facts)?;
        }
    }
    Ok(())
}

fn shm(text: &mut Text) -> Result {
    writeln!(
        text,
        "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  \
         cgid      atime      dtime      ctime                   rss                  swap"
    )?;
    each(shared::totals().1, shared::look, |facts| {
        let (common, owner) = (facts.common, facts.common.owner);
        writeln!(
            text,
            "{:10} {:10}  {:4o} {:21} {:5} {:5}  {:5} {:5} {:5} {:5} {:5} {:10} {:10} {:10} {:21} \
             {:21}",
            common.key,
            common.number,
            owner.mode,
            facts.bytes,
            facts.creator,
            facts.last,
            facts.attachments,
            owner.uid,
            owner.gid,
            owner.creator_uid,
            owner.creator_gid,
            facts.attached,
            facts.detached,
            facts.changed,
            0,
            0
        )
    })
}

fn sem(text: &mut Text) -> Result {
    writeln!(
        text,
        "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime"
    )?;
    each(semaphores::totals().1, semaphores::look, |facts| {
        let (common, owner) = (facts.common, facts.common.owner);
        writeln!(
            text,
            "{:10} {:10}  {:4o} {:10} {:5} {:5} {:5} {:5} {:10} {:10}",
            common.key,
            common.number,
            owner.mode,
            facts.length,
            owner.uid,
            owner.gid,
            owner.creator_uid,
            owner.creator_gid,
            facts.operated,
            facts.changed
        )
    })
}

fn msg(text: &mut Text) -> Result {
    writeln!(
        text,
        "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid  \
         stime      rtime      ctime"
    )?;
    each(messages::totals().1, messages::look, |facts| {
        let (common, owner, dates) = (facts.common, facts.common.owner, facts.dates);
        writeln!(
            text,
            "{:10} {:10}  {:4o}  {:10} {:10} {:5} {:5} {:5} {:5} {:5} {:5} {:10} {:10} {:10}",
            common.key,
            common.number,
            owner.mode,
            facts.bytes,
            facts.messages,
            dates.sender,
            dates.receiver,
            owner.uid,
            owner.gid,
            owner.creator_uid,
            owner.creator_gid,
            dates.sent,
            dates.received,
            dates.changed
        )
    })
}
