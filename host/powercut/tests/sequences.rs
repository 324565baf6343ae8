//! The short forms: each looks at thousands of images.

use powercut::day::{self, Faults};
use powercut::files::scene::{Room, Scene};
use powercut::files::sequence::{Effort, Tally, all, try_cuts};
use powercut::files::walk::walk;
use powercut::requests;

#[test]
fn any_two_operations_and_a_cut_leave_what_was_promised() {
    let effort = Effort {
        torn: 2,
        again: 1,
        rotten: 1,
        cuts: usize::MAX,
        fsck_every: 1000,
    };
    for room in [Room::Much, Room::Little] {
        let scene = Scene::new(room).unwrap();
        let mut tally = Tally::default();
        for (operations, seed) in all(2, &scene.files).iter().zip(0..) {
            try_cuts(&scene, operations, &effort, seed, &mut tally).unwrap();
        }
        assert!(tally.images > 3000 && tally.checked > 2, "{tally:?}");
    }
}

#[test]
fn a_long_walk_and_a_cut_leave_what_was_promised() {
    let scene = Scene::new(Room::Much).unwrap();
    walk(&scene, 1, &mut Tally::default()).unwrap();
}

#[test]
fn hours_with_a_bad_disk_leave_what_was_promised() {
    let scene = Scene::new(Room::Much).unwrap();
    for seed in 0..3 {
        let lived = day::live(&scene, seed, 1, Faults::SOME).unwrap();
        assert!(lived.operations > 1000 && lived.images > 2, "{lived:?}");
    }
}

#[test]
fn what_the_queue_says_to_be_durable_is_there_after_a_cut() {
    (0..300).try_for_each(requests::history).unwrap();
}
