//! A process among the others.

use alloc::sync::Arc;

use base::lock::{Count, Flag, Lock};

use crate::children::Children;
use crate::host::{CountOf, FlagOf, Host, LockOf};
use crate::number::Number;

/// Where a process stands.
pub(crate) struct Place<H: Host> {
    /// `None` for the first process, for one that no process made, and for one that is forgotten.
    pub parent: Option<Arc<Member<H>>>,
    pub group: Arc<Number<H>>,
    pub session: Arc<Number<H>>,
    has_run_program: bool,
}

/// A process, from its birth until it is forgotten.
pub struct Member<H: Host> {
    pub(crate) number: Arc<Number<H>>,
    process: H::Process,
    pub(crate) place: LockOf<H, Place<H>>,
    pub(crate) children: LockOf<H, Children<H>>,
    /// The number of the parent in `place`, for looks without the lock; 0 for none.
    parent_id: CountOf<H>,
    has_ended: FlagOf<H>,
}

impl<H: Host> Member<H> {
    /// In the group and session of `model`, or in its own; not in the table yet.
    pub(crate) fn new(number: u32, process: H::Process, model: Option<&Self>) -> Arc<Self> {
        let number = Arc::new(Number::new(number));
        let of_model = model.and_then(|model| {
            let place = model.place.lock();
            let joins = place.group.group.join(place.session.get());
            joins.then(|| (place.group.clone(), place.session.clone()))
        });
        let (group, session) = of_model.unwrap_or_else(|| {
            number.group.begin(number.get());
            (number.clone(), number.clone())
        });
        let place = Place {
            parent: None,
            group,
            session,
            has_run_program: false,
        };
        Arc::new(Self {
            number,
            process,
            place: LockOf::<H, _>::new(place),
            children: LockOf::<H, _>::new(Children::new()),
            parent_id: CountOf::<H>::default(),
            has_ended: FlagOf::<H>::default(),
        })
    }

    /// Its number.
    #[inline]
    pub fn id(&self) -> u32 {
        self.number.get()
    }

    /// The process.
    #[inline]
    pub fn process(&self) -> &H::Process {
        &self.process
    }

    /// It has ended, and is here only as long as its parent has not heard of that.
    pub fn note_end(&self) {
        self.has_ended.set(true);
    }

    /// Whether it has.
    pub fn has_ended(&self) -> bool {
        self.has_ended.get()
    }

    /// Its parent.
    pub fn parent(&self) -> Option<Arc<Self>> {
        self.place.lock().parent.clone()
    }

    /// The number of its parent; 0 if it has none.
    pub fn parent_id(&self) -> u32 {
        self.parent_id.get() as u32
    }

    /// For who has the lists of children that it comes from and goes to, and keeps their members
    /// meanwhile: so that nothing is dropped here.
    pub(crate) fn set_parent(&self, parent: Option<Arc<Self>>) {
        let mut place = self.place.lock();
        let id = parent.as_ref().map_or(0, |parent| parent.id());
        self.parent_id.set(id as usize);
        place.parent = parent;
    }

    /// The number of its group.
    pub fn group(&self) -> u32 {
        self.place.lock().group.get()
    }

    /// The number of its session.
    pub fn session(&self) -> u32 {
        self.place.lock().session.get()
    }

    /// Both.
    pub(crate) fn group_and_session(&self) -> (u32, u32) {
        let place = self.place.lock();
        (place.group.get(), place.session.get())
    }

    /// Whether it has run a program of its own.
    pub fn has_run_program(&self) -> bool {
        self.place.lock().has_run_program
    }

    /// It does.
    pub fn note_program(&self) {
        self.place.lock().has_run_program = true;
    }

    /// Whether `parent` controls its group, from another one of the session.
    pub fn is_controlled_by(&self, parent: &Self) -> bool {
        let ((group, session), (other, same)) =
            (self.group_and_session(), parent.group_and_session());
        session == same && group != other
    }
}
