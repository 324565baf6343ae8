//! The relay that runs: two sockets, a thread and the host's clock.
//!
//! A receiver without room keeps its copies on the path, whose limits then
//! hold the sender back or drop, so nothing grows. What the thread cannot go on after (a
//! socket or the capture fails) ends it, and [`Relay::stop`] tells.

use std::io::{self, ErrorKind, Write};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::Side;
use crate::capture::{Capture, Notice};
use crate::counts::Counts;
use crate::fate::Weather;
use crate::path::{Flight, Path};

/// Frames taken from one end before the other gets its turn.
const BATCH: usize = 64;
/// How often a receiver without room is asked again.
const RETRY: Duration = Duration::from_millis(1);
/// How soon the thread notices that it shall stop.
const IDLE: Duration = Duration::from_millis(50);
/// One byte more than any datagram that is a frame.
const BUFFER_BYTES: usize = (1 << 16) + 14;

/// The two sockets of an end.
#[derive(Clone, Debug)]
pub struct End {
    /// Where the relay listens.
    pub ours: PathBuf,
    /// Where the end listens.
    pub theirs: PathBuf,
}

/// What a relay is to do.
pub struct Plan<W> {
    /// The left and the right end.
    pub ends: [End; 2],
    /// From left to right, and back.
    pub weather: [Weather; 2],
    /// All chance.
    pub seed: u64,
    /// Where to note what passes.
    pub capture: Option<Capture<W>>,
}

/// A running relay; ends when dropped.
pub struct Relay {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    counts: Mutex<[Counts; 2]>,
}

impl Shared {
    fn counts(&self) -> [Counts; 2] {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Relay {
    /// Binds the relay's sockets and starts.
    pub fn start<W: Write + Send + 'static>(plan: Plan<W>) -> io::Result<Self> {
        let [left, right] = plan.ends;
        let shared = Arc::new(Shared::default());
        let direction = |at: Side| Path::new(plan.seed, at as u64, plan.weather[at as usize]);
        let mut runner = Runner {
            ends: [Socket::bind(left)?, Socket::bind(right)?],
            paths: [direction(Side::Left), direction(Side::Right)],
            capture: plan.capture,
            start: Instant::now(),
            shared: shared.clone(),
        };
        let thread = thread::spawn(move || runner.run());
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// What became of the frames from the left end and from the right end so far.
    pub fn counts(&self) -> [Counts; 2] {
        self.shared.counts()
    }

    /// Ends the relay; frames under way are forgotten.
    pub fn stop(mut self) -> io::Result<[Counts; 2]> {
        self.end()?;
        Ok(self.counts())
    }

    fn end(&mut self) -> io::Result<()> {
        self.shared.is_over.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(io::Error::other("the relay's thread has panicked")),
            None => Ok(()),
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // Whoever wants to know why it failed calls `stop`.
        let _ = self.end();
    }
}

struct Socket {
    socket: UnixDatagram,
    theirs: PathBuf,
}

/// How handing a copy over went.
enum Handed {
    Over,
    NoRoom,
    Nobody,
}

impl Socket {
    fn bind(end: End) -> io::Result<Self> {
        let socket = UnixDatagram::bind(&end.ours)?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            theirs: end.theirs,
        })
    }

    fn hand(&self, bytes: &[u8]) -> io::Result<Handed> {
        match self.socket.send_to(bytes, &self.theirs) {
            Ok(_) => Ok(Handed::Over),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(Handed::NoRoom),
                ErrorKind::NotFound | ErrorKind::ConnectionRefused => Ok(Handed::Nobody),
                _ => Err(error),
            },
        }
    }
}

struct Runner<W> {
    ends: [Socket; 2],
    paths: [Path; 2],
    capture: Option<Capture<W>>,
    start: Instant,
    shared: Arc<Shared>,
}

impl<W: Write> Runner<W> {
    fn run(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut has_blocked = false;
        while !self.shared.is_over.load(Ordering::Relaxed) {
            self.wait(has_blocked)?;
            for from in Side::BOTH {
                self.accept(from, &mut buffer)?;
            }
            has_blocked = false;
            for from in Side::BOTH {
                has_blocked |= self.deliver(from)?;
            }
            let counts = [self.paths[0].counts(), self.paths[1].counts()];
            *self
                .shared
                .counts
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = counts;
        }
        self.capture
            .take()
            .map_or(Ok(()), |capture| capture.finish().map(drop))
    }

