//! Who belongs to whom, found without a search.
//!
//! One map has the processes; sets beside it say whose children, which groups and which
//! sessions they are, so that no question costs more because there are many others. A program may
//! have as many children as there are numbers: whoever goes through all of somebody's
//! relatives does so in batches ([`BATCH`]), and lets the lock go in between.
//!
//! Invariant: the sets hold exactly what `members` say. So the relations change only here.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;

use cred::UserShare;

use crate::processes::{Change, ExitStatus, Pid, Process, release_id};
use crate::signal::Signal;

/// Relatives that are looked at under one hold of the lock.
pub(super) const BATCH: usize = 256;

pub(super) struct Member {
    pub process: Arc<Process>,
    parent: Pid,
    group: Pid,
    session: Pid,
    pub exit_signal: Option<Signal>,
    pub adopted: bool,
    pub has_run_program: bool,
    pub ended: Option<ExitStatus>,
    pub uid: u32,
    /// What it still takes of its user's number of threads.
    pub share: Option<UserShare>,
    /// A stop or continuation that the parent has not waited for.
    pub news: Option<Change>,
}

impl Member {
    /// The number of its parent.
    pub fn parent(&self) -> Pid {
        self.parent
    }

    /// The group it is in.
    pub fn group(&self) -> Pid {
        self.group
    }

    /// The session it is in.
    pub fn session(&self) -> Pid {
        self.session
    }

    /// Whether its parent could hear of something.
    fn has_changed(&self) -> bool {
        self.ended.is_some() || self.news.is_some()
    }
}

/// Pairs of a number and a process that has it.
type Relation = BTreeSet<(Pid, Pid)>;

pub(super) struct Family {
    members: BTreeMap<Pid, Member>,
    children: Relation,
    /// Those of the children of which their parent could hear something.
    changed: Relation,
    groups: Relation,
    sessions: Relation,
}

impl Family {
    pub const fn new() -> Self {
        Self {
            members: BTreeMap::new(),
            children: Relation::new(),
            changed: Relation::new(),
            groups: Relation::new(),
            sessions: Relation::new(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// The highest number of a process.
    pub fn last_id(&self) -> Pid {
        let last = self.members.last_key_value();
        last.map_or(0, |(id, _)| *id)
    }

    /// A process.
    pub fn get(&self, id: Pid) -> Option<&Member> {
        self.members.get(&id)
    }

    /// Changes a process' state, which its parent may wait for; `None` if it is not there.
    pub fn update<R>(&mut self, id: Pid, change: impl FnOnce(&mut Member) -> R) -> Option<R> {
        let member = self.members.get_mut(&id)?;
        let done = change(member);
        let pair = (member.parent, id);
        if member.has_changed() {
            self.changed.insert(pair);
        } else {
            self.changed.remove(&pair);
        }
        Some(done)
    }

    /// Puts a new process in, as a child of `parent`, in the group and session of `model`, or
    /// in its own.
    pub fn add(
        &mut self,
        process: Arc<Process>,
        parent: Pid,
        model: Pid,
        exit_signal: Option<Signal>,
    ) {
        let id = process.id();
        let model = self.members.get(&model);
        let (group, session) = model.map_or((id, id), |member| (member.group, member.session));
        let member = Member {
            process,
            parent,
            group,
            session,
            exit_signal,
            adopted: false,
            has_run_program: false,
            ended: None,
            uid: 0,
            share: None,
            news: None,
        };
        self.members.insert(id, member);
        self.children.insert((parent, id));
        self.groups.insert((group, id));
        self.sessions.insert((session, id));
    }

    /// Takes a process out; its number and those of its group and session are free once
    /// nothing bears them. The caller drops the member without the lock.
    pub fn take_out(&mut self, id: Pid) -> Option<Member> {
        let gone = self.members.remove(&id)?;
        self.children.remove(&(gone.parent, id));
        self.changed.remove(&(gone.parent, id));
        self.groups.remove(&(gone.group, id));
        self.sessions.remove(&(gone.session, id));
        for number in [id, gone.group, gone.session] {
            if !self.is_borne(number) {
                release_id(number);
            }
        }
        Some(gone)
    }

    fn is_borne(&self, number: Pid) -> bool {
        self.members.contains_key(&number)
            || of(&self.groups, number, 0).next().is_some()
            || of(&self.sessions, number, 0).next().is_some()
    }

    /// Gives a child another parent.
    pub fn set_parent(&mut self, id: Pid, parent: Pid) {
        let Some(member) = self.members.get_mut(&id) else {
            return;
        };
        let old = core::mem::replace(&mut member.parent, parent);
        self.children.remove(&(old, id));
        self.children.insert((parent, id));
        if self.changed.remove(&(old, id)) {
            self.changed.insert((parent, id));
        }
    }

    /// Puts a process into another group.
    pub fn set_group(&mut self, id: Pid, group: Pid) {
        if let Some(member) = self.members.get_mut(&id) {
            let old = core::mem::replace(&mut member.group, group);
            self.groups.remove(&(old, id));
            self.groups.insert((group, id));
        }
    }

    /// Puts a process into another session.
    pub fn set_session(&mut self, id: Pid, session: Pid) {
        if let Some(member) = self.members.get_mut(&id) {
            let old = core::mem::replace(&mut member.session, session);
            self.sessions.remove(&(old, id));
            self.sessions.insert((session, id));
        }
    }

    /// The processes from number `from` on.
    pub fn from(&self, from: Pid) -> impl Iterator<Item = (Pid, &Member)> {
        self.members.range(from..).map(|(&id, member)| (id, member))
    }

    /// The children of `parent` from number `from` on.
    pub fn children(&self, parent: Pid, from: Pid) -> impl Iterator<Item = (Pid, &Member)> {
        self.relatives(&self.children, parent, from)
    }

    /// Those of which something is to be heard.
    pub fn changed(&self, parent: Pid, from: Pid) -> impl Iterator<Item = (Pid, &Member)> {
        self.relatives(&self.changed, parent, from)
    }

    /// The members of a group from number `from` on.
    pub fn group(&self, group: Pid, from: Pid) -> impl Iterator<Item = (Pid, &Member)> {
        self.relatives(&self.groups, group, from)
    }

    fn relatives<'a>(
        &'a self,
        relation: &'a Relation,
        number: Pid,
        from: Pid,
    ) -> impl Iterator<Item = (Pid, &'a Member)> {
        of(relation, number, from).filter_map(|id| Some((id, self.members.get(&id)?)))
    }
}

fn of(relation: &Relation, number: Pid, from: Pid) -> impl Iterator<Item = Pid> {
    let range = relation.range((number, from)..=(number, Pid::MAX));
    range.map(|(_, id)| *id)
}
