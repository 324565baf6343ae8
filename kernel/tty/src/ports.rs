//! The host's streams: ports of a device, by the names on which host and kernel agree.
//!
//! ```text
//! host ── socket ── QEMU ── virtio port ── HostStream ──┬── StreamFile (a file or pipe there)
//!                                                       └── Terminal   (a terminal there)
//! ```
//!
//! The device's buffers are the only queue: a program's read takes bytes out of them, and
//! a write puts bytes into them, under the device's lock. So what a program does not read
//! stays with the host, and a program that writes faster than the host reads waits.
//!
//! The port of messages has these. From the host: `W rows[2] columns[2]`, the window's new
//! size. To the host: `C descriptor[1] bytes[8]`, no program holds that descriptor's stream
//! any more, to which so many bytes were written. Numbers are little endian.
//!
//! Lock order: a terminal's lock, then the device's; pollees without either.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use hal::{BytePorts, HostEnd, PortNumber};
use mach::sync::{Once, Spin};
use mm::io::{Sink, Source};
use sync::poll::{Events, Pollee};
use sync::{Error, Result, Wait};
use task::signal::broken_pipe;

/// What one call reads at most: as much as waits in a pipe.
const READ_MAX: usize = 64 << 10;
/// Writes up to this size are not mixed with others' (POSIX' PIPE_BUF).
const ATOMIC_BYTES: usize = 4096;
/// `W rows columns`.
const WINDOW_BYTES: usize = 5;
/// `C descriptor bytes`.
const CLOSED_BYTES: usize = 10;

/// The machine has one device with ports to the host.
static DEVICE: Once<Spin<Box<dyn BytePorts + Send>>> = Once::new();
/// The machine is ending: what is written now comes too late. It ends as a whole.
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// A message from the host, as far as it has come. They come by one port.
static MESSAGE: Spin<Message> = Spin::new(Message {
    bytes: [0; WINDOW_BYTES],
    len: 0,
});

struct Message {
    bytes: [u8; WINDOW_BYTES],
    len: usize,
}

/// One stream of the host.
pub(super) struct HostStream {
    name: &'static [u8],
    /// Buffers for what comes and for what goes.
    incoming: usize,
    outgoing: usize,
    pub(super) pollee: Pollee,
    number: Once<PortNumber>,
    has_begun: AtomicBool,
    is_over: AtomicBool,
    /// Somebody found no room since the last look.
    lacked_room: AtomicBool,
    open_count: AtomicUsize,
    sent: AtomicU64,
}

/// The keys and the screen of a terminal. One port of the machine's device, as those below.
pub(super) static TERMINAL: HostStream = HostStream::new(b"sietch.terminal", 4, 8);
/// What descriptor 0 reads.
pub(super) static INPUT: HostStream = HostStream::new(b"sietch.stdin", 32, 0);
/// What descriptor 1 writes.
pub(super) static OUTPUT: HostStream = HostStream::new(b"sietch.stdout", 0, 8);
/// What descriptor 2 writes.
pub(super) static ERRORS: HostStream = HostStream::new(b"sietch.stderr", 0, 4);
/// Messages about the others.
pub(super) static MESSAGES: HostStream = HostStream::new(b"sietch.messages", 2, 2);

/// Frames about commands that enter the machine (`kernel/agent`).
pub(super) static AGENT: HostStream = HostStream::new(b"sietch.agent", 2, 2);

/// The stream of a descriptor that is no terminal.
pub(super) fn of_descriptor(number: usize) -> &'static HostStream {
    [&INPUT, &OUTPUT, &ERRORS][number]
}

pub(super) fn attach(device: Box<dyn BytePorts + Send>) {
    DEVICE.call_once(|| Spin::new(device));
}

/// Hears what the device has to say.
pub(super) fn service() {
    if let Some(device) = DEVICE.get() {
        device.lock().service();
    }
}

/// From now on nothing is written any more.
pub(super) fn take_no_more() {
    IS_ENDING.store(true, Ordering::SeqCst);
}

