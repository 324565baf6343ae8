//! Long histories of births, ends, waits and regroupings, compared with a plain list.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::lock::RwLock;
use models::{Plain, Random, for_each_seed};
use relations::{Cursor, Fate, Host, INIT, Index, Part, State};

const PARTS: usize = 4;
/// Children that move under one hold of the locks.
const MOVED_MAX: usize = 64;

struct Kernel;

type Member = relations::Member<Kernel>;
type Table = relations::Table<Kernel, PARTS>;

thread_local! {
    static TAKEN: RefCell<BTreeSet<u32>> = const { RefCell::new(BTreeSet::new()) };
}

#[derive(Default)]
struct Process {
    is_reaper: Cell<bool>,
}

struct Known {
    has_ended: bool,
    is_adopted: bool,
}

impl State for Known {
    fn has_changed(&self) -> bool {
        self.has_ended
    }
}

impl Host for Kernel {
    type Family = Plain;
    type Process = Process;
    type State = Known;

    fn release(number: u32) {
        TAKEN.with_borrow_mut(|taken| assert!(taken.remove(&number), "{number} was taken"));
    }

    fn has_reapers() -> bool {
        true
    }

    fn is_reaper(process: &Process) -> bool {
        process.is_reaper.get()
    }

    fn breathe() {}
}

/// The same in plain.
#[derive(Clone, PartialEq, Debug)]
struct Plainly {
    parent: u32,
    group: u32,
    session: u32,
    has_ended: bool,
    is_adopted: bool,
    is_reaper: bool,
}

struct World {
    table: Table,
    plain: BTreeMap<u32, Plainly>,
    random: Random,
    next: u32,
}

impl World {
    fn new(random: Random) -> Self {
        TAKEN.with_borrow_mut(BTreeSet::clear);
        let table = Table::new(std::array::from_fn(|_| {
            Part::new(RwLock::new(Index::new()))
        }));
        let mut world = Self {
            table,
            plain: BTreeMap::new(),
            random,
            next: INIT,
        };
        world.bear(None, None);
        world
    }

    fn bear(&mut self, parent: Option<u32>, model: Option<u32>) {
        let id = self.next;
        self.next += 1;
        TAKEN.with_borrow_mut(|taken| taken.insert(id));
        let member = |id: u32| self.table.get(id).expect("it is there");
        let known = Known {
            has_ended: false,
            is_adopted: false,
        };
        let of_model = model.map(member);
        let new = (id, Process::default());
        self.table
            .add(new, parent.map(member), of_model.as_deref(), known);
        let of_model = model.and_then(|model| self.plain.get(&model));
        let (group, session) = of_model.map_or((id, id), |model| (model.group, model.session));
        let plain = Plainly {
            parent: parent.map_or(0, |parent| self.heir_if_dead(parent)),
            group,
            session,
            has_ended: false,
            is_adopted: false,
            is_reaper: false,
        };
        self.plain.insert(id, plain);
    }

    fn heir_if_dead(&self, parent: u32) -> u32 {
        match self.plain[&parent].has_ended {
            true => self.heir(parent),
            false => parent,
        }
    }

    fn heir(&self, of: u32) -> u32 {
        let mut at = self.plain[&of].parent;
        let is_none = |of: &Plainly| of.has_ended || !of.is_reaper;
        while at != INIT && is_none(&self.plain[&at]) {
            at = self.plain[&at].parent;
        }
        at
    }

    fn any(&mut self, is_one: impl Fn(&Plainly) -> bool) -> Option<u32> {
        let some = self.plain.iter().filter(|(_, plain)| is_one(plain));
        let some: Vec<u32> = some.map(|(id, _)| *id).collect();
        match some.len() {
            0 => None,
            count => Some(some[self.random.below(count)]),
        }
    }

