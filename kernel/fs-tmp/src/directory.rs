//! The names of a directory in memory, whatever they mean.
//!
//! A table finds a name ([`Names`]); each name also has a serial number that only grows, so
//! that a listing that goes on after changes neither repeats nor skips what stayed.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use sync::{Error, Result};

use super::names::Names;
use vfs::dentry::Name;

struct Child<N> {
    node: Arc<N>,
    serial: u64,
}

/// Names and what they mean.
pub struct Directory<N> {
    children: Names<Child<N>>,
    order: BTreeMap<u64, Name>,
    last_serial: u64,
}

impl<N> Default for Directory<N> {
    fn default() -> Self {
        Self {
            children: Names::default(),
            order: BTreeMap::new(),
            last_serial: 0,
        }
    }
}

impl<N> Directory<N> {
    /// What `name` means.
    pub fn get(&self, name: &[u8]) -> Result<&Arc<N>> {
        self.children
            .get(name)
            .map(|child| &child.node)
            .ok_or(Error::NotFound)
    }

    /// Whether there is no name.
    pub fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    /// Makes room for `name`.
    ///
    /// Errors: `NoSpace` if there is no memory for it.
    pub fn reserve(&mut self, name: &[u8]) -> Result<()> {
        self.children.reserve(name)
    }

    /// Gives `node` the name, and takes it from what had it.
    ///
    /// Errors: `NoSpace` as [`reserve`](Self::reserve).
    pub fn insert(&mut self, name: &[u8], node: Arc<N>) -> Result<()> {
        if let Some(child) = self.children.get_mut(name) {
            child.node = node;
            return Ok(());
        }
        self.reserve(name)?;
        self.last_serial += 1;
        let (serial, name) = (self.last_serial, Name::from(name));
        self.order.insert(serial, name.clone());
        self.children.insert(name, Child { node, serial })
    }

    /// Takes the name away.
    pub fn remove(&mut self, name: &[u8]) -> Option<Arc<N>> {
        let child = self.children.remove(name)?;
        self.order.remove(&child.serial);
        Some(child.node)
    }

    /// Takes all names away; gives back what they meant, `None` if there is no name.
    pub fn take_all(&mut self) -> Option<impl Iterator<Item = Arc<N>> + use<N>> {
        self.order.clear();
        let children = core::mem::take(&mut self.children);
        (!children.is_empty()).then(|| children.into_values().map(|child| child.node))
    }

    /// The names from `serial` on: (serial, name, node).
    pub fn from(&self, serial: u64) -> impl Iterator<Item = (u64, &Name, &Arc<N>)> {
        self.order.range(serial..).filter_map(|(serial, name)| {
            self.children
                .get(name)
                .map(|child| (*serial, name, &child.node))
        })
    }
}