/// The window's newest size, if the host has told one.
pub(super) fn take_window_size() -> Option<(u16, u16)> {
    let mut message = MESSAGE.lock();
    let mut newest = None;
    loop {
        let Message { bytes, len } = &mut *message;
        *len += MESSAGES.take(&mut bytes[*len..]);
        if *len < WINDOW_BYTES {
            return newest;
        }
        *len = 0;
        if let [b'W', r0, r1, c0, c1] = *bytes {
            newest = Some((u16::from_le_bytes([r0, r1]), u16::from_le_bytes([c0, c1])));
        }
    }
}

impl HostStream {
    const fn new(name: &'static [u8], incoming: usize, outgoing: usize) -> Self {
        Self {
            name,
            incoming,
            outgoing,
            pollee: Pollee::new(),
            number: Once::new(),
            has_begun: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            lacked_room: AtomicBool::new(false),
            open_count: AtomicUsize::new(0),
            sent: AtomicU64::new(0),
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut dyn BytePorts, PortNumber) -> T) -> Option<T> {
        let number = *self.number.get()?;
        let mut device = DEVICE.get()?.lock();
        Some(work(&mut **device, number))
    }

    /// Whether the host has connected the stream, be it that it has let go already.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::SeqCst)
    }

    /// Whether the host has let go of its end. What it sent before is there.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Looks what has changed, and tells who waits for it.
    pub(super) fn serve(&self) {
        self.open_port();
        let host_end = self.with(|device, number| device.host_end(number));
        let (has_begun, is_over) = match host_end.unwrap_or_default() {
            HostEnd::Awaited => (false, false),
            HostEnd::Held => (true, false),
            HostEnd::LetGo => (true, true),
        };
        let had_begun = self.has_begun.swap(has_begun, Ordering::SeqCst);
        let was_over = self.is_over.swap(is_over, Ordering::SeqCst);
        let mut events = Events::empty();
        if (had_begun, was_over) != (has_begun, is_over) {
            events |= Events::READABLE | Events::WRITABLE | Events::HUP | Events::ERR;
        }
        if self.has_bytes() {
            events |= Events::READABLE;
        }
        if self.lacked_room.load(Ordering::SeqCst) && self.has_room() {
            self.lacked_room.store(false, Ordering::SeqCst);
            events |= Events::WRITABLE;
        }
        if !events.is_empty() || IS_ENDING.load(Ordering::SeqCst) {
            self.pollee.notify(events);
        }
    }

    /// Opens the port as soon as the device has named it.
    fn open_port(&self) {
        let Some(device) = DEVICE.get().filter(|_| self.number.get().is_none()) else {
            return;
        };
        let mut device = device.lock();
        if let Some(number) = device.find(self.name) {
            if device.open(number, self.incoming, self.outgoing).is_err() {
                return mach::klog!("no memory for the host's streams");
            }
            self.number.call_once(|| number);
        }
    }

    fn has_bytes(&self) -> bool {
        self.readable() != 0
    }

    /// Bytes that could be read at once.
    pub(super) fn readable(&self) -> usize {
        self.with(|device, number| device.readable(number))
            .unwrap_or(0)
    }

    /// Whether something can be written at once.
    pub(super) fn has_room(&self) -> bool {
        let has_room = self.with(|device, number| device.has_room(number)) == Some(true);
        has_room && !IS_ENDING.load(Ordering::SeqCst)
    }

    /// As [`has_room`](Self::has_room); if not, [`serve`](Self::serve) tells when there is.
    pub(super) fn has_room_or_wants_it(&self) -> bool {
        self.has_room() || {
            self.lacked_room.store(true, Ordering::SeqCst);
            self.has_room()
        }
    }

    /// Whether the host has everything, or will never have it.
    pub(super) fn is_flushed(&self) -> bool {
        let is_flushed = self.with(|device, number| device.is_flushed(number));
        is_flushed != Some(false) || self.is_over()
    }

    /// Takes bytes that have come; returns how many.
    pub(super) fn take(&self, to: &mut [u8]) -> usize {
        let mut done = 0;
        let mut take = |bytes: &[u8]| {
            let count = bytes.len().min(to.len() - done);
            to[done..done + count].copy_from_slice(&bytes[..count]);
            done += count;
            count
        };
        while self.with(|device, number| device.receive(number, &mut take)) > Some(0) {}
        done
    }

    /// Sends bytes, as far as there is room; returns how many.
    pub(super) fn put(&self, bytes: &[u8]) -> usize {
        let mut fill = |room: &mut [u8]| {
            let count = bytes.len().min(room.len());
            room[..count].copy_from_slice(&bytes[..count]);
            count
        };
        let sent = self.with(|device, number| device.send(number, &mut fill));
        sent.unwrap_or(0)
    }

    /// read(2): 0 once the host has let go and everything was read.
    pub(super) fn read(&self, to: &mut Sink<'_>, nonblocking: bool) -> Result<usize> {
        if to.remaining() == 0 {
            return Ok(0);
        }
        loop {
            // Looked at first: what came before the end is found by the look afterwards.
            let is_over = self.is_over();
            match self.try_read(to)? {
                0 if is_over => return Ok(0),
                0 if nonblocking => return Err(Error::WouldBlock),
                0 => {}
                count => return Ok(count),
            }
            let has_come = || (self.has_bytes() || self.is_over()).then_some(());
            self.pollee.queue.wait(Wait::INTERRUPTIBLE, has_come)?;
        }
    }

    fn try_read(&self, to: &mut Sink<'_>) -> Result<usize> {
        let before = to.done();
        while to.remaining() != 0 && to.done() - before < READ_MAX {
            let mut take = |bytes: &[u8]| to.try_put(bytes);
            let moved = self.with(|device, number| device.receive(number, &mut take));
            if to.is_faulted() {
                match to.resolve() {
                    Err(error) if to.done() == before => return Err(error),
                    Err(_) => break,
                    Ok(()) => {}
                }
            } else if moved.unwrap_or(0) == 0 {
                break;
            }
        }
        Ok(to.done() - before)
    }

    /// write(2): SIGPIPE once the host has let go.
    pub(super) fn write(&self, from: &mut Source<'_>, nonblocking: bool) -> Result<usize> {
        let before = from.done();
        if from.remaining() <= ATOMIC_BYTES {
            from.prefault()?;
        }
        while from.remaining() != 0 {
            match self.write_some(from, nonblocking) {
                Err(error) if from.done() == before => return Err(error),
                Err(_) => break,
                Ok(()) => {}
            }
        }
        Ok(from.done() - before)
    }

    /// Writes a buffer full, waiting for room if need be.
    fn write_some(&self, from: &mut Source<'_>, nonblocking: bool) -> Result<()> {
        if self.is_over() {
            return Err(broken_pipe());
        }
        if !self.has_room_or_wants_it() {
            if nonblocking {
                return Err(Error::WouldBlock);
            }
            let changed = || (self.has_room_or_wants_it() || self.is_over()).then_some(());
            return self.pollee.queue.wait(Wait::INTERRUPTIBLE, changed);
        }
        let mut fill = |room: &mut [u8]| from.try_take(room);
        let sent = self.with(|device, number| device.send(number, &mut fill));
        self.sent
            .fetch_add(sent.unwrap_or(0) as u64, Ordering::SeqCst);
        from.resolve()
    }

    /// What a reader polls.
    pub(super) fn poll_reader(&self) -> Events {
        let is_over = self.is_over();
        let mut events = Events::empty();
        events.set(Events::READABLE, self.has_bytes());
        events.set(Events::HUP, is_over);
        events
    }

    /// What a writer polls.
    pub(super) fn poll_writer(&self) -> Events {
        let mut events = Events::empty();
        events.set(Events::WRITABLE, self.has_room_or_wants_it());
        events.set(Events::ERR, self.is_over());
        events
    }

    /// Counts an open file.
    pub(super) fn enter(&self) {
        self.open_count.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts an open file that is gone; the host hears of the last one.
    pub(super) fn leave(&self) {
        if self.open_count.fetch_sub(1, Ordering::SeqCst) != 1 {
            return;
        }
        let descriptor = [&INPUT, &OUTPUT, &ERRORS]
            .iter()
            .position(|stream| core::ptr::eq(*stream, self));
        let mut message = [0; CLOSED_BYTES];
        message[0] = b'C';
        message[1] = descriptor.unwrap_or(0) as u8;
        message[2..].copy_from_slice(&self.sent.load(Ordering::SeqCst).to_le_bytes());
        // Without room the host learns it when the machine ends.
        MESSAGES.put(&message);
    }
}
