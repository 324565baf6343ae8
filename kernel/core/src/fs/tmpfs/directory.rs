//! The names of a directory in memory.
//!
//! A table finds a name ([`Names`]); each name also has a serial number that only grows, so
//! that a listing that goes on after changes neither repeats nor skips what stayed.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use super::Node;
use super::names::Names;
use crate::error::{Error, Result};
use crate::fs::dentry::Name;

struct Child {
    node: Arc<Node>,
    serial: u64,
}

/// Names and what they mean.
#[derive(Default)]
pub struct Directory {
    children: Names<Child>,
    order: BTreeMap<u64, Name>,
    last_serial: u64,
}

impl Directory {
    /// What `name` means.
    pub fn get(&self, name: &[u8]) -> Result<&Arc<Node>> {
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
    pub fn insert(&mut self, name: &[u8], node: Arc<Node>) -> Result<()> {
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
    pub fn remove(&mut self, name: &[u8]) -> Option<Arc<Node>> {
        let child = self.children.remove(name)?;
        self.order.remove(&child.serial);
        Some(child.node)
    }

    /// Takes all names away; gives back what they meant, `None` if there is no name.
    pub fn take_all(&mut self) -> Option<impl Iterator<Item = Arc<Node>> + use<>> {
        self.order.clear();
        let children = core::mem::take(&mut self.children);
        (!children.is_empty()).then(|| children.into_values().map(|child| child.node))
    }

    /// The names from `serial` on: (serial, name, node).
    pub fn from(&self, serial: u64) -> impl Iterator<Item = (u64, &Name, &Arc<Node>)> {
        self.order.range(serial..).filter_map(|(serial, name)| {
            self.children
                .get(name)
                .map(|child| (*serial, name, &child.node))
        })
    }
}
