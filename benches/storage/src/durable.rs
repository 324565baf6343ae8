//! `--durable`: what a durable SET costs by every kind of log, and which stages its cost is of.
//!
//! One kind of machine tells times and rates, with a plugin that looks at system calls only; another counts instructions. An area's
//! ring needs a machine without an IOMMU and a virtual function one with it.

use std::ops::Range;

use bench_pair::{System, example};

use crate::disk::{Bus, Cache, Disk};
use crate::failures::Failures;
use crate::load::{self, Field};
use crate::owned::FIND;
use crate::redis::{self, AREA, Answers, Blocks, Network, Way};
use crate::shell::Shell;
use crate::stages::{Share, Stage, Totals, plugin};

/// SETs of a short run whose stages are told apart, and how many more a long one has.
const SHORT: u32 = 50;
const MORE: u32 = 400;
/// SETs that give a rate and a tail: of one client, and of 50.
const ALONE: u32 = 4000;
const MANY: u32 = 20_000;
/// Writes of the loop on a function.
const FORCED: u32 = 5000;
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
#[derive(Clone, Copy, PartialEq, Eq)]
enum Devices {
    /// The kernel's alone.
    Kernels,
    /// An NVMe function is a program's.
    NvmeFunction,
    /// That, and a virtual function of the card.
    BothFunctions,
}

/// A loop of writes that are durable one by one, which bounds all that waits for each.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// By system calls, a flush behind each write.
    Calls,
    /// On an NVMe function, by writes that are forced.
    Function,
}

impl Bound {
    pub const ALL: [Self; 2] = [Self::Calls, Self::Function];

    pub fn title(self) -> &'static str {
        match self {
            Self::Calls => "4 KiB and a flush on the disk itself",
            Self::Function => "4 KiB, forced, on an NVMe function, and nothing else",
        }
    }
}

/// A kind of machine, and what runs on it.
#[derive(Clone, Copy)]
struct Kind {
    system: System,
    devices: Devices,
}

impl Kind {
    /// All on which a system is measured with disks behind this bus.
    fn of(system: System, bus: Bus) -> Vec<Self> {
        let devices: &[Devices] = match (system, bus) {
            (System::Sietch, Bus::Nvme) => &[
                Devices::Kernels,
                Devices::NvmeFunction,
                Devices::BothFunctions,
            ],
            _ => &[Devices::Kernels],
        };
        let kinds = devices.iter().map(|&devices| Self { system, devices });
        kinds.collect()
    }

    /// Whether an image is behind no disk of its kernel's.
    fn has_function(self) -> bool {
        self.devices != Devices::Kernels
    }

    /// Those by a VNIC come last: it stays when it is there.
    fn ways(self) -> Vec<Way> {
        let both = |blocks, networks: &[Network]| {
            let ways = networks
                .iter()
                .map(move |&network| Way::both(blocks, network));
            ways.flatten().collect::<Vec<_>>()
        };
        match (self.system, self.devices) {
            (System::Sietch, Devices::Kernels) => {
                let mut ways = Way::ALL.to_vec();
                ways.extend(both(Blocks::Ring, &[Network::Kernel, Network::Vnic]));
                ways
            }
            (_, Devices::Kernels) => Way::ALL.to_vec(),
            (_, Devices::NvmeFunction) => both(Blocks::Function, &[Network::Kernel, Network::Vnic]),
            (_, Devices::BothFunctions) => both(Blocks::Function, &[Network::Function]),
        }
    }

    /// The loop that bounds what runs here.
    fn bound(self) -> Option<Bound> {
        match self.devices {
            Devices::Kernels => Some(Bound::Calls),
            Devices::NvmeFunction => Some(Bound::Function),
            Devices::BothFunctions => None,
        }
    }

