//! `loom` runs births, ends, waits and inheritance with the relations' own code in all orders that
//! matter. Whatever the order, each end is heard by somebody, once.

#![allow(
    clippy::arc_with_non_send_sync,
    reason = "threads of loom are one thread of the system"
)]

use std::array::from_fn;
use std::collections::BTreeSet;
use std::sync::Arc;

use base::lock::RwLock;
use loom::thread;
use models::{Watched, explore};
use relations::{Cursor, Fate, Host, INIT, Index, Part, State};

const PARTS: usize = 2;

struct Kernel;

type Member = relations::Member<Kernel>;
type Table = relations::Table<Kernel, PARTS>;

#[derive(Default)]
struct Known {
    has_ended: bool,
}

impl State for Known {
    fn has_changed(&self) -> bool {
        self.has_ended
    }
}

impl Host for Kernel {
    type Family = Watched;
    /// Whether it is a reaper.
    type Process = bool;
    type State = Known;

    fn release(_number: u32) {}

    fn has_reapers() -> bool {
        true
    }

    fn is_reaper(process: &bool) -> bool {
        *process
    }

    fn breathe() {}
}

/// The first process, 2 below it, and 3 below that; 2 is a reaper.
struct World(Table);

impl World {
    fn new() -> Self {
        let table = Table::new(from_fn(|_| Part::new(RwLock::new(Index::new()))));
        let world = Self(table);
        world.0.add((INIT, false), None, None, Known::default());
        world.bear(2, true, INIT, INIT);
        world.bear(3, false, 2, 2);
        world
    }

    fn member(&self, id: u32) -> Arc<Member> {
        self.0.get(id).expect("it is there")
    }

    fn bear(&self, id: u32, is_reaper: bool, parent: u32, model: u32) {
        let (parent, model) = (self.member(parent), self.member(model));
        self.0.add(
            (id, is_reaper),
            Some(parent),
            Some(&model),
            Known::default(),
        );
    }

    fn end(&self, id: u32) {
        let dying = self.member(id);
        while self.0.give_away(&dying, |_, _, _| Fate::Stays).is_some() {}
        let told = self.0.update(&dying, |known, _| {
            known.has_ended = true;
            ((), Fate::Stays)
        });
        assert_eq!(told, Some(()), "it has a parent");
    }

    /// Of whom `id` hears that it has ended.
    fn wait(&self, id: u32) -> Option<u32> {
        let hear = |child: &Member, _: &mut Known| Some((child.id(), Fate::Goes));
        self.0.hear(&self.member(id), 0..=u32::MAX, hear)
    }

    fn wait_for_all(&self, id: u32) -> Vec<u32> {
        std::iter::from_fn(|| self.wait(id)).collect()
    }
}

/// Runs `one` on another thread and `two` on this one.
fn race(one: fn(&World), two: fn(&World), check: fn(&World)) {
    explore(move || {
        let world = Arc::new(World::new());
        let here = world.clone();
        let other = thread::spawn(move || one(&here));
        two(&world);
        other.join().expect("it ends");
        check(&world);
    });
}

#[test]
fn the_end_of_a_child_whose_parent_ends_is_heard_by_its_heir() {
    race(
        |world| world.end(2),
        |world| world.end(3),
        |world| assert_eq!(world.wait_for_all(INIT), [2, 3]),
    );
}

#[test]
fn a_process_that_no_process_made_is_gone_at_once_and_leaves_its_children_to_the_first() {
    race(
        |world| {
            world.0.add((4, false), None, None, Known::default());
            world.bear(5, false, 4, 4);
            let dying = world.member(4);
            while world.0.give_away(&dying, |_, _, _| Fate::Stays).is_some() {}
            world.0.forget(&dying);
            world.end(5);
        },
        |world| world.end(3),
        |world| {
            assert!(world.0.get(4).is_none());
            assert_eq!(world.wait_for_all(INIT), [5]);
            world.0.forget(&world.member(3));
            assert_eq!(world.wait_for_all(2), [3], "only its parent forgets it");
        },
    );
}

