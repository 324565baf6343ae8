//! The bytes of one copy of the catalogue. Numbers are little-endian.
//!
//! ```text
//! header, 4096 bytes, of which a sector is used        body, from byte 4096 on
//!   0  "SIETVSA1"                                        areas, 96 bytes each, sorted by name:
//!   8  u32 version, 1         12  u32 copy, 0 or 1         0  u64 id        8  u64 version
//!  16  u64 generation         24  u64 blocks of the disk  16  u32 owner    20  u32 extents
//!  32  u32 bytes of a block   36  u32 areas               24  u8 length of the name
//!  40  u32 extents            44  u32 quotas              32  64 bytes of name, then zeroes
//!  48  u64 next id            56  u64 quota of others    extents, 16 each, in the areas' order:
//!  64  u32 CRC-32C of body    68  u32 CRC-32C of 0..68     0  u64 first     8  u64 count
//!                                                        quotas, 16 each: u32 owner, 8: u64 blocks
//! ```
//! A checksum keeps away what a fault left, not what somebody wrote on purpose: so every number is
//! checked as well.

use alloc::vec;
use alloc::vec::Vec;

use checksum::crc32c;

use crate::areas::{Area, AreaId, Areas, Name, Quota};
use crate::error::Refused;
use crate::extent::{Blocks, Extent};
use crate::planted::{Bug, planted};
use crate::space::Space;
use crate::{AREA_EXTENTS_MAX, AREAS_MAX, EXTENTS_MAX, NAME_MAX, QUOTAS_MAX};

/// Bytes of one copy: at the beginning of the disk, and right behind that.
pub const COPY_BYTES: usize = 128 << 10;
/// Where the body begins.
pub(crate) const HEADER_BYTES: usize = 4096;

const MAGIC: &[u8; 8] = b"SIETVSA1";
const VERSION: u32 = 1;
/// Ids, versions and generations are below. What somebody made up may be at its end: no change goes beyond.
pub(crate) const NUMBERS_END: u64 = 1 << 62;
const SUMMED_BYTES: usize = 68;
const AREA_BYTES: usize = 96;
const EXTENT_BYTES: usize = 16;
const QUOTA_BYTES: usize = 16;
const _: () = assert!(
    HEADER_BYTES + AREAS_MAX * AREA_BYTES + EXTENTS_MAX * EXTENT_BYTES + QUOTAS_MAX * QUOTA_BYTES
        <= COPY_BYTES,
    "a full catalogue fits"
);

/// A disk's shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub block_bytes: u32,
    pub blocks: Blocks,
}

impl Shape {
    /// Blocks of one copy.
    pub fn copy_blocks(self) -> Blocks {
        COPY_BYTES as u64 / u64::from(self.block_bytes)
    }

    /// The blocks that areas may have; none if there are none, or blocks have no size that we know.
    pub fn for_areas(self) -> Option<Extent> {
        let is_known =
            (512..=4096).contains(&self.block_bytes) && self.block_bytes.is_power_of_two();
        let first = 2 * is_known.then(|| self.copy_blocks())?;
        Extent::new(first, self.blocks.checked_sub(first)?)
    }
}

/// What one copy says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Decoded {
    pub generation: u64,
    pub areas: Areas,
}

/// The `copy`-th copy as bytes, a multiple of 4096.
pub(crate) fn encode(areas: &Areas, shape: Shape, generation: u64, copy: u32) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    areas
        .areas
        .iter()
        .for_each(|area| put_area(&mut bytes, area));
    let extents = areas.areas.iter().flat_map(|area| &area.extents);
    for extent in extents.clone() {
        bytes.extend(extent.first().to_le_bytes());
        bytes.extend(extent.count().to_le_bytes());
    }
    for quota in &areas.quotas {
        bytes.extend(u64::from(quota.owner).to_le_bytes());
        bytes.extend(quota.blocks_max.to_le_bytes());
    }
    bytes.resize(bytes.len().next_multiple_of(HEADER_BYTES), 0);
    put(&mut bytes, 0, MAGIC);
    put(&mut bytes, 8, &VERSION.to_le_bytes());
    put(&mut bytes, 12, &copy.to_le_bytes());
    put(&mut bytes, 16, &generation.to_le_bytes());
    put(&mut bytes, 24, &shape.blocks.to_le_bytes());
    put(&mut bytes, 32, &shape.block_bytes.to_le_bytes());
    put(&mut bytes, 36, &(areas.areas.len() as u32).to_le_bytes());
    put(&mut bytes, 40, &(extents.count() as u32).to_le_bytes());
    put(&mut bytes, 44, &(areas.quotas.len() as u32).to_le_bytes());
    put(&mut bytes, 48, &areas.next_id.to_le_bytes());
    put(&mut bytes, 56, &areas.default_quota.to_le_bytes());
    seal(&mut bytes);
    bytes
}