    /// Sleeps until a frame comes in or is due.
    fn wait(&self, has_blocked: bool) -> io::Result<()> {
        let now = self.start.elapsed();
        let due = self.paths.iter().filter_map(Path::next_due).min();
        let until_due = due.map_or(IDLE, |due| due.saturating_sub(now).min(IDLE));
        let time = if has_blocked {
            until_due.max(RETRY)
        } else {
            until_due
        };
        let time = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        let mut sockets = self
            .ends
            .each_ref()
            .map(|end| PollFd::new(&end.socket, PollFlags::IN));
        match poll(&mut sockets, Some(&time)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn accept(&mut self, from: Side, buffer: &mut [u8]) -> io::Result<()> {
        for _ in 0..BATCH {
            let len = match self.ends[from as usize].socket.recv(buffer) {
                Ok(len) => len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let (now, frame) = (self.start.elapsed(), &buffer[..len]);
            let arrival = self.paths[from as usize].accept(now, frame);
            self.note(now, Notice::Accepted(from, arrival, frame))?;
        }
        Ok(())
    }

    /// Hands over what is due; returns whether the receiver had no room for all of it.
    fn deliver(&mut self, from: Side) -> io::Result<bool> {
        let now = self.start.elapsed();
        while let Some(flight) = self.paths[from as usize].arrive(now) {
            match self.ends[from.peer() as usize].hand(&flight.bytes)? {
                Handed::Over => self.note_delivered(from, now, &flight)?,
                Handed::Nobody => {
                    self.paths[from as usize].note_unreceived();
                    self.note(now, Notice::Unreceived(from.peer(), &flight))?;
                }
                Handed::NoRoom => {
                    self.paths[from as usize].put_back(flight);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn note_delivered(&mut self, from: Side, now: Duration, flight: &Flight) -> io::Result<()> {
        self.paths[from as usize].note_delivered(flight);
        self.note(now, Notice::Delivered(from.peer(), flight))
    }

    fn note(&mut self, now: Duration, notice: Notice<'_>) -> io::Result<()> {
        self.capture
            .as_mut()
            .map_or(Ok(()), |capture| capture.note(now, notice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two ends that are plain sockets of this test.
    struct Ends {
        folder: PathBuf,
        sockets: [UnixDatagram; 2],
    }

    impl Ends {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("relay-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).expect("a folder");
            let bind = |name: &str| {
                let socket = UnixDatagram::bind(folder.join(name)).expect("a free name");
                socket
                    .set_read_timeout(Some(Duration::from_secs(20)))
                    .expect("a socket");
                socket
            };
            let sockets = [bind("left"), bind("right")];
            Self { folder, sockets }
        }

        fn plan(&self, weather: Weather, seed: u64) -> Plan<Vec<u8>> {
            let end = |ours: &str, theirs: &str| End {
                ours: self.folder.join(ours),
                theirs: self.folder.join(theirs),
            };
            Plan {
                ends: [end("relay-left", "left"), end("relay-right", "right")],
                weather: [weather; 2],
                seed,
                capture: None,
            }
        }

        fn send(&self, frame: &[u8]) {
            self.sockets[0]
                .send_to(frame, self.folder.join("relay-left"))
                .expect("a relay");
        }

        fn receive(&self) -> Vec<u8> {
            let mut buffer = [0; 2000];
            let len = self.sockets[1].recv(&mut buffer).expect("a frame arrives");
            buffer[..len].to_vec()
        }
    }

    impl Drop for Ends {
        fn drop(&mut self) {
            // What cannot be removed is the system's to clean.
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    #[test]
    fn frames_pass_in_order_although_the_receiver_takes_its_time() {
        let ends = Ends::new("order");
        let relay = Relay::start(ends.plan(Weather::FAIR, 1)).expect("sockets");
        for number in 0..1000_u32 {
            ends.send(&number.to_be_bytes());
        }
        for number in 0..1000_u32 {
            assert_eq!(ends.receive(), number.to_be_bytes());
        }
        let [counts, back] = relay.stop().expect("no failure");
        assert_eq!(
            (counts.received, counts.delivered, counts.dropped()),
            (1000, 1000, 0)
        );
        assert_eq!(back, Counts::default());
    }

    #[test]
    fn a_frame_for_nobody_is_counted_and_ends_nothing() {
        let ends = Ends::new("nobody");
        std::fs::remove_file(ends.folder.join("right")).expect("it is there");
        let relay = Relay::start(ends.plan(Weather::FAIR, 1)).expect("sockets");
        ends.send(b"hello");
        while relay.counts()[0].no_receiver == 0 {
            thread::yield_now();
        }
        assert!(relay.stop().expect("no failure")[0].is_complete());
    }

    #[test]
    fn the_same_frames_are_lost_in_two_runs_of_a_seed() {
        let lossy = Weather {
            loss_ppm: 300_000,
            ..Weather::FAIR
        };
        let arrivals = |seed| {
            let ends = Ends::new("seed");
            let relay = Relay::start(ends.plan(lossy, seed)).expect("sockets");
            (0..200_u32).for_each(|number| ends.send(&number.to_be_bytes()));
            let mut got = Vec::new();
            loop {
                let counts = relay.counts()[0];
                while (got.len() as u64) < counts.delivered {
                    got.push(ends.receive());
                }
                if counts.received == 200 && counts.flying == 0 {
                    return got;
                }
                thread::yield_now();
            }
        };
        let first = arrivals(5);
        assert!(first.len() < 200 && !first.is_empty());
        assert_eq!(arrivals(5), first);
        assert_ne!(arrivals(6), first);
    }
}
