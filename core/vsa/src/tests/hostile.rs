//! Catalogues that somebody made up, with checksums that are right.

use models::{Random, for_each_seed};

use super::disk::SimDisk;
use crate::{COPY_BYTES, Catalogue, Error, New, OpenError, Refused, seal};

fn some() -> SimDisk {
    let mut disk = SimDisk::new(4096, 164, 0);
    let mut catalogue = Catalogue::format(&mut disk).unwrap();
    for (name, blocks) in [(b"a", 10), (b"b", 20), (b"c", 5)] {
        let new = New {
            name,
            owner: 3,
            blocks,
        };
        catalogue.create(&mut disk, &new).unwrap();
    }
    catalogue.set_quota(&mut disk, 3, Some(90)).unwrap();
    disk
}

/// A disk with a number in both copies, under right sums.
fn with(at: usize, value: u64) -> SimDisk {
    let mut disk = some();
    for copy in 0..2 {
        let copy = &mut disk.bytes[copy * COPY_BYTES..][..COPY_BYTES];
        copy[at..at + 8].copy_from_slice(&value.to_le_bytes());
        seal(copy);
    }
    disk
}

fn opened(at: usize, value: u64) -> Result<(), [Option<Refused>; 2]> {
    match Catalogue::open(&mut with(at, value)) {
        Ok(_) => Ok(()),
        Err(OpenError::Refused(reasons)) => Err(reasons),
        Err(other) => panic!("{other:?}"),
    }
}

fn refused(at: usize, value: u64, reason: Refused) {
    assert_eq!(opened(at, value), Err([Some(reason); 2]), "at {at}");
}

#[test]
fn each_number_that_makes_no_sense_is_refused_by_its_name() {
    let body = 4096;
    let extents = body + 3 * 96;
    refused(0, 0, Refused::NotCatalogue);
    refused(16, u64::MAX, Refused::Counts);
    refused(24, 165, Refused::Shape);
    refused(48, u64::MAX, Refused::Counts);
    refused(48, 0, Refused::Counts);
    refused(48, 2, Refused::Area(1));
    refused(36, 3 | 4 << 32, Refused::Counts);
    refused(36, 600 | 3 << 32, Refused::Counts);
    refused(body, 0, Refused::Area(0));
    refused(body, 2, Refused::Twice);
    refused(body + 8, 0, Refused::Area(0));
    refused(body + 96 + 20, 0, Refused::Area(1));
    refused(body + 96 + 24, 65, Refused::Area(1));
    refused(body + 96 + 32, u64::from(b'a'), Refused::Twice);
    refused(body + 96 + 32, u64::from(b'/'), Refused::Area(1));
    refused(extents, 63, Refused::Extent(0));
    refused(extents, u64::MAX, Refused::Area(0));
    refused(extents + 8, 0, Refused::Area(0));
    refused(extents + 8, 11, Refused::Extent(1));
    refused(extents + 32 + 8, 71, Refused::Extent(2));
    assert_eq!(opened(24, 164), Ok(()));
}

#[test]
fn numbers_at_their_end_allow_no_change_that_could_not_be_read_again() {
    const LAST: u64 = (1 << 62) - 1;
    let (generation, next_id, version) = (16, 48, 4096 + 8);
    let new = New {
        name: b"new",
        owner: 1,
        blocks: 2,
    };
    for (at, grows, makes) in [
        (generation, false, false),
        (next_id, true, false),
        (version, false, true),
    ] {
        let mut disk = with(at, LAST);
        let mut catalogue = Catalogue::open(&mut disk).unwrap();
        let id = catalogue.list()[0].id();
        let resized = catalogue.resize(&mut disk, id, 0, 12).err();
        assert_eq!(resized, (!grows).then_some(Error::CatalogueFull), "at {at}");
        let created = catalogue.create(&mut disk, &new).err();
        assert_eq!(created, (!makes).then_some(Error::CatalogueFull), "at {at}");
        let again = Catalogue::open(&mut disk).unwrap();
        assert_eq!(again.list(), catalogue.list(), "at {at}");
    }
}

#[test]
fn a_disk_of_others_is_asked_for_two_headers_and_no_more() {
    let mut disk = SimDisk::new(512, 4096, 0x5a);
    let reasons = [Some(Refused::NotCatalogue); 2];
    let opened = Catalogue::open(&mut disk).err();
    assert_eq!(opened, Some(OpenError::Refused(reasons)));
    assert_eq!((disk.events, disk.read_bytes), (0, 2 * 4096));
}

#[test]
fn a_copy_in_the_others_place_is_refused() {
    let mut disk = some();
    disk.bytes.copy_within(..COPY_BYTES, COPY_BYTES);
    disk.bytes[..8].fill(0);
    let reasons = [Some(Refused::NotCatalogue), Some(Refused::Misplaced)];
    let opened = Catalogue::open(&mut disk).err();
    assert_eq!(opened, Some(OpenError::Refused(reasons)));
}

fn scribble(copy: &mut [u8], random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let at = match random.once_in(2) {
            true => random.below(72usize),
            false => 4096 + random.below(400usize),
        };
        copy[at] = match random.below(3) {
            0 => 0,
            1 => 0xff,
            _ => random.bits() as u8,
        };
    }
    seal(copy);
}

#[test]
fn random_damage_under_a_right_checksum_is_refused_or_a_sound_catalogue() {
    let sound = some();
    for_each_seed(3000, |_, mut random| {
        let mut disk = sound.clone();
        scribble(&mut disk.bytes[..COPY_BYTES], &mut random);
        scribble(&mut disk.bytes[COPY_BYTES..2 * COPY_BYTES], &mut random);
        let Ok(mut catalogue) = Catalogue::open(&mut disk) else {
            return;
        };
        for area in catalogue.list().to_vec() {
            let map = catalogue.acquire(area.name().bytes(), 0).unwrap();
            let pieces = map.translate(0, map.blocks()).unwrap();
            assert!(
                pieces
                    .into_iter()
                    .all(|piece| piece.first() >= 64 && piece.end() <= 164)
            );
            let _ = catalogue.resize(&mut disk, area.id(), 0, 3);
            let _ = catalogue.delete(&mut disk, area.id(), 0);
        }
        let again = Catalogue::open(&mut disk).expect("what we wrote");
        assert_eq!(again.list(), catalogue.list());
    });
}
