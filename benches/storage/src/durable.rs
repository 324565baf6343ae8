//! `--durable`: what a durable SET costs by every kind of log, and which stages its cost is of.
//!
//! One kind of machine tells times and rates, with a plugin that looks at system calls only; another counts instructions. An area's
//! ring needs a machine without an IOMMU and a virtual function one with it.

use std::ops::Range;

use bench_pair::System;

use crate::disk::{Bus, Cache, Disk};
use crate::failures::Failures;
use crate::load::{self, Field};
use crate::owned::FIND;
use crate::redis::{self, AREA, Answers, Way};
use crate::shell::Shell;
use crate::stages::{Share, Stage, Totals, plugin};

/// SETs of a short run, and how many more a long one has.
const SHORT: u32 = 50;
const MORE: u32 = 400;
/// Of 50 clients.
const MANY: u32 = 4000;
/// Parts of programs' addresses that are counted together.
const PART_BYTES: u64 = 64 << 10;

/// What one way gave, round by round.
pub struct Row {
    pub system: System,
    pub way: Way,
    pub alone: Vec<Answers>,
    pub many: Vec<Answers>,
    pub times: Vec<[Share; Stage::ALL.len()]>,
    pub counts: Vec<[Share; Stage::ALL.len()]>,
}

/// A kind of machine.
#[derive(Clone, Copy)]
struct Kind {
    system: System,
    has_function: bool,
}

impl Kind {
    fn ways(self) -> Vec<Way> {
        match (self.system, self.has_function) {
            (_, true) => vec![Way::FunctionLog, Way::FunctionNative],
            (System::Sietch, false) => {
                let mut ways = Way::ALL.to_vec();
                ways.extend([Way::RingLog, Way::RingNative]);
                ways
            }
            _ => Way::ALL.to_vec(),
        }
    }
}

/// The machine, and the image that is behind no disk of its kernel's.
struct Place {
    shell: Shell,
    function: String,
    /// Where the library lay in all servers so far: what was translated for one is executed for the next.
    library: Vec<Range<u64>>,
    own: Disk,
    /// They last as long as the machine.
    _others: [Disk; 2],
}

impl Place {
    fn boot(kind: Kind, bus: Bus, is_counting: bool) -> Result<Self, String> {
        let others = [
            Disk::new(Cache::Unsafe, None)?,
            Disk::new(Cache::Unsafe, Some(crate::EMPTY.as_ref()))?,
        ];
        let own = Disk::new(Cache::Unsafe, None)?;
        let mut disks = vec![others[0].flag(bus), others[1].flag(bus)];
        match (kind.system.is_linux(), kind.has_function) {
            (true, _) => {}
            (_, true) => disks.push(format!("{},vf=1", own.flag(bus))),
            (_, false) => disks.push(own.flag(bus)),
        }
        let mut programs = redis::additions()?;
        programs.push(format!("{0}:{0}", load::PROGRAM));
        let mut shell = Shell::watched(kind.system, &disks, &programs, plugin(is_counting)?)?;
        shell.mount(kind.system, bus)?;
        let mut function = String::new();
        if kind.has_function {
            function = shell.run(FIND)?.trim().to_string();
        } else if !kind.system.is_linux() {
            make_area(&mut shell, bus)?;
        }
        Ok(Self {
            shell,
            function,
            library: Vec::new(),
            own,
            _others: others,
        })
    }

    fn device_loop(&mut self) -> Result<f64, String> {
        let command = load::device_for(self.shell.raw_disk(), 1);
        Field::Writes.of(&self.shell.run(&command)?)
    }

    fn start(&mut self, way: Way) -> Result<(), String> {
        redis::stop(&mut self.shell)?;
        if !self.function.is_empty() {
            self.own.blank()?;
        }
        way.start_on(&mut self.shell, &self.function)
    }

    /// What one SET of a lone client has of each stage: instructions by the difference of a long run and a short one, times
    /// of the long one.
    fn stages(&mut self, way: Way) -> Result<[Share; Stage::ALL.len()], String> {
        self.find_library(way)?;
        let run = |count| {
            let before = Totals::read()?;
            redis::set(1, count)?;
            Ok::<_, String>((before, Totals::read()?))
        };
        let (short, long) = (run(SHORT)?, run(SHORT + MORE)?);
        let mut shares = Stage::ALL.map(|stage| {
            let share = |(before, after): &(Totals, Totals), count| {
                after.share(before, stage, count, &self.library)
            };
            Share {
                micros: share(&long, SHORT + MORE).micros,
                ..share(&long, MORE).without(&share(&short, MORE))
            }
        });
        // What the library does while the server works on a request is its write to the log.
        let [parse, log] = [Stage::Parse, Stage::Log].map(|stage| stage as usize);
        shares[log].library += std::mem::take(&mut shares[parse].library);
        Ok(shares)
    }

