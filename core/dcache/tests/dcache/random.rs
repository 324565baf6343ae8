//! Long histories of looks, changes, shrinking and missing memory, beside the file system itself.

use std::sync::Arc;

use crate::world::{Dentry, Inode, held, set_short};
use dcache::Refusal;
use models::{Heap, Random, for_each_seed};

const STEPS: usize = 400;
const NAMES: [&[u8]; 5] = [b"a", b"b", b"c", b"d", b"e"];
/// The longest way down to a file.
const DEPTH: usize = 4;

struct Run {
    top: Arc<Dentry>,
    /// What somebody uses.
    used: Vec<Arc<Dentry>>,
    random: Random,
    seed: u64,
}

/// A directory and a name in it.
struct Spot {
    directory: Arc<Dentry>,
    name: &'static [u8],
}

impl Run {
    fn new(seed: u64, random: Random) -> Self {
        Self {
            top: Dentry::root(Inode::new(true), b"/", true),
            used: Vec::new(),
            random,
            seed,
        }
    }

    fn spot(&mut self) -> Result<Spot, Refusal> {
        let mut directory = self.top.clone();
        for _ in 1..self.random.below(DEPTH) {
            let name = NAMES[self.random.below(NAMES.len())];
            match directory.child(name)? {
                Some(child) if child.is_directory() => directory = child,
                _ => {}
            }
        }
        let name = NAMES[self.random.below(NAMES.len())];
        Ok(Spot { directory, name })
    }

    fn step(&mut self) -> Result<(), Refusal> {
        set_short(self.random.once_in(8));
        if self.random.once_in(4) {
            Heap::refuse_nth(1 + self.random.below(4));
        }
        match self.random.below(12) {
            0..3 => self.look(),
            3..6 => self.create(),
            6..8 => self.remove(),
            8..10 => self.rename(),
            10 => {
                self.top.forget_unused();
                Ok(())
            }
            _ => {
                let last = self.used.len();
                if last > 0 {
                    drop(self.used.swap_remove(self.random.below(last)));
                }
                Ok(())
            }
        }
    }

    fn look(&mut self) -> Result<(), Refusal> {
        let spot = self.spot()?;
        let found = spot.directory.child(spot.name)?;
        self.used.extend(found);
        Ok(())
    }

    fn create(&mut self) -> Result<(), Refusal> {
        let Spot { directory, name } = self.spot()?;
        let _still = directory.lock_names()?;
        if directory.child_while_locked(name)?.is_some() {
            return Ok(());
        }
        let inode = Inode::new(self.random.once_in(2));
        directory.inode().insert(name, &inode);
        let new = directory.detached(name, inode);
        directory.remember(name, Some(new));
        Ok(())
    }

    fn remove(&mut self) -> Result<(), Refusal> {
        let Spot { directory, name } = self.spot()?;
        let _still = directory.lock_names()?;
        let Some(child) = directory.child_while_locked(name)? else {
            return Ok(());
        };
        if child.inode().0.names.borrow().is_empty() {
            directory.inode().remove(name);
            directory.remember(name, None);
            child.set_gone();
        }
        Ok(())
    }

    /// Moves a name over a free one, or over a file.
    fn rename(&mut self) -> Result<(), Refusal> {
        let (from, to) = (self.spot()?, self.spot()?);
        let Some(moved) = from.directory.child(from.name)? else {
            return Ok(());
        };
        let replaced = to.directory.child(to.name)?;
        let is_free = replaced.as_ref().is_none_or(|there| !there.is_directory());
        let is_same = replaced
            .as_ref()
            .is_some_and(|there| Arc::ptr_eq(there, &moved));
        if !is_free || is_same || moved.is_above(&to.directory) {
            return Ok(());
        }
        from.directory.inode().remove(from.name);
        to.directory.inode().insert(to.name, moved.inode());
        moved.move_to(&to.directory, to.name);
        to.directory.remember(to.name, Some(moved.clone()));
        from.directory.remember(from.name, None);
        replaced.inspect(|there| there.set_gone());
        Ok(())
    }

    /// What is used is found where it is, and the way up from it is the way down to it.
    fn check_used(&self) {
        for used in self.used.iter().filter(|used| !used.is_gone()) {
            let parent = used.parent().expect("only the top has none");
            let found = parent.child(&used.name()).expect("there is memory");
            let found = found.unwrap_or_else(|| panic!("it is there: SEED={}", self.seed));
            assert!(Arc::ptr_eq(&found, used), "SEED={}", self.seed);
            assert!(self.top.is_above(used), "SEED={}", self.seed);
        }
    }

    /// Each name means in the cache what it means in the file system.
    fn check_below(&self, directory: &Arc<Dentry>) {
        for name in NAMES {
            let there = directory.inode().get(name);
            let found = directory.child(name).expect("there is memory");
            let number = |inode: &Inode| inode.number();
            let found_number = found.as_ref().map(|found| found.inode().number());
            assert_eq!(
                found_number,
                there.as_ref().map(number),
                "SEED={}",
                self.seed
            );
            if let Some(child) = found.filter(|child| child.is_directory()) {
                assert!(!child.is_gone(), "SEED={}", self.seed);
                self.check_below(&child);
            }
        }
    }

    /// Without users only the file system holds its files, and the top's dentry its own.
    fn check_memory(mut self) {
        self.used.clear();
        for _ in 0..STEPS {
            self.top.forget_unused();
        }
        let top = self.top.inode().clone();
        assert_eq!(held(), in_system(&top) + 2, "SEED={}", self.seed);
        self.check_below(&self.top);
        self.top.forget_all();
        drop(self.top);
        assert_eq!(held(), in_system(&top) + 1, "SEED={}", self.seed);
    }
}

fn in_system(directory: &Inode) -> usize {
    let names = directory.0.names.borrow();
    names.values().map(|inode| 1 + in_system(inode)).sum()
}

#[test]
fn the_cache_says_what_the_file_system_would() {
    for_each_seed(300, |seed, random| {
        let mut run = Run::new(seed, random);
        for _ in 0..STEPS {
            match run.step() {
                Ok(()) | Err(Refusal::NoMemory) => {}
                Err(why) => panic!("{why:?}: SEED={seed}"),
            }
            Heap::refuse_none();
            set_short(false);
            run.check_used();
        }
        run.check_below(&run.top);
        run.check_memory();
    });
}
