//! A table of names that grows in small steps.
//!
//! A hash table that is full moves all it holds at once, which a program could make as long as it
//! likes. So a full [`Shard`] becomes a branch of smaller ones instead, each for some bits of the
//! hash, and never holds more than [`LEAF_NAMES_MAX`].

use alloc::vec::{self, Vec};
use core::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable, hash_table};
use mach::mem::fallible;
use sync::{Error, Result};

use vfs::dentry::Name;

/// Names of a leaf, but for those at the greatest depth.
const LEAF_NAMES_MAX: usize = 512;
/// Bits of the hash that choose a branch's shard. A leaf's table looks at the lowest bits and at
/// the highest ones, so branches take those between.
const BRANCH_BITS: u32 = 5;
const FIRST_BIT: u32 = 16;
const DEPTH_MAX: u32 = 7;

struct Item<V> {
    hash: u64,
    name: Name,
    value: V,
}

enum Shard<V> {
    Leaf(HashTable<Item<V>>),
    Branch(Vec<Shard<V>>),
}

/// Values by name.
pub struct Names<V> {
    hasher: DefaultHashBuilder,
    top: Shard<V>,
    count: usize,
}

impl<V> Default for Names<V> {
    fn default() -> Self {
        Self {
            hasher: DefaultHashBuilder::default(),
            top: Shard::Leaf(HashTable::new()),
            count: 0,
        }
    }
}

impl<V> Names<V> {
    /// Whether there is no name.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// What `name` stands for.
    pub fn get(&self, name: &[u8]) -> Option<&V> {
        let hash = self.hasher.hash_one(name);
        let mut shard = &self.top;
        let mut depth = 0;
        while let Shard::Branch(shards) = shard {
            shard = &shards[index(hash, depth)];
            depth += 1;
        }
        let Shard::Leaf(leaf) = shard else {
            return None;
        };
        let item = leaf.find(hash, |item| *item.name == *name)?;
        Some(&item.value)
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, name: &[u8]) -> Option<&mut V> {
        let hash = self.hasher.hash_one(name);
        let leaf = self.top.leaf(hash).0;
        let item = leaf.find_mut(hash, |item| *item.name == *name)?;
        Some(&mut item.value)
    }

    /// Makes room for `name`.
    ///
    /// Errors: `NoSpace` if there is no memory for it.
    pub fn reserve(&mut self, name: &[u8]) -> Result<()> {
        let hash = self.hasher.hash_one(name);
        let (leaf, depth) = self.top.leaf(hash);
        if leaf.len() >= LEAF_NAMES_MAX && depth < DEPTH_MAX {
            self.top.split(hash)?;
        }
        let (leaf, _) = self.top.leaf(hash);
        // What was reserved before is not asked for again, so that it cannot be refused.
        if leaf.capacity() > leaf.len() {
            return Ok(());
        }
        fallible::reserve(|| leaf.try_reserve(1, |item| item.hash)).map_err(|_| Error::NoSpace)
    }

    /// Puts in a name that is not there.
    ///
    /// Errors: as [`Names::reserve`].
    pub fn insert(&mut self, name: Name, value: V) -> Result<()> {
        self.reserve(&name)?;
        let hash = self.hasher.hash_one(&*name);
        let item = Item { hash, name, value };
        let (leaf, _) = self.top.leaf(hash);
        leaf.insert_unique(hash, item, |item| item.hash);
        self.count += 1;
        Ok(())
    }

    /// Takes a name out.
    pub fn remove(&mut self, name: &[u8]) -> Option<V> {
        let hash = self.hasher.hash_one(name);
        let (leaf, _) = self.top.leaf(hash);
        let found = leaf.find_entry(hash, |item| *item.name == *name).ok()?;
        self.count -= 1;
        Some(found.remove().0.value)
    }

    /// What all names stood for.
    pub fn into_values(self) -> IntoValues<V> {
        let (leaf, branches) = match self.top {
            Shard::Leaf(leaf) => (leaf, Vec::new()),
            Shard::Branch(shards) => (HashTable::new(), Vec::from([shards.into_iter()])),
        };
        IntoValues {
            leaf: leaf.into_iter(),
            branches,
        }
    }
}

/// Which shard of a branch at `depth`.
fn index(hash: u64, depth: u32) -> usize {
    (hash >> (FIRST_BIT + depth * BRANCH_BITS)) as usize % (1 << BRANCH_BITS)
}

impl<V> Shard<V> {
    /// The leaf for a hash, and how deep it is.
    fn leaf(&mut self, hash: u64) -> (&mut HashTable<Item<V>>, u32) {
        let mut shard = self;
        let mut depth = 0;
        loop {
            match shard {
                Self::Leaf(leaf) => return (leaf, depth),
                Self::Branch(shards) => shard = &mut shards[index(hash, depth)],
            }
            depth += 1;
        }
    }

    /// Makes a branch of the leaf for a hash.
    fn split(&mut self, hash: u64) -> Result<()> {
        let mut shard = self;
        let mut depth = 0;
        while let Self::Branch(shards) = shard {
            shard = &mut shards[index(hash, depth)];
            depth += 1;
        }
        let mut shards = Vec::new();
        shards
            .try_reserve_exact(1 << BRANCH_BITS)
            .map_err(|_| Error::NoSpace)?;
        shards.resize_with(1 << BRANCH_BITS, || Self::Leaf(HashTable::new()));
        let Self::Leaf(leaf) = shard else {
            return Ok(());
        };
        let mut counts = [0; 1 << BRANCH_BITS];
        leaf.iter()
            .for_each(|item| counts[index(item.hash, depth)] += 1);
        for (shard, count) in shards.iter_mut().zip(counts) {
            let (target, _) = shard.leaf(hash);
            target
                .try_reserve(count, |item| item.hash)
                .map_err(|_| Error::NoSpace)?;
        }
        for item in leaf.drain() {
            let (target, _) = shards[index(item.hash, depth)].leaf(item.hash);
            target.insert_unique(item.hash, item, |item| item.hash);
        }
        *shard = Self::Branch(shards);
        Ok(())
    }
}

/// What all names of a table stood for, in no order.
pub struct IntoValues<V> {
    leaf: hash_table::IntoIter<Item<V>>,
    branches: Vec<vec::IntoIter<Shard<V>>>,
}

impl<V> Iterator for IntoValues<V> {
    type Item = V;

    fn next(&mut self) -> Option<V> {
        loop {
            if let Some(item) = self.leaf.next() {
                return Some(item.value);
            }
            match self.branches.last_mut()?.next() {
                None => drop(self.branches.pop()),
                Some(Shard::Leaf(leaf)) => self.leaf = leaf.into_iter(),
                Some(Shard::Branch(shards)) => self.branches.push(shards.into_iter()),
            }
        }
    }
}