    fn end(&mut self, id: u32) {
        let dying = self.table.get(id).expect("it is there");
        let heir = self.heir(id);
        let mut moved = BTreeSet::new();
        while let Some(orphans) = self.table.give_away(&dying, |_, known, heir| {
            known.is_adopted = true;
            let goes = known.has_ended && heir.id() == INIT;
            if goes { Fate::Goes } else { Fate::Stays }
        }) {
            assert_eq!(orphans.heir.id(), heir);
            assert!(orphans.children.len() <= MOVED_MAX);
            moved.extend(orphans.children.iter().map(|child| child.id()));
        }
        let mut expected = BTreeSet::new();
        self.plain.retain(|child, plain| {
            if plain.parent == id {
                expected.insert(*child);
                (plain.parent, plain.is_adopted) = (heir, true);
                return !(plain.has_ended && heir == INIT);
            }
            true
        });
        assert_eq!(moved, expected);
        // The first process waits for none that it adopted.
        let told = self.table.update(&dying, |known, parent| {
            known.has_ended = true;
            let goes = known.is_adopted && parent.id() == INIT;
            ((), if goes { Fate::Goes } else { Fate::Stays })
        });
        assert_eq!(told, Some(()));
        let plain = self.plain.get_mut(&id).unwrap();
        plain.has_ended = true;
        if plain.is_adopted && plain.parent == INIT {
            self.plain.remove(&id);
        }
    }

    fn wait(&mut self, id: u32) {
        let parent = self.table.get(id).expect("it is there");
        let heard = self.table.hear(&parent, 0..=u32::MAX, |child, _| {
            Some((child.id(), Fate::Goes))
        });
        let dead = |(_, plain): &(&u32, &Plainly)| plain.parent == id && plain.has_ended;
        let expected = self.plain.iter().find(dead).map(|(child, _)| *child);
        assert_eq!(heard, expected);
        heard.map(|child| self.plain.remove(&child));
    }

    fn regroup(&mut self, id: u32) {
        let group = match self.random.once_in(2) {
            true => id,
            false => self.any(|_| true).unwrap(),
        };
        let member = self.table.get(id).expect("it is there");
        let session = self.plain[&id].session;
        let in_it = |plain: &&Plainly| plain.group == group;
        let of_others = self.plain.values().find(in_it);
        let expected = of_others.map_or(group == id, |other| other.session == session);
        let found = self.table.group_in(session, group, &member);
        assert_eq!(
            found.as_ref().map(|group| group.get()),
            expected.then_some(group)
        );
        // The leader of a session stays in its group, or a group could be in two sessions.
        if let Some(found) = found {
            let moves = self.table.set_group(&member, found, session);
            assert_eq!(moves, session != id, "{id}");
            let plain = self.plain.get_mut(&id).unwrap();
            plain.group = if moves { group } else { plain.group };
        }
    }

    fn lead(&mut self, id: u32) {
        let is_free = !self.plain.values().any(|plain| plain.group == id);
        let leads = self.table.lead_session(&self.table.get(id).unwrap());
        assert_eq!(leads, is_free, "{id}");
        if !leads {
            return;
        }
        let plain = self.plain.get_mut(&id).unwrap();
        (plain.group, plain.session) = (id, id);
    }

    fn step(&mut self) {
        let Some(one) = self.any(|plain| !plain.has_ended) else {
            return;
        };
        match self.random.below(10) {
            0..3 if self.plain.len() < 40 => {
                let parent = match self.random.once_in(3) {
                    // As with CLONE_PARENT.
                    true => self.plain[&one].parent.max(INIT),
                    false => one,
                };
                self.bear(Some(parent), Some(one));
            }
            0..5 if one != INIT => self.end(one),
            5..7 => self.wait(one),
            7 => self.regroup(one),
            8 => self.lead(one),
            _ => {
                self.plain.get_mut(&one).unwrap().is_reaper = true;
                self.table.get(one).unwrap().process().is_reaper.set(true);
            }
        }
    }

    fn check(&self) {
        assert_eq!(self.table.len(), self.plain.len());
        let mut borne = BTreeSet::new();
        for (id, plain) in &self.plain {
            let member = self.table.get(*id).expect("it is there");
            let parent = member.parent().map_or(0, |parent| parent.id());
            assert_eq!(member.parent_id(), parent);
            let of_member = (parent, member.group(), member.session());
            assert_eq!(of_member, (plain.parent, plain.group, plain.session));
            let known = self.table.update(&member, |known, _| {
                ((known.has_ended, known.is_adopted), Fate::Stays)
            });
            let expected = (plain.has_ended, plain.is_adopted);
            assert_eq!(known, (*id != INIT).then_some(expected));
            borne.extend([*id, plain.group, plain.session]);
            self.check_group(plain.group);
            self.check_children(&member);
        }
        TAKEN.with_borrow(|taken| assert_eq!(*taken, borne, "what is borne is taken"));
    }