#[test]
fn an_end_is_heard_once() {
    explore(|| {
        let world = Arc::new(World::new());
        let part = |act: fn(&World) -> Option<u32>| {
            let world = world.clone();
            thread::spawn(move || act(&world))
        };
        let ends = part(|world| {
            world.end(3);
            None
        });
        let waits = part(|world| world.wait(2));
        let own = world.wait(2);
        ends.join().expect("it ends");
        let other = waits.join().expect("it ends");
        let late = world.wait(2);
        let heard: Vec<u32> = [own, other, late].into_iter().flatten().collect();
        assert_eq!(heard, [3]);
        assert!(world.0.get(3).is_none(), "nobody finds it any more");
    });
}

#[test]
fn a_child_that_is_born_to_a_parent_that_ends_goes_to_its_heir() {
    race(
        // As with CLONE_PARENT.
        |world| world.bear(4, false, 2, 3),
        |world| world.end(2),
        |world| {
            let parent = world.member(4).parent().expect("it has one");
            assert_eq!(parent.id(), INIT);
            world.end(4);
            world.end(3);
            assert_eq!(world.wait_for_all(INIT), [2, 3, 4]);
        },
    );
}

#[test]
fn nobody_is_given_to_a_reaper_that_has_ended() {
    explore(|| {
        let world = Arc::new(World::new());
        world.bear(4, false, 3, 3);
        let other = world.clone();
        let other = thread::spawn(move || other.end(3));
        world.end(2);
        other.join().expect("it ends");
        let parent = world.member(4).parent().expect("it has one");
        assert_eq!(parent.id(), INIT, "2 would have been its heir");
        assert_eq!(world.wait_for_all(INIT), [2, 3]);
    });
}

#[test]
fn a_child_that_changes_its_group_as_it_is_forgotten_leaves_none_behind() {
    race(
        |world| {
            let Some(member) = world.0.get(3) else { return };
            if let Some(group) = world.0.group_in(INIT, 3, &member) {
                // It may be forgotten already.
                let _ = world.0.set_group(&member, group, INIT);
            }
        },
        |world| {
            world.end(3);
            assert_eq!(world.wait(2), Some(3));
        },
        |world| {
            // Another one of that number, in the first one's group.
            world.bear(3, false, 2, 2);
            let (mut cursor, group) = (Cursor::default(), 3);
            assert!(world.0.next_of_group(group, &mut cursor).is_none());
        },
    );
}

#[test]
fn a_process_that_leads_a_session_is_put_into_no_group_of_the_one_before() {
    race(
        |world| {
            let member = world.member(3);
            if let Some(group) = world.0.group_in(INIT, INIT, &member) {
                // It may lead a session already.
                let _ = world.0.set_group(&member, group, INIT);
            }
        },
        |world| assert!(world.0.lead_session(&world.member(3))),
        |world| {
            let member = world.member(3);
            assert_eq!((member.session(), member.group()), (3, 3));
        },
    );
}

/// As setpgid(2): 3 is in a group of its own, which somebody joins while 3 leaves it and begins a
/// session.
fn a_group_is_left_and_led_while(join: fn(&World)) {
    explore(move || {
        let world = Arc::new(World::new());
        world.bear(4, false, 2, 2);
        let leader = world.member(3);
        let own = world.0.group_in(INIT, 3, &leader).expect("it may lead");
        assert!(world.0.set_group(&leader, own, INIT));
        let here = world.clone();
        let other = thread::spawn(move || join(&here));
        let first = world.0.group_in(INIT, INIT, &leader).expect("of 1");
        assert!(world.0.set_group(&leader, first, INIT));
        let leads = world.0.lead_session(&leader);
        other.join().expect("it ends");
        let members = [3, 4, 5].into_iter().filter_map(|id| world.0.get(id));
        let in_group = members.filter(|member| member.group() == 3);
        let sessions: BTreeSet<u32> = in_group.map(|member| member.session()).collect();
        assert!(sessions.len() <= 1, "{sessions:?}");
        assert_eq!(leads, leader.session() == 3);
    });
}

#[test]
fn a_group_that_is_joined_while_its_leader_begins_a_session_is_in_one_session() {
    a_group_is_left_and_led_while(|world| {
        let member = world.member(4);
        if let Some(group) = world.0.group_in(INIT, 3, &member) {
            // Nobody may be in it any more.
            let _ = world.0.set_group(&member, group, INIT);
        }
    });
}

#[test]
fn a_group_into_which_a_child_is_born_while_its_leader_begins_a_session_is_in_one_session() {
    a_group_is_left_and_led_while(|world| world.bear(5, false, 3, 3));
}
