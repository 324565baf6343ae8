//! Reads or writes 4 KiB at a time on an NVMe function of the program's own: `blocks FUNCTION read|write|forced DEPTH COUNT`.
//!
//! It prints what it did, how many completions it had to wait for, and how many came in a second (pairs, with `check`). `forced` writes what a loss of
//! power leaves. With `check` in the place of an operation it writes everything, reads it back and compares; `idle` reads and waits for
//! each completion.

use std::env;
use std::error::Error;
use std::time::Instant;

use sietch_io::storage::{BlockQueue, Buffer, NvmeQueue, Operation, Outcome, Request};

const BYTES: usize = 4096;
/// Longer than an emulated disk takes.
const LOOKS: u32 = 100_000;
const MEMORY: usize = 64 * BYTES;

struct Load {
    queue: NvmeQueue,
    /// Requests of 4 KiB that the namespace has room for.
    places: u64,
    blocks_each: u64,
    /// How often it looks for a completion before it waits.
    looks: u32,
    waits: u64,
}

impl Load {
    fn open(name: &str) -> Result<Self, Box<dyn Error>> {
        let queue = NvmeQueue::open(name, MEMORY)?;
        let geometry = queue.geometry();
        let blocks_each = BYTES as u64 / u64::from(geometry.block_bytes);
        Ok(Self {
            places: geometry.blocks / blocks_each,
            queue,
            blocks_each,
            looks: LOOKS,
            waits: 0,
        })
    }

    fn submit(&mut self, operation: Operation, number: u64, buffer: Buffer) {
        let request = Request {
            operation,
            first: number % self.places * self.blocks_each,
            count: self.blocks_each,
            buffer: Some(buffer),
            cookie: number,
        };
        // There are no more buffers than places.
        assert!(self.queue.submit(request).is_ok());
    }

    /// The next one that ended; waits for it after looking for it often.
    fn ended(&mut self) -> Result<(u64, Buffer), Box<dyn Error>> {
        loop {
            if self.looks == 0 {
                self.wait()?;
            }
            for _ in 0..self.looks.max(1) {
                if let Some(done) = self.queue.poll() {
                    return match (done.outcome, done.buffer) {
                        (Outcome::Done, Some(buffer)) => Ok((done.cookie, buffer)),
                        (outcome, _) => Err(format!("{}: {outcome:?}", done.cookie).into()),
                    };
                }
                std::hint::spin_loop();
            }
            self.wait()?;
        }
    }

    fn wait(&mut self) -> Result<(), Box<dyn Error>> {
        self.waits += 1;
        Ok(self.queue.wait(None)?)
    }

    /// So many requests, so many of them under way.
    fn run(&mut self, operation: Operation, depth: u64, count: u64) -> Result<(), Box<dyn Error>> {
        let mut next = depth.min(count);
        for number in 0..next {
            let buffer = self.queue.buffer(BYTES).ok_or("there are no buffers")?;
            self.submit(operation, number, buffer);
        }
        self.queue.kick();
        for _ in 0..count {
            let (_, buffer) = self.ended()?;
            if next < count {
                self.submit(operation, next, buffer);
                self.queue.kick();
                next += 1;
            }
        }
        Ok(())
    }

    fn check(&mut self, count: u64) -> Result<(), Box<dyn Error>> {
        let pattern = |number: u64| (number * 31 + 7) as u8;
        for is_write in [true, false] {
            let operation = match is_write {
                true => Operation::Write { is_forced: false },
                false => Operation::Read,
            };
            for number in 0..count.min(self.places) {
                let mut buffer = self.queue.buffer(BYTES).ok_or("there are no buffers")?;
                buffer.fill(if is_write { pattern(number) } else { 0 });
                self.submit(operation, number, buffer);
                self.queue.kick();
                let (_, buffer) = self.ended()?;
                if buffer.iter().any(|byte| *byte != pattern(number)) {
                    return Err(format!("request {number} has other bytes").into());
                }
            }
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = env::args().collect();
    let [_, name, what, depth, count] = &args[..] else {
        return Err("give FUNCTION read|write|forced|check|idle DEPTH COUNT".into());
    };
    let (depth, count) = (depth.parse()?, count.parse()?);
    let mut load = Load::open(name)?;
    let begin = Instant::now();
    match &what[..] {
        "read" => load.run(Operation::Read, depth, count)?,
        "write" => load.run(Operation::Write { is_forced: false }, depth, count)?,
        "forced" => load.run(Operation::Write { is_forced: true }, depth, count)?,
        "check" => load.check(count)?,
        "idle" => {
            load.looks = 0;
            load.run(Operation::Read, depth, count)?;
        }
        _ => return Err("it is read, write, forced, check or idle".into()),
    }
    let (waits, rate) = (load.waits, count as f64 / begin.elapsed().as_secs_f64());
    println!("{what} {count} at depth {depth}: {waits} waits, {rate:.0}/s");
    Ok(())
}