    /// Notes where the library is in the server's memory.
    fn find_library(&mut self, way: Way) -> Result<(), String> {
        let maps = self.shell.run(&format!(
            "busybox cat /proc/$(busybox pidof {})/maps",
            way.program()
        ))?;
        let of_library = maps.lines().filter(|line| line.contains("libsietch"));
        self.library.extend(of_library.filter_map(|line| {
            let (start, rest) = line.split_once('-')?;
            let end = rest.split(' ').next()?;
            let start = u64::from_str_radix(start, 16).ok()?;
            let end = u64::from_str_radix(end, 16).ok()?;
            Some(start / PART_BYTES * PART_BYTES..end)
        }));
        Ok(())
    }
}

fn make_area(shell: &mut Shell, bus: Bus) -> Result<(), String> {
    let disk = bus.third_disk();
    let name = AREA.rsplit('/').next().unwrap_or_default();
    shell.run(&format!("echo format {disk} >/dev/vsa/control"))?;
    let create = format!("echo create {disk} 0 60000000 {name} >/dev/vsa/control");
    shell.run(&create).map(drop)
}

/// Measures everything on disks behind `bus`; tables.
pub fn measure(bus: Bus, systems: &[System], rounds: u32) -> String {
    let mut kinds: Vec<Kind> = Vec::new();
    for &system in systems {
        kinds.push(Kind {
            system,
            has_function: false,
        });
        if bus == Bus::Nvme && system == System::Sietch {
            kinds.push(Kind {
                system,
                has_function: true,
            });
        }
    }
    let mut found = Found::default();
    for _ in 0..rounds {
        for &kind in &kinds {
            found.run(kind, bus, false);
        }
    }
    for &kind in &kinds {
        found.run(kind, bus, true);
    }
    let tables = crate::durable_page::tables(bus, &found.rows, &found.device);
    tables + &found.failures.to_markdown()
}

/// What was measured so far.
#[derive(Default)]
struct Found {
    rows: Vec<Row>,
    /// Rounds a second on the disk itself.
    device: Vec<(System, f64)>,
    failures: Failures,
}

impl Found {
    /// A machine, or a way, that fails is said, and missing.
    fn run(&mut self, kind: Kind, bus: Bus, is_counting: bool) {
        let mut place = match Place::boot(kind, bus, is_counting) {
            Ok(place) => place,
            Err(why) => return self.failures.add(kind.system, "a machine", &why),
        };
        if !kind.has_function && !is_counting {
            match place.device_loop() {
                Ok(rate) => self.device.push((kind.system, rate)),
                Err(why) => self.failures.add(kind.system, "the disk itself", &why),
            }
        }
        for way in kind.ways() {
            eprintln!("{}: {}", kind.system.name(), way.server());
            let row = row_of(&mut self.rows, kind.system, way);
            let done = match is_counting {
                true => counted(&mut place, row),
                false => timed(&mut place, row),
            };
            if let Err(why) = done {
                self.failures.add(kind.system, way.server(), &why);
            }
        }
    }
}

fn row_of(rows: &mut Vec<Row>, system: System, way: Way) -> &mut Row {
    let is_it = |row: &Row| row.system == system && row.way == way;
    let index = rows.iter().position(is_it).unwrap_or_else(|| {
        rows.push(Row {
            system,
            way,
            alone: Vec::new(),
            many: Vec::new(),
            times: Vec::new(),
            counts: Vec::new(),
        });
        rows.len() - 1
    });
    &mut rows[index]
}

fn timed(place: &mut Place, row: &mut Row) -> Result<(), String> {
    place.start(row.way)?;
    redis::set(1, SHORT)?;
    row.times.push(place.stages(row.way)?);
    row.alone.push(redis::set(1, SHORT + MORE)?);
    redis::set(50, MANY / 4)?;
    row.many.push(redis::set(50, MANY)?);
    Ok(())
}

fn counted(place: &mut Place, row: &mut Row) -> Result<(), String> {
    place.start(row.way)?;
    redis::set(1, SHORT)?;
    row.counts.push(place.stages(row.way)?);
    Ok(())
}
