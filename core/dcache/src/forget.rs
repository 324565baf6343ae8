//! Names that are not worth their memory.

use alloc::collections::LinkedList;
use alloc::sync::Arc;

use base::lock::RwLock;

use crate::directory::{Children, take_unused};
use crate::host::Host;
use crate::{Dentry, KEPT_MAX};

impl<H: Host> Dentry<H> {
    /// Forgets names below that nobody uses, while there are not too many directories.
    pub fn forget_unused(self: &Arc<Self>) {
        let mut pending = LinkedList::from([self.clone()]);
        while let Some(dentry) = pending.pop_back() {
            let Some(directory) = &dentry.directory else {
                continue;
            };
            loop {
                let unused = take_unused(&mut directory.children.write());
                if unused.is_empty() {
                    break;
                }
            }
            let children = directory.children.read();
            let below = children
                .iter()
                .filter_map(|entry| entry.dentry.as_ref())
                .filter(|child| child.is_directory());
            pending.extend(below.take(KEPT_MAX).cloned());
        }
    }

    /// Forgets all names below; breaks the cycles of an unmounted file system.
    pub fn forget_all(self: &Arc<Self>) {
        let mut pending = LinkedList::from([self.take_children()]);
        while let Some(children) = pending.pop_front() {
            let below = children.into_iter().filter_map(|entry| entry.dentry);
            let directories = below.filter(|child| child.is_directory());
            pending.extend(directories.map(|child| child.take_children()));
        }
    }

    fn take_children(&self) -> Children<H> {
        let children = self.directory.as_ref().map(|directory| &directory.children);
        children.map_or_else(Children::new, |children| {
            core::mem::take(&mut *children.write())
        })
    }
}
