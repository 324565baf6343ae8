//! One profile, from the request to the file.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use qemu::{PROFILE_START, PROFILE_START_WAITS, PROFILE_STOP};

use super::announcement::{Announcement, RingPlace};
use super::collector::Collector;
use super::kernel::KernelNames;
use super::output::{Format, Output, Subject};
use super::remote::Remote;
use crate::failure::Failure;

/// How often the rings are read: a ring of the usual size lasts half a second.
const POLL: Duration = Duration::from_millis(50);
/// How long the kernel may take to start or to stop: it reads requests between two programs.
const PATIENCE: Duration = Duration::from_secs(10);

/// What to record, and where to.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The machine's name.
    pub name: String,
    /// The machine's folder.
    pub folder: PathBuf,
    /// The kernel that it runs.
    pub kernel: PathBuf,
    /// Record waits, not CPUs.
    pub waits: bool,
    /// The file to write.
    pub path: PathBuf,
    /// How to write it.
    pub format: Format,
}

impl Wish {
    /// The byte that asks the kernel for it.
    pub fn request(&self) -> u8 {
        if self.waits {
            PROFILE_START_WAITS
        } else {
            PROFILE_START
        }
    }

    fn failed(&self, reason: impl Into<String>) -> Failure {
        Failure::NoProfile {
            name: self.name.clone(),
            reason: reason.into(),
        }
    }

    fn announcement(&self) -> Announcement {
        let log = fs::read(self.folder.join("kernel.log")).unwrap_or_default();
        Announcement::parse(&String::from_utf8_lossy(&log))
    }

    fn send(&self, request: u8) -> Result<(), Failure> {
        UnixStream::connect(self.folder.join("control.sock"))
            .and_then(|mut socket| socket.write_all(&[request]))
            .map_err(|error| self.failed(error.to_string()))
    }
}

/// A profile that is being recorded.
pub struct Recording {
    wish: Wish,
    remote: Remote,
    collector: Collector,
    output: Output,
    cpus: usize,
}

impl Recording {
    /// Asks a running machine to record, and begins with what it records from now on.
    pub fn ask(wish: Wish) -> Result<Self, Failure> {
        let before = wish.announcement();
        let mut remote = Remote::connect(&wish.folder)
            .map_err(|_| wish.failed("QEMU does not answer; somebody else may be profiling it"))?;
        let failed = |error: std::io::Error| wish.failed(error.to_string());
        remote.add(&before.rings, true).map_err(failed)?;
        wish.send(wish.request())?;
        let deadline = Instant::now() + PATIENCE;
        let said = wait_for_start(&wish, &before, || Instant::now() < deadline)?;
        let new = &said.rings[before.rings.len().min(said.rings.len())..];
        remote.add(new, false).map_err(failed)?;
        Self::begin(wish, remote, &said.rings)
    }

    /// Takes part in what a machine records since its boot; `goes_on` says whether it still may
    /// begin.
    pub fn join(wish: Wish, goes_on: impl FnMut() -> bool) -> Result<Self, Failure> {
        let said = wait_for_start(&wish, &Announcement::default(), goes_on)?;
        let failed = |error: std::io::Error| wish.failed(error.to_string());
        let mut remote = Remote::connect(&wish.folder).map_err(failed)?;
        remote.add(&said.rings, false).map_err(failed)?;
        Self::begin(wish, remote, &said.rings)
    }

    fn begin(wish: Wish, remote: Remote, rings: &[RingPlace]) -> Result<Self, Failure> {
        let hertz = rings.first().map_or(0, |ring| ring.hertz);
        let subject = Subject {
            name: wish.name.clone(),
            is_waits: wish.waits,
            hertz,
        };
        let output = Output::create(&wish.path, wish.format, subject)?;
        Ok(Self {
            collector: Collector::new(KernelNames::read(&wish.kernel), hertz),
            wish,
            remote,
            output,
            cpus: rings.len(),
        })
    }

    /// Records while `goes_on`, or until the machine ends.
    pub fn record(&mut self, mut goes_on: impl FnMut() -> bool) -> Result<(), Failure> {
        while goes_on() && self.read_rings() {
            self.settle(Some(Instant::now()))?;
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Ends the recording in the machine; what it has written until then is still read.
    pub fn stop(&mut self) -> Result<(), Failure> {
        let before = self.wish.announcement().stops;
        self.wish.send(PROFILE_STOP)?;
        let (wish, deadline) = (self.wish.clone(), Instant::now() + PATIENCE);
        self.record(|| wish.announcement().stops == before && Instant::now() < deadline)?;
        self.read_rings();
        Ok(())
    }

    /// Reads what is new; false if the machine has ended.
    fn read_rings(&mut self) -> bool {
        let now = Instant::now();
        let collector = &mut self.collector;
        let read = self.remote.poll(&mut |event| collector.add(event, now));
        read.is_ok()
    }

    fn settle(&mut self, now: Option<Instant>) -> Result<(), Failure> {
        let mut outcome = Ok(());
        let output = &mut self.output;
        self.collector.settle(now, &mut |named| {
            if outcome.is_ok() {
                outcome = output.add(&named);
            }
        });
        outcome
    }

    /// Writes the file; says what is in it.
    pub fn finish(mut self) -> Result<String, Failure> {
        self.settle(None)?;
        let sentence = self.sentence();
        self.output.finish()?;
        Ok(sentence)
    }

    fn sentence(&self) -> String {
        let counts = self.collector.counts();
        let cpus = if self.cpus == 1 { "CPU" } else { "CPUs" };
        let seen = if self.wish.waits {
            format!("{} waits", counts.records)
        } else {
            let idle = counts.idle;
            format!("{} samples, {idle} of them idle,", counts.records + idle)
        };
        let lost = match self.remote.lost() {
            0 => "none lost".to_string(),
            lost => format!("{lost} lost in rings that were full"),
        };
        let path = match self.wish.path.to_str() {
            Some("-") => String::new(),
            _ => format!(": {}", self.wish.path.display()),
        };
        format!("{seen} on {} {cpus}, {lost}{path}", self.cpus)
    }
}

/// Waits until the kernel says that it records.
fn wait_for_start(
    wish: &Wish,
    before: &Announcement,
    mut goes_on: impl FnMut() -> bool,
) -> Result<Announcement, Failure> {
    loop {
        let said = wish.announcement();
        if said.starts > before.starts {
            return Ok(said);
        }
        if let Some(reason) = said.failures.get(before.failures.len()) {
            return Err(wish.failed(format!("its kernel has not enough {reason}")));
        }
        if !goes_on() {
            return Err(wish.failed("its kernel did not start to record"));
        }
        thread::sleep(POLL);
    }
}
