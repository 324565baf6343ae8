//! The names that a directory keeps.

use alloc::collections::LinkedList;
use alloc::sync::Arc;

use base::lock::{Count, Lock};
use base::{Memory, NoMemory};
use hashbrown::HashMap;

use crate::host::{CountOf, Gate, Host, LockOf};
use crate::{Dentry, KEPT_MAX, Name};

/// Names and what they mean; `None` for a name that does not exist.
pub(crate) type Children<H> = HashMap<Name, Option<Arc<Dentry<H>>>>;
/// What was taken out of [`Children`], to be dropped without their lock. In small pieces,
/// as memory may be short.
pub(crate) type Forgotten<H> = LinkedList<(Name, Option<Arc<Dentry<H>>>)>;

/// Names that a change of a directory may add: a rename two.
const ROOM: usize = 2;

pub(crate) struct Directory<H: Host> {
    pub children: LockOf<H, Children<H>>,
    /// As many names as are kept without looking for unused ones.
    comfortable: CountOf<H>,
    pub changing: Gate<H>,
}

impl<H: Host> Default for Directory<H> {
    fn default() -> Self {
        let comfortable = CountOf::<H>::default();
        comfortable.set(KEPT_MAX);
        Self {
            children: LockOf::<H, _>::new(HashMap::new()),
            comfortable,
            changing: Gate::<H>::new(()),
        }
    }
}

impl<H: Host> Directory<H> {
    /// What a name is known to mean; the inner `None` says that there is no such name.
    #[inline]
    pub fn known(&self, name: &[u8]) -> Option<Option<Arc<Dentry<H>>>> {
        self.children.lock().get(name).cloned()
    }

    /// Makes room for the names that one change may add.
    pub fn make_room(&self) -> Result<(), NoMemory> {
        let mut children = self.children.lock();
        let mut unused = Forgotten::new();
        if children.len() >= self.comfortable.get() {
            unused = take_unused(&mut children);
            self.comfortable.set(children.len() + KEPT_MAX);
        }
        let room = match children.capacity() - children.len() {
            0..ROOM => H::Memory::reserve(|| children.try_reserve(ROOM)),
            _ => Ok(()),
        };
        drop(children);
        drop(unused);
        room
    }
}

/// Takes out names that nobody uses, [`KEPT_MAX`] at most.
pub(crate) fn take_unused<H: Host>(children: &mut Children<H>) -> Forgotten<H> {
    let unused = children.extract_if(|_, kept| kept.as_ref().is_none_or(is_unused));
    unused.take(KEPT_MAX).collect()
}

/// Whether only its directory knows it, whose lock is held: nobody comes to know it meanwhile.
fn is_unused<H: Host>(dentry: &Arc<Dentry<H>>) -> bool {
    Arc::strong_count(dentry) == 1
}
