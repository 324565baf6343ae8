//! What files do, one thing at a time.

use models::Random;

use super::world::{BUFFER_BYTES, World};
use crate::{Error, Files, OpenError};

#[test]
fn small_writes_between_two_syncs_are_one_entry() {
    let (mut world, mut random) = (World::new(512, 200), Random::new(1));
    world.create(b"a", &mut random).unwrap();
    for at in 0..20 {
        world.write(b"a", at * 10, b"0123456789", &mut random);
    }
    world.sync(&mut random);
    assert_eq!(world.files.log().durable().sequence(), 1);
    assert_eq!(world.files.log().durable().position(), 1, "it is one block");
    world.check().unwrap();
}

#[test]
fn a_file_tells_up_to_where_it_is_durable() {
    let (mut world, mut random) = (World::new(512, 200), Random::new(1));
    let number = world.create(b"a", &mut random).unwrap();
    world.write(b"a", 0, b"durable", &mut random);
    assert_eq!(world.files.durable_up_to(number), 0);
    world.sync(&mut random);
    world.write(b"a", 7, b" and not", &mut random);
    assert_eq!(world.files.durable_up_to(number), 7);
    assert_eq!(world.files.size(number), Some(15));
}

#[test]
fn a_log_that_is_full_says_so_before_the_write_and_takes_removals() {
    let (mut world, mut random) = (World::new(512, 130), Random::new(1));
    for name in [b"a", b"b"] {
        world.create(name, &mut random).unwrap();
    }
    let mut size = 0;
    while world.make_room(600, &mut random) {
        assert!(world.write(b"a", size, &[1; 600], &mut random));
        size += 600;
    }
    assert!(size > 100 * 512, "it was full at {size}");
    assert!(!world.write(b"b", 0, &[1; 600], &mut random));
    world.check().unwrap();
    assert!(world.remove(b"a", &mut random));
    assert!(world.make_room(30_000, &mut random), "the space comes back");
    assert!(world.write(b"b", 0, &[2; 30_000], &mut random));
    world.sync(&mut random);
    world.lose_power(&mut random).unwrap();
}

#[test]
fn old_files_live_on_while_others_are_written_over_and_over() {
    let (mut world, mut random) = (World::new(512, 150), Random::new(1));
    world.create(b"old", &mut random).unwrap();
    world.write(b"old", 0, &[7; 5000], &mut random);
    for round in 0..200_u8 {
        world.create(b"new", &mut random);
        assert!(world.make_room(3000, &mut random));
        assert!(world.write(b"new", 0, &[round; 3000], &mut random));
        world.sync(&mut random);
    }
    world.check().unwrap();
    world.lose_power(&mut random).unwrap();
    assert_eq!(world.now[&b"old"[..]], [7; 5000]);
}

#[test]
fn a_file_without_a_name_is_there_while_somebody_holds_it() {
    let (mut world, mut random) = (World::new(512, 200), Random::new(1));
    let number = world.create(b"a", &mut random).unwrap();
    world.write(b"a", 0, b"still there", &mut random);
    world.files.hold(number);
    assert!(world.remove(b"a", &mut random));
    assert_eq!(world.read(number).unwrap(), b"still there");
    assert_eq!(world.files.rename(number, b"b"), Err(Error::Removed));
    world.files.release(number);
    assert_eq!(world.files.size(number), None);
    assert_eq!(world.files.alive(), 0);
}

#[test]
fn names_and_lengths_have_bounds() {
    let (mut world, mut random) = (World::new(512, 200), Random::new(1));
    let number = world.create(b"a", &mut random).unwrap();
    let files = &mut world.files;
    assert_eq!(files.create(b""), Err(Error::BadName));
    assert_eq!(files.create(&[b'n'; 4097]), Err(Error::BadName));
    assert_eq!(files.set_size(number, 1 << 63), Err(Error::TooLarge));
    assert_eq!(
        files.write(number, (1 << 63) - 1, b"b"),
        Err(Error::TooLarge)
    );
}

#[test]
fn a_log_of_something_else_is_refused() {
    let mut disk = super::disk::SimDisk::new(512, 100);
    let log = plog::format(&mut disk, 1).unwrap();
    let odd = Files::open(log, &mut disk, std::vec![0; BUFFER_BYTES + 1]);
    assert!(matches!(odd, Err(OpenError::BadBuffer)));
}