    fn check_group(&self, group: u32) {
        let (mut cursor, mut found) = (Cursor::default(), BTreeSet::new());
        while let Some(member) = self.table.next_of_group(group, &mut cursor) {
            assert!(found.insert(member.id()), "once");
        }
        let of_it = self.plain.iter().filter(|(_, plain)| plain.group == group);
        assert_eq!(found, of_it.map(|(id, _)| *id).collect());
    }

    fn check_children(&self, member: &Arc<Member>) {
        let children = self
            .plain
            .values()
            .filter(|plain| plain.parent == member.id());
        let living = children.filter(|plain| !plain.has_ended).count();
        let any = self
            .table
            .any_child(member, 0..=u32::MAX, |_, known| !known.has_ended);
        assert_eq!(any, living > 0);
    }
}

#[test]
fn relations_are_those_of_a_plain_list() {
    for_each_seed(15, |_seed, random| {
        let mut world = World::new(random);
        for _ in 0..250 {
            world.step();
            world.check();
        }
    });
}

#[test]
fn a_program_may_have_more_children_than_fit_in_a_batch() {
    const CHILDREN: u32 = 1000;
    let mut world = World::new(Random::new(1));
    world.bear(Some(INIT), Some(INIT));
    (0..CHILDREN).for_each(|_| world.bear(Some(2), Some(2)));
    let last = CHILDREN + 2;
    let parent = world.table.get(2).unwrap();
    let is_last = |child: &Member, _: &Known| child.id() == last;
    assert!(world.table.any_child(&parent, 0..=u32::MAX, is_last));
    assert!(!world.table.any_child(&parent, 0..=last - 1, is_last));
    (3..=last).for_each(|child| world.end(child));
    let heard = world.table.hear(&parent, 0..=u32::MAX, |child, _| {
        (child.id() == last).then_some((child.id(), Fate::Stays))
    });
    assert_eq!(heard, Some(last), "it stays to be heard");
    let of_last = last..=last;
    let nothing = world
        .table
        .hear(&parent, of_last.clone(), |_, _| None::<((), Fate)>);
    assert_eq!(nothing, None, "it is not what is waited for");
    let heard = world
        .table
        .hear(&parent, of_last, |_, _| Some(((), Fate::Goes)));
    assert_eq!(heard, Some(()));
    world.plain.remove(&last);
    // Who holds a member holds its number.
    drop(parent);
    world.end(2);
    world.wait(INIT);
    world.check();
    let left = world.table.len();
    assert_eq!(left, 1, "the first process waits for none that it adopted");
}

#[test]
fn who_is_forgotten_has_no_parent() {
    let mut world = World::new(Random::new(1));
    world.bear(Some(INIT), Some(INIT));
    let (parent, child) = (world.table.get(INIT).unwrap(), world.table.get(2).unwrap());
    world.end(2);
    let goes = |_: &Member, _: &mut Known| Some(((), Fate::Goes));
    assert_eq!(world.table.hear(&parent, 0..=u32::MAX, goes), Some(()));
    assert_eq!((child.parent_id(), child.parent().is_none()), (0, true));
}

#[test]
fn a_process_that_is_forgotten_is_not_found_at_its_number_when_another_one_has_it() {
    let mut world = World::new(Random::new(1));
    world.bear(Some(INIT), Some(INIT));
    let is_former = |process: &Process| process.is_reaper.get();
    world.table.get(2).unwrap().process().is_reaper.set(true);
    assert!(world.table.get_if(2, is_former).is_some());
    world.end(2);
    world.wait(INIT);
    assert!(world.table.get_if(2, is_former).is_none());
    world.next = 2;
    world.bear(Some(INIT), Some(INIT));
    assert!(world.table.get_if(2, is_former).is_none());
}

