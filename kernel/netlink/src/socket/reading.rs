//! What a program reads: a datagram that waits, or else the dump's next one.
//!
//! A dump's datagram is as large as the largest buffer that the program has read into, within
//! bounds (Linux does so too: old programs read a page and take nothing cut).

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use netlink::Progress;

use super::NetlinkSocket;
use crate::answer;
use crate::dump::Dumping;
use crate::endpoint::queue::Datagram;
use sync::poll::Events;
use sync::{Error, Result};
use vfs::file::File;
use vfs::socket::MessageFlags;

/// Smallest room for a datagram: what Linux begins with.
const ROOM_MIN: usize = 3776;
/// Largest room for a datagram.
const ROOM_MAX: usize = 32 << 10;

impl NetlinkSocket {
    /// The next datagram: one that waits, or the dump's next.
    pub(super) fn next(&self, flags: MessageFlags) -> Result<Arc<Datagram>> {
        loop {
            if let Some(error) = self.endpoint.take_overrun() {
                return Err(error);
            }
            if let Some(datagram) = self.take(flags) {
                return Ok(datagram);
            }
            if self.go_on_dumping() {
                continue;
            }
            let how = self.endpoint.options.receive_wait(flags.blocking());
            self.endpoint
                .pollee
                .queue
                .wait(how.ok_or(Error::WouldBlock)?, || {
                    self.poll()
                        .intersects(Events::IN | Events::ERR)
                        .then_some(())
                })?;
        }
    }

    fn take(&self, flags: MessageFlags) -> Option<Arc<Datagram>> {
        let mut queue = self.endpoint.queue.lock();
        match flags.contains(MessageFlags::PEEK) {
            true => queue.first(),
            false => queue.pop(),
        }
    }

    /// Queues the dump's next datagram; false if there is no dump.
    fn go_on_dumping(&self) -> bool {
        let mut place = self.dump.lock();
        // Another reader may have been faster.
        if !self.endpoint.queue.lock().is_empty() {
            return true;
        }
        let Some(dumping) = place.as_mut() else {
            return false;
        };
        let room = self.room_seen.load(Ordering::Relaxed);
        let mut progress = Progress::TooLarge;
        let mut produced = produce(dumping, room.clamp(ROOM_MIN, ROOM_MAX), &mut progress);
        if progress == Progress::TooLarge {
            produced = produce(dumping, ROOM_MAX, &mut progress);
        }
        if !matches!(progress, Progress::More { .. }) {
            *place = None;
        }
        drop(place);
        match produced {
            Some(datagram) => self.endpoint.push(datagram),
            None => self.endpoint.lose(),
        }
        true
    }
}

/// Has the dump fill a datagram of at most `room` bytes; none without memory or if it has nothing.
fn produce(dumping: &mut Dumping, room: usize, progress: &mut Progress) -> Option<Datagram> {
    let bytes = answer::datagram(room, |to| {
        *progress = dumping.fill(to);
        Ok(())
    });
    let bytes = bytes.ok().filter(|bytes| !bytes.is_empty())?;
    Some(Datagram { bytes, group: 0 })
}
