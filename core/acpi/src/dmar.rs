//! DMAR: which IOMMUs there are, and for which devices (Intel VT-d 4.1, chapter 8).
//!
//! A unit names the devices behind it one by one or by the bridge above them (its
//! *scopes*); one unit may take all that no other names. A scope is a path: a bus, and from
//! there a device and function for each bridge on the way. Which bus lies behind a bridge
//! stands in the bridge, so whoever looks a device up says that ([`Buses`]).
//!
//! Some memory was promised to devices by the firmware (RMRR): they use it before there is a
//! driver, and must go on reaching it.

use core::ops::RangeInclusive;

use crate::bytes::{half, long};

const ADDRESS_WIDTH: usize = 36;
const STRUCTURES: usize = 48;

/// The kinds of structures that are read.
const UNIT: u16 = 0;
const RESERVED_MEMORY: u16 = 1;

/// Where scopes begin in each.
const UNIT_SCOPES: usize = 16;
const RESERVED_SCOPES: usize = 24;
const SEGMENT: usize = 6;
const ADDRESS: usize = 8;
const LIMIT: usize = 16;
/// In a unit's flags: it takes what no other names.
const FLAGS: usize = 4;
const TAKES_THE_REST: u8 = 1;

/// Registers and reserved memory lie on boundaries of this.
const PAGE_BYTES: u64 = 4096;
/// Reserved memory that is longer is nothing that a firmware needs.
const RESERVED_BYTES_MAX: u64 = 4 << 30;

/// A function on the buses of a segment, as its requests name it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RequesterId(pub u16);

impl RequesterId {
    /// `None` for a device above 31 or a function above 7.
    pub const fn new(bus: u8, device: u8, function: u8) -> Option<Self> {
        if device > 31 || function > 7 {
            return None;
        }
        let [bus, device, function] = [bus as u16, device as u16, function as u16];
        Some(Self(bus << 8 | device << 3 | function))
    }

    /// Its bus.
    pub const fn bus(self) -> u8 {
        (self.0 >> 8) as u8
    }
}

/// Which buses lie behind a bridge; `None` for what is no bridge.
pub type Buses<'a> = &'a dyn Fn(RequesterId) -> Option<RangeInclusive<u8>>;

/// The table.
#[derive(Clone, Copy, Debug)]
pub struct Dmar<'a>(&'a [u8]);

/// An IOMMU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemappingUnit<'a> {
    /// The group of buses that it stands in front of.
    pub segment: u16,
    /// Where its registers lie.
    pub registers: u64,
    /// It takes all devices of its segment that no other unit names.
    pub takes_the_rest: bool,
    /// The devices that it names.
    pub scopes: Scopes<'a>,
}

/// Memory that devices use with the firmware.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReservedMemory<'a> {
    /// The group of buses on which the devices are.
    pub segment: u16,
    /// The first byte.
    pub start: u64,
    /// The first byte behind.
    pub end: u64,
    /// The devices.
    pub scopes: Scopes<'a>,
}

impl<'a> Dmar<'a> {
    /// The table in these bytes, header included; `None` for too few.
    pub fn read(table: &'a [u8]) -> Option<Self> {
        table.get(STRUCTURES..)?;
        Some(Self(table))
    }

    /// Bits of the longest physical address that devices reach.
    pub fn address_bits(&self) -> u32 {
        self.0.get(ADDRESS_WIDTH).map_or(0, |&less| less as u32) + 1
    }

    /// The units whose registers can be where the table says.
    pub fn units(&self) -> impl Iterator<Item = RemappingUnit<'a>> + use<'a> {
        of_kind(self.0, UNIT).filter_map(RemappingUnit::parse)
    }

    /// The reserved memory that can be where the table says.
    pub fn reserved(&self) -> impl Iterator<Item = ReservedMemory<'a>> + use<'a> {
        of_kind(self.0, RESERVED_MEMORY).filter_map(ReservedMemory::parse)
    }

    /// The unit behind which the interrupt controller is, by its place among
    /// [`units`](Self::units), and the number by which that knows it; `None` if there are none or
    /// several.
    pub fn io_apic(&self, buses: Buses<'_>) -> Option<(usize, RequesterId)> {
        let of_unit = |(place, unit): (usize, RemappingUnit<'a>)| {
            let found = unit.scopes.io_apics(buses);
            found.map(move |id| (place, id))
        };
        let mut all = self.units().enumerate().flat_map(of_unit);
        let only = all.next()?;
        all.next().is_none().then_some(only)
    }

