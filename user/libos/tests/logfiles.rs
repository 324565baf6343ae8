//! Files on a log on a file of this machine.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sietch_io::storage::{
    BUFFER_BYTES, BlockQueue, Buffer, Completion, DirectFile, Geometry, Log, LogFiles, Out, Request,
};

/// A file for a log, which goes with it.
struct Area(PathBuf);

impl Area {
    fn new(name: &str, bytes: u64) -> Self {
        let path = std::env::temp_dir().join(format!("sietch-{name}-{}", std::process::id()));
        File::create(&path).unwrap().set_len(bytes).unwrap();
        Self(path)
    }

    fn queue(&self) -> Box<DirectFile> {
        Box::new(DirectFile::open(&self.0, BUFFER_BYTES).unwrap())
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}

/// A device of its own.
struct Device {
    queue: Box<DirectFile>,
    /// It is at it for so many looks; if for none, it has done what it is told before anybody asks.
    looks_left: Arc<AtomicU32>,
    ends_without_kernel: bool,
}

impl BlockQueue for Device {
    fn geometry(&self) -> Geometry {
        self.queue.geometry()
    }

    fn buffer(&mut self, bytes: usize) -> Option<Buffer> {
        self.queue.buffer(bytes)
    }

    fn submit(&mut self, request: Request) -> Result<(), Request> {
        self.queue.submit(request)
    }

    fn kick(&mut self) {
        self.queue.kick();
    }

    fn poll(&mut self) -> Option<Completion> {
        match self.looks_left.load(Ordering::Relaxed) {
            0 => self.queue.poll(),
            left => {
                self.looks_left.store(left - 1, Ordering::Relaxed);
                None
            }
        }
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.queue.wait(timeout)
    }

    fn doorbell(&self) -> BorrowedFd<'_> {
        self.queue.doorbell()
    }

    /// It has no completion, or will have one without a bell.
    fn arm(&mut self) -> bool {
        true
    }

    fn ends_without_kernel(&self) -> bool {
        self.ends_without_kernel
    }
}

#[test]
fn nobody_waits_for_a_bell_when_the_device_has_done_all_at_once() {
    let area = Area::new("prompt", 1 << 20);
    let prompt = Device {
        queue: area.queue(),
        looks_left: Arc::default(),
        ends_without_kernel: false,
    };
    let mut files = LogFiles::open(Box::new(prompt)).unwrap();
    let number = files.create(b"a").unwrap();
    files.write(number, 0, b"line").unwrap();
    assert!(matches!(files.sync_out(true).unwrap(), Out::Over));
    files.come_back(Vec::new()).unwrap();
    assert!(files.is_synced(number).unwrap());
}

#[test]
fn a_sync_is_looked_for_and_slept_for_when_that_takes_long() {
    let area = Area::new("looks", 1 << 20);
    let left = Arc::new(AtomicU32::new(0));
    let slow = Device {
        queue: area.queue(),
        looks_left: left.clone(),
        ends_without_kernel: true,
    };
    let mut files = LogFiles::open(Box::new(slow)).unwrap();
    let number = files.create(b"a").unwrap();

    files.write(number, 0, b"line").unwrap();
    left.store(100, Ordering::Relaxed);
    assert!(matches!(files.sync_out(true).unwrap(), Out::Look));
    let in_vain = (0..).take_while(|_| !files.look()).count();
    assert!((1..=100).contains(&in_vain), "{in_vain}");
    files.come_back(Vec::new()).unwrap();
    assert!(files.is_synced(number).unwrap());

    files.write(number, 4, b"line").unwrap();
    left.store(100, Ordering::Relaxed);
    assert!(matches!(files.sync_out(true).unwrap(), Out::Look));
    assert!(!files.look());
    assert!(matches!(files.sleep_out(), Out::Bell(_)));
    left.store(0, Ordering::Relaxed);
    files.come_back(Vec::new()).unwrap();
    assert!(files.is_synced(number).unwrap());

    files.write(number, 8, b"line").unwrap();
    left.store(100, Ordering::Relaxed);
    assert!(matches!(files.sync_out(false).unwrap(), Out::Bell(_)));
    left.store(0, Ordering::Relaxed);
    files.come_back(Vec::new()).unwrap();
}

#[test]
fn what_was_synced_is_there_when_the_log_is_opened_again() {
    let area = Area::new("logfiles", 4 << 20);
    let mut files = LogFiles::open(area.queue()).unwrap();
    let number = files.create(b"/data/a").unwrap();
    for round in 0..500_u64 {
        let line = format!("line {round:>5}\n");
        files.write(number, round * 11, line.as_bytes()).unwrap();
        files.sync(number).unwrap();
    }
    files.write(number, 5500, b"not synced").unwrap();
    let mut bytes = vec![0; 6000];
    assert_eq!(files.read(number, 0, &mut bytes).unwrap(), 5510);
    drop(files);
    let mut files = LogFiles::open(area.queue()).unwrap();
    let number = files.find(b"/data/a").unwrap();
    assert_eq!(files.read(number, 5489, &mut bytes).unwrap(), 11);
    assert_eq!(&bytes[..11], b"line   499\n");
}

#[test]
fn a_log_that_is_much_smaller_than_what_is_written_goes_on() {
    let area = Area::new("laps", 1 << 20);
    let mut files = LogFiles::open(area.queue()).unwrap();
    let kept = files.create(b"kept").unwrap();
    files.write(kept, 0, &[7; 100_000]).unwrap();
    for round in 0..60_u8 {
        let number = files.create(b"new").unwrap();
        for at in 0..100 {
            files.write(number, at * 3000, &[round; 3000]).unwrap();
        }
        files.sync(number).unwrap();
    }
    let number = files.find(b"new").unwrap();
    let mut bytes = vec![0; 300_001];
    assert_eq!(files.read(number, 0, &mut bytes).unwrap(), 300_000);
    assert!(bytes[..300_000].iter().all(|byte| *byte == 59));
    let too_much = files.write(kept, 100_000, &[1; 900_000]).unwrap_err();
    assert_eq!(too_much.kind(), ErrorKind::StorageFull);
    assert_eq!(files.read(kept, 0, &mut bytes).unwrap(), 100_000);
    assert!(bytes[..100_000].iter().all(|byte| *byte == 7));
}

#[test]
fn blocks_of_somebody_else_are_left_alone() {
    let area = Area::new("others", 1 << 20);
    fs::write(&area.0, vec![1; 1 << 20]).unwrap();
    assert!(LogFiles::open(area.queue()).is_err());
    assert_eq!(fs::read(&area.0).unwrap(), vec![1; 1 << 20]);
}

#[test]
fn a_log_is_read_from_its_head_and_trimmed() {
    let area = Area::new("log", 1 << 20);
    let mut log = Log::open(area.queue()).unwrap();
    let mut last = None;
    for round in 0..100 {
        last = Some(log.append(round, &[b"record ", &[round]]).unwrap());
    }
    let last = last.unwrap();
    log.wait_durable(last.end).unwrap();
    log.trim(last.place).unwrap();
    drop(log);
    let mut log = Log::open(area.queue()).unwrap();
    let mut cursor = log.cursor();
    let mut bytes = Vec::new();
    let item = log.read(&mut cursor, &mut bytes).unwrap().unwrap();
    assert_eq!((item.tag, &bytes[..]), (99, &b"record c"[..]));
    assert!(log.read(&mut cursor, &mut bytes).unwrap().is_none());
}
