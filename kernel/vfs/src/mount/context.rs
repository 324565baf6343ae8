//! Where a thread stands in the tree: its mount namespace, its root and working directory in
//! that, its umask.
//!
//! Threads of a process usually share one context (CLONE_FS), at which their walks look side by
//! side; fork copies it. The last one of a
//! namespace may not go under a spin lock, nor while mounts are changed.

use alloc::sync::Arc;

use mach::mem::fallible;
use mach::sync::{Once, RwSpin};
use mach::task::{Current, CurrentPart};
use sync::{Result, Slot};

use super::{Namespace, Path, first_namespace, root};

#[derive(Clone)]
struct State {
    /// `None`: the first program's.
    namespace: Option<Arc<Namespace>>,
    /// `None`: the top of the first namespace's tree, and only there.
    root: Option<Path>,
    /// `None`: the root.
    cwd: Option<Path>,
    umask: u32,
}

/// What chdir(2), chroot(2) and umask(2) set.
pub struct FsContext {
    state: RwSpin<State>,
}

/// Permission bits that a new file does not get, until a program says otherwise.
const DEFAULT_UMASK: u32 = 0o022;

impl Default for FsContext {
    fn default() -> Self {
        Self {
            state: RwSpin::new(State {
                namespace: None,
                root: None,
                cwd: None,
                umask: DEFAULT_UMASK,
            }),
        }
    }
}

impl FsContext {
    /// A copy of its own, for a process that does not share it.
    pub fn fork(&self) -> Arc<Self> {
        Arc::new(Self {
            state: RwSpin::new(self.state.read().clone()),
        })
    }

    /// A copy in a mount namespace of its own, at the same places.
    ///
    /// Errors: `NoSpace` if there are too many mounts, `OutOfMemory`.
    pub fn fork_apart(&self) -> Result<Arc<Self>> {
        let (namespace, counterparts) = self.namespace().copy()?;
        let state = State {
            namespace: Some(namespace),
            root: Some(counterparts.of(&self.root())),
            cwd: Some(counterparts.of(&self.cwd())),
            umask: self.umask(),
        };
        Self::new(state)
    }

    /// A copy in `namespace`, at its root.
    ///
    /// Errors: `OutOfMemory`.
    pub fn in_namespace(&self, namespace: Arc<Namespace>) -> Result<Arc<Self>> {
        let root = namespace.root();
        Self::new(State {
            namespace: Some(namespace),
            root: Some(root.clone()),
            cwd: Some(root),
            umask: self.umask(),
        })
    }

    fn new(state: State) -> Result<Arc<Self>> {
        let state = RwSpin::new(state);
        Ok(fallible::arc(Self { state })?)
    }

    /// Whose mounts it sees.
    pub fn namespace(&self) -> Arc<Namespace> {
        let own = self.state.read().namespace.clone();
        own.unwrap_or_else(first_namespace)
    }

    /// Where a walk starts: the program's own root, if it has one, and the place from
    /// which an absolute path (or else a relative one) leads on.
    pub(crate) fn begin(&self, absolute: bool) -> (Option<Path>, Path) {
        let state = self.state.read();
        let cwd = state.cwd.as_ref().filter(|_| !absolute);
        let place = cwd.or(state.root.as_ref()).cloned().unwrap_or_else(root);
        (state.root.clone(), place)
    }

    /// Where absolute paths start.
    pub fn root(&self) -> Path {
        self.state.read().root.clone().unwrap_or_else(root)
    }

    /// Where relative paths start.
    pub fn cwd(&self) -> Path {
        let state = self.state.read();
        state
            .cwd
            .clone()
            .or_else(|| state.root.clone())
            .unwrap_or_else(root)
    }

    /// chdir(2); the caller has checked that it is a directory.
    pub fn set_cwd(&self, path: Path) {
        let old = self.state.write().cwd.replace(path);
        drop(old);
    }

    /// chroot(2); likewise.
    pub fn set_root(&self, path: Path) {
        let old = self.state.write().root.replace(path);
        drop(old);
    }

    /// Stands at `new` from now on if it stood at `old`.
    pub(super) fn change_root(&self, old: &Path, new: &Path) {
        let state = &mut *self.state.write();
        for place in [&mut state.root, &mut state.cwd].into_iter().flatten() {
            if place.is(old) {
                *place = new.clone();
            }
        }
    }

    /// The permission bits that new files do not get.
    pub fn umask(&self) -> u32 {
        self.state.read().umask
    }

    /// Sets the umask; gives back the old one.
    pub fn set_umask(&self, mask: u32) -> u32 {
        core::mem::replace(&mut self.state.write().umask, mask & 0o777)
    }
}

/// Shows the contexts of all threads to somebody, one by one.
pub type ForEach = fn(&mut dyn FnMut(&FsContext));

/// Where threads have their contexts; whoever makes threads knows.
#[derive(Clone, Copy)]
pub struct Contexts {
    /// That of the running thread.
    pub current: fn() -> Current<Slot<FsContext>>,
    /// Those of all.
    pub for_each: ForEach,
}

/// Where the running thread has its context, said once at boot by who keeps threads.
static CURRENT: CurrentPart<Slot<FsContext>> = CurrentPart::new();
/// Who shows the contexts of all threads, said once at boot.
static FOR_EACH: Once<ForEach> = Once::new();

/// Says where threads have their contexts; once at boot.
pub fn find_contexts_by(contexts: Contexts) {
    CURRENT.find_by(contexts.current);
    FOR_EACH.call_once(|| contexts.for_each);
}

/// The current thread's context.
pub fn context() -> Arc<FsContext> {
    CURRENT.get().get()
}

/// The same without a reference; `look` must not block.
pub(crate) fn with_context<R>(look: impl FnOnce(&Arc<FsContext>) -> R) -> R {
    CURRENT.get().with(look)
}

/// Shows the contexts of all threads to `look`, one by one.
pub(super) fn for_each_context(look: &mut dyn FnMut(&FsContext)) {
    if let Some(for_each) = FOR_EACH.get() {
        for_each(look);
    }
}
