//! A tree of files that counts what it is asked, and who still holds its files.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use dcache::{Host, Refusal};
use models::{Heap, Plain};

pub type Dentry = dcache::Dentry<Kernel>;

pub struct Kernel;

/// A file or a directory.
pub struct File {
    pub number: u32,
    is_directory: bool,
    pub names: RefCell<BTreeMap<Vec<u8>, Inode>>,
}

/// A file as a dentry or a directory holds it.
pub struct Inode(pub Rc<File>);

thread_local! {
    static LAST: Cell<u32> = const { Cell::new(0) };
    static HELD: Cell<usize> = const { Cell::new(0) };
    static QUESTIONS: Cell<usize> = const { Cell::new(0) };
    static IS_SHORT: Cell<bool> = const { Cell::new(false) };
    static ENDED: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// Inodes that exist, in directories and dentries.
pub fn held() -> usize {
    HELD.get()
}

/// How often the file system was asked since the last call.
pub fn questions() -> usize {
    QUESTIONS.take()
}

/// Whether others need memory.
pub fn set_short(is_short: bool) {
    IS_SHORT.set(is_short);
}

/// Whose ends were told since the last call.
pub fn ended() -> Vec<u32> {
    ENDED.take()
}

impl Inode {
    pub fn new(is_directory: bool) -> Self {
        LAST.set(LAST.get() + 1);
        Self::of(&Rc::new(File {
            number: LAST.get(),
            is_directory,
            names: RefCell::default(),
        }))
    }

    fn of(file: &Rc<File>) -> Self {
        HELD.set(HELD.get() + 1);
        Self(file.clone())
    }

    pub fn number(&self) -> u32 {
        self.0.number
    }

    /// Gives `inode` a name in this directory.
    pub fn insert(&self, name: &[u8], inode: &Inode) {
        let inode = inode.clone();
        self.0.names.borrow_mut().insert(name.to_vec(), inode);
    }

    pub fn remove(&self, name: &[u8]) {
        self.0.names.borrow_mut().remove(name);
    }

    pub fn get(&self, name: &[u8]) -> Option<Inode> {
        self.0.names.borrow().get(name).cloned()
    }
}

impl Clone for Inode {
    fn clone(&self) -> Self {
        Self::of(&self.0)
    }
}

impl Drop for Inode {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
    }
}

/// A directory with files of these names, which its dentry stands for.
pub fn directory(names: &[&[u8]], keeps_names: bool) -> std::sync::Arc<Dentry> {
    let top = Inode::new(true);
    for name in names {
        top.insert(name, &Inode::new(false));
    }
    Dentry::root(top, b"/", keeps_names)
}

impl Host for Kernel {
    type Family = Plain;
    type Sleeping = Plain;
    type Memory = Heap;
    type Inode = Inode;
    type Kind = bool;
    type Error = Refusal;

    fn kind(inode: &Inode) -> bool {
        inode.0.is_directory
    }

    fn is_directory(kind: bool) -> bool {
        kind
    }

    fn look_up(directory: &Inode, name: &[u8]) -> Result<Option<Inode>, Refusal> {
        QUESTIONS.set(QUESTIONS.get() + 1);
        Ok(directory.get(name))
    }

    fn ended(inode: &Inode) {
        ENDED.with_borrow_mut(|all| all.push(inode.number()));
    }

    fn is_memory_short() -> bool {
        IS_SHORT.get()
    }

    fn refuse(why: Refusal) -> Refusal {
        why
    }
}
