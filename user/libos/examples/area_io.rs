//! `area_io AREA read|write DEPTH COUNT`: random transfers of 4 KiB to an area, so many under way at a time.
//!
//! At a depth of more than one, eight are handed over at once, as by `fio` in `benches/storage`.

use std::error::Error;
use std::path::Path;

use sietch_io::storage::{Area, AreaConfig, BlockQueue, Buffer, Operation, Outcome, Request};

const BYTES: usize = 4096;

struct Load {
    area: Area,
    operation: Operation,
    /// Blocks of a transfer, and transfers that the area has room for.
    blocks: u64,
    places: u64,
    place: u64,
}

impl Load {
    fn submit(&mut self, buffer: Buffer) {
        self.place = self
            .place
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let request = Request {
            operation: self.operation,
            first: (self.place >> 33) % self.places * self.blocks,
            count: self.blocks,
            buffer: Some(buffer),
            cookie: 0,
        };
        self.area.submit(request).expect("there is room");
    }

    /// Waits until at least so many are complete, and takes them.
    fn take(&mut self, least: u64, buffers: &mut Vec<Buffer>) -> Result<(), Box<dyn Error>> {
        let mut left = least;
        while left != 0 {
            match self.area.poll() {
                Some(done) if done.outcome == Outcome::Done => {
                    buffers.extend(done.buffer);
                    left -= 1;
                }
                Some(done) => return Err(format!("{:?}", done.outcome).into()),
                None => self.area.wait(None)?,
            }
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, path, what, depth, count] = &arguments[..] else {
        return Err("area_io AREA read|write DEPTH COUNT".into());
    };
    let (depth, mut count): (u64, u64) = (depth.parse()?, count.parse()?);
    let mut area = Area::open(Path::new(path), AreaConfig::default())?;
    let geometry = area.geometry();
    let blocks = BYTES as u64 / u64::from(geometry.block_bytes);
    let buffers = (0..depth)
        .map(|_| area.buffer(BYTES))
        .collect::<Option<Vec<_>>>();
    let mut buffers = buffers.ok_or("too little memory")?;
    let operation = match what.as_str() {
        "read" => Operation::Read,
        _ => Operation::Write { is_forced: false },
    };
    let mut load = Load {
        area,
        operation,
        blocks,
        places: geometry.blocks / blocks,
        place: 1,
    };
    let batch = depth.min(8);
    let mut under_way = 0;
    while count != 0 || under_way != 0 {
        while count != 0
            && let Some(buffer) = buffers.pop()
        {
            load.submit(buffer);
            (count, under_way) = (count - 1, under_way + 1);
        }
        let least = batch.min(under_way);
        // Where all is waited for, the wait hands it over.
        if under_way > least {
            load.area.kick();
        }
        load.take(least, &mut buffers)?;
        under_way -= least;
    }
    Ok(())
}