fn put_area(bytes: &mut Vec<u8>, area: &Area) {
    let start = bytes.len();
    bytes.extend(area.id.0.to_le_bytes());
    bytes.extend(area.version.to_le_bytes());
    bytes.extend(area.owner.to_le_bytes());
    bytes.extend((area.extents.len() as u32).to_le_bytes());
    bytes.extend((area.name.bytes().len() as u64).to_le_bytes());
    bytes.extend(area.name.bytes());
    bytes.resize(start + AREA_BYTES, 0);
}

/// Makes the checksums of a copy right, whatever it says: for tools that mend one, and tests.
pub fn seal(copy: &mut [u8]) {
    let body = body_of(copy).map_or(0, crc32c);
    put(copy, 64, &body.to_le_bytes());
    let header = copy.get(..SUMMED_BYTES).map_or(0, crc32c);
    put(copy, SUMMED_BYTES, &header.to_le_bytes());
}

/// How many there are, as the header says.
struct Counts {
    areas: usize,
    extents: usize,
    quotas: usize,
}

impl Counts {
    fn of(copy: &[u8]) -> Option<Self> {
        let within = |at, max| Some(u32_at(copy, at) as usize).filter(|count| *count <= max);
        Some(Self {
            areas: within(36, AREAS_MAX)?,
            extents: within(40, EXTENTS_MAX)?,
            quotas: within(44, QUOTAS_MAX)?,
        })
    }

    fn body_bytes(&self) -> usize {
        self.areas * AREA_BYTES + self.extents * EXTENT_BYTES + self.quotas * QUOTA_BYTES
    }
}

/// The part of the body that is summed.
fn body_of(copy: &[u8]) -> Option<&[u8]> {
    let counts = Counts::of(copy)?;
    copy.get(HEADER_BYTES..HEADER_BYTES + counts.body_bytes())
}

/// Reads a copy, of which all [`COPY_BYTES`] are there.
pub(crate) fn decode(copy: &[u8], shape: Shape, number: u32) -> Result<Decoded, Refused> {
    check_header(copy, shape, number)?;
    let counts = Counts::of(copy).ok_or(Refused::Counts)?;
    let body = body_of(copy).ok_or(Refused::Counts)?;
    let is_whole = crc32c(body) == u32_at(copy, 64) || planted(Bug::ChecksumUnchecked);
    if !is_whole {
        return Err(Refused::Checksum);
    }
    let (areas, rest) = body
        .split_at_checked(counts.areas * AREA_BYTES)
        .ok_or(Refused::Counts)?;
    let cut = rest.split_at_checked(counts.extents * EXTENT_BYTES);
    let (extents, quotas) = cut.ok_or(Refused::Counts)?;
    let (generation, next_id) = (u64_at(copy, 16), u64_at(copy, 48));
    if generation >= NUMBERS_END || !(1..NUMBERS_END).contains(&next_id) {
        return Err(Refused::Counts);
    }
    let areas = areas_of(areas, extents, next_id)?;
    let space = space_of(&areas, shape)?;
    Ok(Decoded {
        generation,
        areas: Areas {
            next_id,
            default_quota: u64_at(copy, 56),
            quotas: quotas_of(quotas)?,
            areas,
            space,
        },
    })
}

/// Whether a copy begins as catalogues do.
pub(crate) fn has_magic(copy: &[u8]) -> bool {
    copy.starts_with(MAGIC)
}

fn check_header(copy: &[u8], shape: Shape, number: u32) -> Result<(), Refused> {
    if !has_magic(copy) {
        return Err(Refused::NotCatalogue);
    }
    let sum = copy.get(..SUMMED_BYTES).map(crc32c);
    if sum != Some(u32_at(copy, SUMMED_BYTES)) && !planted(Bug::ChecksumUnchecked) {
        return Err(Refused::Checksum);
    }
    let version = u32_at(copy, 8);
    if version != VERSION {
        return Err(Refused::Version(version));
    }
    if u32_at(copy, 12) != number && !planted(Bug::CopyUnbound) {
        return Err(Refused::Misplaced);
    }
    // A disk that has grown keeps its catalogue.
    let fits = u32_at(copy, 32) == shape.block_bytes && u64_at(copy, 24) <= shape.blocks;
    fits.then_some(()).ok_or(Refused::Shape)
}

