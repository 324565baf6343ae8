//! What an append costs the processor, the device taken as one that does nothing:
//! `cargo run --release -p plog --example append_cost`.
#![forbid(unsafe_code)]

use std::time::Instant;

use block::{Done, Failure, Order};
use plog::{Area, Command, CommandId, HEADER_BYTES, Log, Promise};

const APPENDS: u32 = 400_000;

/// Anchors are kept, nothing else.
struct Nothing(Vec<u8>);

impl Area for Nothing {
    fn block_bytes(&self) -> u32 {
        4096
    }

    fn blocks(&self) -> u64 {
        1 << 20
    }

    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<(), Failure> {
        let at = first as usize * 4096;
        into.copy_from_slice(self.0.get(at..at + into.len()).ok_or(Failure::OutOfRange)?);
        Ok(())
    }

    fn write(&mut self, first: u64, from: &[u8]) -> Result<(), Failure> {
        let at = first as usize * 4096;
        let to = self.0.get_mut(at..at + from.len());
        to.ok_or(Failure::OutOfRange)?.copy_from_slice(from);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Ends all that the log asks for.
fn carry_out(log: &mut Log, order: &Order) {
    while let Some(command) = log.next_command() {
        let (id, done) = match command {
            Command::Write { id, .. } => (id, Done::Written(order.completed())),
            Command::Anchor { .. } => (CommandId::Anchor, Done::Written(order.completed())),
            Command::Flush => {
                let flush = order.flush_begins();
                (
                    CommandId::Flush,
                    Done::Flushed(order.flush_succeeded(flush)),
                )
            }
        };
        log.complete(id, Ok(done)).expect("it is under way");
    }
}

fn main() {
    for (bytes, group) in [(100, 1), (100, 32), (4032, 1), (4032, 32)] {
        let mut log = plog::format(&mut Nothing(vec![0; 8192]), 1).expect("a log");
        let (order, payload) = (Order::new(), vec![7; bytes]);
        let start = Instant::now();
        for number in 0..APPENDS {
            let mut header = [0; HEADER_BYTES];
            let appended = log.append(0, &mut header, &[&payload], Promise::Durable);
            appended.expect("there is room");
            if number % group == group - 1 {
                carry_out(&mut log, &order);
                log.trim(log.durable()).expect("it is durable");
            }
        }
        let nanos = start.elapsed().as_nanos() / u128::from(APPENDS);
        println!("{bytes} bytes, {group} to a flush: {nanos} ns an append");
    }
}
