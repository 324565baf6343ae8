//! Members by number, and those of a group.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;

use base::lock::{Lock, RwLock};

use crate::host::{Host, RwLockOf};
use crate::member::Place;
use crate::number::Number;
use crate::{INIT, Member};

/// What a part knows of its members.
pub struct Index<H: Host> {
    members: BTreeMap<u32, Arc<Member<H>>>,
    /// A group, and the number of one in it.
    groups: BTreeSet<(u32, u32)>,
}

impl<H: Host> Index<H> {
    /// Of nobody.
    pub const fn new() -> Self {
        Self {
            members: BTreeMap::new(),
            groups: BTreeSet::new(),
        }
    }
}

impl<H: Host> Default for Index<H> {
    fn default() -> Self {
        Self::new()
    }
}

/// A part of the table, on a cache line of its own.
#[repr(align(64))]
pub struct Part<H: Host>(RwLockOf<H, Index<H>>);

impl<H: Host> Part<H> {
    /// From the lock around an index of nobody.
    pub const fn new(index: RwLockOf<H, Index<H>>) -> Self {
        Self(index)
    }
}

/// All members.
pub struct Table<H: Host, const PARTS: usize> {
    parts: [Part<H>; PARTS],
}

/// How far a look through a group has come.
#[derive(Default, Debug)]
pub struct Cursor {
    parts: usize,
    from: u32,
}

impl<H: Host, const PARTS: usize> Table<H, PARTS> {
    /// From parts with nobody in them.
    pub const fn new(parts: [Part<H>; PARTS]) -> Self {
        Self { parts }
    }

    fn part(&self, number: u32) -> &RwLockOf<H, Index<H>> {
        // tidy: the remainder is less than the divisor.
        &self.parts[number as usize % PARTS].0
    }

    /// The member of that number.
    pub fn get(&self, number: u32) -> Option<Arc<Member<H>>> {
        self.part(number).read().members.get(&number).cloned()
    }

    /// The member of that number, if it is this process: who keeps a process that is forgotten may
    /// find another one at its number.
    pub fn get_if(
        &self,
        number: u32,
        is_it: impl FnOnce(&H::Process) -> bool,
    ) -> Option<Arc<Member<H>>> {
        self.get(number).filter(|member| is_it(member.process()))
    }

    /// What `look`, which only reads, finds at the member of that number.
    #[inline]
    pub fn with<R>(&self, number: u32, look: impl FnOnce(&Member<H>) -> R) -> Option<R> {
        let index = self.part(number).read();
        Some(look(index.members.get(&number)?))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.parts
            .iter()
            .map(|part| part.0.read().members.len())
            .sum()
    }

    /// Whether nobody is there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts a new process in, as a child of `parent`, in the group and session of `model`; without
    /// these, with no parent, and in its own.
    pub fn add(
        &self,
        (number, process): (u32, H::Process),
        parent: Option<Arc<Member<H>>>,
        model: Option<&Member<H>>,
        state: H::State,
    ) {
        let member = Member::new(number, process, model);
        let group = member.group();
        {
            let mut index = self.part(number).write();
            index.members.insert(number, member.clone());
            index.groups.insert((group, number));
        }
        if let Some(parent) = parent {
            self.bear(parent, member, state);
        }
    }

    /// A member without a parent has ended: nobody finds it any more.
    pub fn forget(&self, member: &Member<H>) {
        if member.parent().is_none() {
            self.remove(member);
        }
    }

    /// Nobody finds a member any more whom its parent has forgotten.
    pub(crate) fn remove(&self, member: &Member<H>) {
        let id = member.id();
        let mut index = self.part(id).write();
        {
            let place = member.place.lock();
            if index.groups.remove(&(place.group.get(), id)) {
                place.group.group.leave();
            }
        }
        let gone = index.members.remove(&id);
        drop(index);
        drop(gone);
    }

    /// Puts a member into another group of this session; false if it is not in that session any
    /// more, leads it, or is forgotten, or if nobody is in the group whom it does not lead.
    #[must_use]
    pub fn set_group(&self, member: &Member<H>, group: Arc<Number<H>>, session: u32) -> bool {
        self.regroup(member, |place| {
            let is_led = place.session.get() == session && session != member.id();
            let begins = || group.get() == member.id() && group.group.begin(session);
            let joins = is_led && (group.group.join(session) || begins());
            joins.then(|| (group, place.session.clone()))
        })
    }

    /// The member leads a session and a group of its own; false if somebody is in that group, or
    /// if it is forgotten.
    #[must_use]
    pub fn lead_session(&self, member: &Member<H>) -> bool {
        let number = &member.number;
        self.regroup(member, |_| {
            let begins = number.group.begin(number.get());
            begins.then(|| (number.clone(), number.clone()))
        })
    }

    /// Moves a member to the group and session that `choose` has it join, if any.
    fn regroup(
        &self,
        member: &Member<H>,
        choose: impl FnOnce(&Place<H>) -> Option<(Arc<Number<H>>, Arc<Number<H>>)>,
    ) -> bool {
        let id = member.id();
        let mut index = self.part(id).write();
        let mut place = member.place.lock();
        let old = (place.group.get(), id);
        if !index.groups.contains(&old) {
            return false;
        }
        let Some((group, session)) = choose(&place) else {
            return false;
        };
        index.groups.remove(&old);
        index.groups.insert((group.get(), id));
        place.group.group.leave();
        let old_group = core::mem::replace(&mut place.group, group);
        let old_session = core::mem::replace(&mut place.session, session);
        drop(place);
        drop(index);
        drop((old_group, old_session));
        true
    }

    /// The number of a group that has members in this session, or that `leader` is to lead.
    pub fn group_in(&self, session: u32, group: u32, leader: &Member<H>) -> Option<Arc<Number<H>>> {
        let mut cursor = Cursor::default();
        while let Some(member) = self.next_of_group(group, &mut cursor) {
            let place = member.place.lock();
            if place.group.get() == group {
                return (place.session.get() == session).then(|| place.group.clone());
            }
        }
        (leader.id() == group).then(|| leader.number.clone())
    }

    /// The next member of a group: that of the group's own number first. Nothing is locked between
    /// two.
    pub fn next_of_group(&self, group: u32, cursor: &mut Cursor) -> Option<Arc<Member<H>>> {
        while cursor.parts < PARTS {
            let index = self.part(group.wrapping_add(cursor.parts as u32)).read();
            let range = (group, cursor.from)..=(group, u32::MAX);
            if let Some((_, id)) = index.groups.range(range).next() {
                cursor.from = id + 1;
                return index.members.get(id).cloned();
            }
            *cursor = Cursor {
                parts: cursor.parts + 1,
                from: 0,
            };
        }
        None
    }

    /// The first process.
    pub(crate) fn init(&self) -> Option<Arc<Member<H>>> {
        self.get(INIT)
    }
}