fn areas_of(areas: &[u8], mut extents: &[u8], next_id: u64) -> Result<Vec<Area>, Refused> {
    let mut decoded: Vec<Area> = Vec::new();
    for (at, bytes) in areas.chunks_exact(AREA_BYTES).enumerate() {
        let count = u32_at(bytes, 20) as usize;
        let is_count = (1..=AREA_EXTENTS_MAX).contains(&count);
        let cut = extents.split_at_checked(count.saturating_mul(EXTENT_BYTES));
        let (own, rest) = cut.filter(|_| is_count).ok_or(Refused::Area(at))?;
        extents = rest;
        let area = area_of(bytes, own, next_id).ok_or(Refused::Area(at))?;
        if decoded.last().is_some_and(|last| last.name >= area.name) {
            return Err(Refused::Twice);
        }
        decoded.push(area);
    }
    let mut ids: Vec<AreaId> = decoded.iter().map(|area| area.id).collect();
    ids.sort_unstable();
    let is_fresh = ids.windows(2).all(|pair| pair.first() < pair.last());
    match (is_fresh, extents.is_empty()) {
        (false, _) => Err(Refused::Twice),
        (_, false) => Err(Refused::Counts),
        _ => Ok(decoded),
    }
}

fn area_of(bytes: &[u8], extents: &[u8], next_id: u64) -> Option<Area> {
    let id = Some(u64_at(bytes, 0)).filter(|id| (1..next_id).contains(id))?;
    let version = Some(u64_at(bytes, 8)).filter(|version| (1..NUMBERS_END).contains(version))?;
    let len = usize::try_from(u64_at(bytes, 24)).ok()?;
    let name = bytes.get(32..)?.get(..len.min(NAME_MAX + 1))?;
    let extents = extents.chunks_exact(EXTENT_BYTES);
    let extents = extents.map(|bytes| Extent::new(u64_at(bytes, 0), u64_at(bytes, 8)));
    Some(Area {
        id: AreaId(id),
        version,
        owner: u32_at(bytes, 16),
        name: Name::new(name)?,
        extents: extents.collect::<Option<_>>()?,
    })
}

/// What is free beside `areas`, whose extents lie on the disk and do not overlap.
fn space_of(areas: &[Area], shape: Shape) -> Result<Space, Refused> {
    let whole = shape.for_areas().ok_or(Refused::Shape)?;
    let each = areas.iter().enumerate();
    let mut used: Vec<(Extent, usize)> = each
        .flat_map(|(at, area)| area.extents.iter().map(move |extent| (*extent, at)))
        .collect();
    used.sort_unstable();
    let mut from = whole.first();
    for (extent, at) in &used {
        if extent.first() < from || extent.end() > whole.end() {
            return Err(Refused::Extent(*at));
        }
        from = extent.end();
    }
    let used: Vec<Extent> = used.into_iter().map(|(extent, _)| extent).collect();
    Ok(Space::around(whole, &used))
}

fn quotas_of(bytes: &[u8]) -> Result<Vec<Quota>, Refused> {
    let mut quotas: Vec<Quota> = Vec::new();
    for (at, bytes) in bytes.chunks_exact(QUOTA_BYTES).enumerate() {
        let owner = u32_at(bytes, 0);
        if quotas.iter().any(|quota| quota.owner == owner) {
            return Err(Refused::Quota(at));
        }
        quotas.push(Quota {
            owner,
            blocks_max: u64_at(bytes, 8),
        });
    }
    Ok(quotas)
}

fn put(bytes: &mut [u8], at: usize, from: &[u8]) {
    if let Some(to) = bytes.get_mut(at..at + from.len()) {
        to.copy_from_slice(from);
    }
}

/// The number at `at`; zero if it is not all there, which no check takes for a good one.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk());
    field.map_or(0, |field| u32::from_le_bytes(*field))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk());
    field.map_or(0, |field| u64::from_le_bytes(*field))
}