    fn flags(self) -> &'static [&'static str] {
        match self.devices {
            Devices::BothFunctions => &["--nic", "igb", "--kernel-option", "igb.max_vfs=1"],
            _ => &[],
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
        match (kind.system.is_linux(), kind.has_function()) {
            (true, _) => {}
            (_, true) => disks.push(format!("{},vf=1", own.flag(bus))),
            (_, false) => disks.push(own.flag(bus)),
        }
        let mut programs = redis::additions()?;
        programs.push(format!("{0}:{0}", load::PROGRAM));
        programs.push(format!("{}:/bin/blocks", example("sietch-io", "blocks")?));
        let mut shell = Shell::watched(
            kind.system,
            kind.flags(),
            &disks,
            &programs,
            plugin(is_counting)?,
        )?;
        redis::reach_own_network()?;
        shell.mount(kind.system, bus)?;
        let mut function = String::new();
        if kind.has_function() {
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

    /// Writes a second of who does nothing else, one after the other.
    fn device_loop(&mut self, bound: Bound) -> Result<f64, String> {
        match bound {
            Bound::Calls => {
                let command = load::device_for(self.shell.raw_disk(), 1);
                Field::Writes.of(&self.shell.run(&command)?)
            }
            Bound::Function => {
                let command = format!("blocks {} forced 1 {FORCED}", self.function);
                let said = self.shell.run(&command)?;
                let rate = said.trim().strip_suffix("/s");
                let rate = rate.and_then(|said| said.rsplit(' ').next()?.parse().ok());
                rate.ok_or(format!("{command}: {said}"))
            }
        }
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
            redis::set(way, 1, count)?;
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

/// Measures what is wanted, by the rows' names, on disks behind `bus`; tables.
pub fn measure(
    bus: Bus,
    systems: &[System],
    rounds: u32,
    is_wanted: &dyn Fn(&str) -> bool,
) -> String {
    let kinds = systems.iter().flat_map(|&system| Kind::of(system, bus));
    let kinds: Vec<Kind> = kinds.collect();
    let mut found = Found::default();
    for _ in 0..rounds {
        for &kind in &kinds {
            found.run(kind, bus, false, is_wanted);
        }
    }
    for &kind in &kinds {
        found.run(kind, bus, true, is_wanted);
    }
    let tables = crate::durable_page::tables(bus, &found.rows, &found.device);
    tables + &found.failures.to_markdown()
}

/// What was measured so far.
#[derive(Default)]
struct Found {
    rows: Vec<Row>,
    /// Writes a second of loops that do nothing else.
    device: Vec<(System, Bound, f64)>,
    failures: Failures,
}

impl Found {
    /// A machine, or a way, that fails is said, and missing.
    fn run(&mut self, kind: Kind, bus: Bus, is_counting: bool, is_wanted: &dyn Fn(&str) -> bool) {
        let name = |way: &Way| format!("{}, {}", kind.system.name(), way.title());
        let mut ways = kind.ways();
        ways.retain(|way| is_wanted(&name(way)) && (!is_counting || way.has_stages()));
        if ways.is_empty() {
            return;
        }
        let mut place = match Place::boot(kind, bus, is_counting) {
            Ok(place) => place,
            Err(why) => return self.failures.add(kind.system, "a machine", &why),
        };
        if let Some(bound) = kind.bound().filter(|_| !is_counting) {
            match place.device_loop(bound) {
                Ok(rate) => self.device.push((kind.system, bound, rate)),
                Err(why) => self.failures.add(kind.system, bound.title(), &why),
            }
        }
        for way in ways {
            eprintln!("{}", name(&way));
            let row = row_of(&mut self.rows, kind.system, way);
            let done = match is_counting {
                true => counted(&mut place, row),
                false => timed(&mut place, row),
            };
            if let Err(why) = done {
                self.failures.add(kind.system, &way.title(), &why);
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
    let way = row.way;
    place.start(way)?;
    redis::set(way, 1, SHORT)?;
    if way.has_stages() {
        row.times.push(place.stages(way)?);
    }
    row.alone.push(redis::set(way, 1, ALONE)?);
    redis::set(way, 50, MANY / 4)?;
    row.many.push(redis::set(way, 50, MANY)?);
    Ok(())
}

fn counted(place: &mut Place, row: &mut Row) -> Result<(), String> {
    place.start(row.way)?;
    redis::set(row.way, 1, SHORT)?;
    row.counts.push(place.stages(row.way)?);
    Ok(())
}