    /// The unit behind which a function is, by its place among [`units`](Self::units).
    pub fn unit_of(&self, segment: u16, function: RequesterId, buses: Buses<'_>) -> Option<usize> {
        let in_segment = |unit: &RemappingUnit<'_>| unit.segment == segment;
        let named = self
            .units()
            .position(|unit| in_segment(&unit) && unit.scopes.hold(function, buses));
        named.or_else(|| {
            self.units()
                .position(|unit| in_segment(&unit) && unit.takes_the_rest)
        })
    }
}

impl<'a> RemappingUnit<'a> {
    fn parse(structure: &'a [u8]) -> Option<Self> {
        let registers = long(structure, ADDRESS)?;
        let can_be = registers != 0 && registers.is_multiple_of(PAGE_BYTES);
        can_be.then_some(Self {
            segment: half(structure, SEGMENT)?,
            registers,
            takes_the_rest: structure.get(FLAGS)? & TAKES_THE_REST != 0,
            scopes: Scopes(structure.get(UNIT_SCOPES..)?),
        })
    }
}

impl<'a> ReservedMemory<'a> {
    fn parse(structure: &'a [u8]) -> Option<Self> {
        let start = long(structure, ADDRESS)?;
        let end = long(structure, LIMIT)?.checked_add(1)?;
        let bytes = end.checked_sub(start)?;
        let are_pages = [start, end].iter().all(|at| at.is_multiple_of(PAGE_BYTES));
        let can_be = are_pages && (1..=RESERVED_BYTES_MAX).contains(&bytes);
        can_be.then_some(Self {
            segment: half(structure, SEGMENT)?,
            start,
            end,
            scopes: Scopes(structure.get(RESERVED_SCOPES..)?),
        })
    }
}

/// The structures of a kind. Their lengths have two bytes; the walk ends where one leads out
/// of the table or is too short for itself.
fn of_kind(table: &[u8], wanted: u16) -> impl Iterator<Item = &[u8]> {
    let mut rest = table.get(STRUCTURES..).unwrap_or(&[]);
    let walk = core::iter::from_fn(move || {
        let (kind, bytes) = (half(rest, 0)?, half(rest, 2)?);
        let (structure, behind) = rest.split_at_checked(usize::from(bytes))?;
        rest = behind;
        (structure.len() >= 4).then_some((kind, structure))
    });
    walk.filter_map(move |(kind, structure)| (kind == wanted).then_some(structure))
}

/// Devices that a structure names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scopes<'a>(&'a [u8]);

/// Kinds of scopes: a function, and all that lies behind a bridge with it.
const ENDPOINT: u8 = 1;
const HIERARCHY: u8 = 2;
const IO_APIC: u8 = 3;
const SCOPE_BUS: usize = 5;
const SCOPE_PATH: usize = 6;

impl<'a> Scopes<'a> {
    /// The interrupt controllers that they name.
    fn io_apics(self, buses: Buses<'_>) -> impl Iterator<Item = RequesterId> + use<'a, '_> {
        let all = crate::structures(self.0, 0);
        all.filter_map(move |(kind, scope)| match kind {
            IO_APIC => place(scope, buses),
            _ => None,
        })
    }

    /// Whether they name this function, or a bridge above it. Interrupt controllers and
    /// timers, which scopes name too, are no functions.
    pub fn hold(&self, function: RequesterId, buses: Buses<'_>) -> bool {
        crate::structures(self.0, 0).any(|(kind, scope)| {
            let Some(place) = place(scope, buses) else {
                return false;
            };
            let is_behind = || buses(place).is_some_and(|range| range.contains(&function.bus()));
            match kind {
                ENDPOINT => place == function,
                HIERARCHY => place == function || is_behind(),
                _ => false,
            }
        })
    }
}

/// Where a scope's path ends.
fn place(scope: &[u8], buses: Buses<'_>) -> Option<RequesterId> {
    let bus = *scope.get(SCOPE_BUS)?;
    let (hops, _) = scope.get(SCOPE_PATH..)?.as_chunks::<2>();
    let (&[device, function], others) = hops.split_first()?;
    let first = RequesterId::new(bus, device, function)?;
    others
        .iter()
        .try_fold(first, |bridge, &[device, function]| {
            RequesterId::new(*buses(bridge)?.start(), device, function)
        })
}