#[test]
fn a_parent_that_has_heard_of_a_change_is_not_asked_about_it_again() {
    let mut world = World::new(Random::new(1));
    world.bear(Some(INIT), Some(INIT));
    world.end(2);
    let parent = world.table.get(INIT).unwrap();
    let hear = |_: &Member, known: &mut Known| {
        known.has_ended = false;
        Some(((), Fate::Stays))
    };
    assert_eq!(world.table.hear(&parent, 0..=u32::MAX, hear), Some(()));
    assert_eq!(world.table.hear(&parent, 0..=u32::MAX, hear), None);
}

#[test]
fn a_parent_controls_another_group_of_its_own_session_only() {
    let mut world = World::new(Random::new(1));
    world.bear(Some(INIT), Some(INIT));
    let (parent, child) = (world.table.get(INIT).unwrap(), world.table.get(2).unwrap());
    assert!(!child.is_controlled_by(&parent), "they share a group");
    let own = world.table.group_in(INIT, 2, &child).expect("it may lead");
    assert!(world.table.set_group(&child, own, INIT));
    assert!(child.is_controlled_by(&parent));
    let first = world.table.group_in(INIT, INIT, &child).expect("of 1");
    assert!(world.table.set_group(&child, first, INIT));
    assert!(world.table.lead_session(&child));
    assert!(!child.is_controlled_by(&parent), "no session in common");
}

#[test]
fn a_group_that_has_gone_to_another_session_is_not_joined() {
    let mut world = World::new(Random::new(1));
    world.bear(Some(INIT), Some(INIT));
    world.bear(Some(INIT), Some(INIT));
    let [leader, other] = [2, 3].map(|id| world.table.get(id).unwrap());
    let own = world.table.group_in(INIT, 2, &leader).expect("it may lead");
    assert!(world.table.set_group(&leader, own, INIT));
    let seen = world.table.group_in(INIT, 2, &other).expect("it is there");
    let first = world.table.group_in(INIT, INIT, &leader).expect("of 1");
    assert!(world.table.set_group(&leader, first, INIT));
    let group = || seen.clone();
    assert!(!world.table.set_group(&other, group(), INIT), "it is empty");
    assert!(world.table.lead_session(&leader));
    assert!(!world.table.set_group(&other, group(), INIT));
    assert_eq!((other.group(), other.session()), (INIT, INIT));
    assert!(!world.table.lead_session(&leader), "it leads one");
}

#[test]
fn a_group_that_all_its_members_have_left_may_lead_a_session() {
    let mut world = World::new(Random::new(1));
    (0..3).for_each(|_| world.bear(Some(INIT), Some(INIT)));
    let members = [2, 3, 4].map(|id| world.table.get(id).unwrap());
    let join = |member: &Member, group: u32| {
        let group = world.table.group_in(INIT, group, member);
        world
            .table
            .set_group(member, group.expect("it is there"), INIT)
    };
    assert!(members.iter().all(|member| join(member, 2)));
    for member in &members {
        assert!(!world.table.lead_session(&members[0]), "somebody is in it");
        assert!(join(member, INIT));
    }
    assert!(world.table.lead_session(&members[0]));
}

#[test]
fn a_member_has_neither_ended_nor_run_a_program_at_first() {
    let world = World::new(Random::new(1));
    let member = world.table.get(INIT).unwrap();
    assert!(!member.has_ended() && !member.has_run_program());
    member.note_program();
    assert!(!member.has_ended() && member.has_run_program());
    member.note_end();
    assert!(member.has_ended());
}

#[test]
fn a_look_finds_who_has_the_number() {
    let world = World::new(Random::new(1));
    assert_eq!(world.table.with(INIT, Member::id), Some(INIT));
    assert_eq!(world.table.with(INIT + 1, Member::id), None);
}

#[test]
fn a_table_is_empty_before_the_first_process_is_in_it() {
    let part = |_| Part::new(RwLock::new(Index::new()));
    assert!(Table::new(std::array::from_fn(part)).is_empty());
    assert!(!World::new(Random::new(1)).table.is_empty());
}
