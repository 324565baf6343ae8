//! The bytes of a file: those of the layer that has it.
//!
//! What is mapped is the layer's file itself, so its pages are there once. Who opens a file for writing, or
//! truncates it, copies it up first (`Inode::prepare_change`), so a write finds the upper file.

use alloc::sync::Arc;
use core::any::Any;

use mm::MemoryObject;
use mm::io::{Sink, Source};
use sync::Result;
use vfs::file::{File, OpenFile};
use vfs::{FileType, Inode, Metadata};

use crate::node::Node;

impl File for Node {
    fn read_at(&self, open: &OpenFile, offset: u64, to: &mut Sink<'_>) -> Result<usize> {
        self.real()?.read_at(open, offset, to)
    }

    fn write_at(&self, open: &OpenFile, offset: u64, from: &mut Source<'_>) -> Result<usize> {
        self.copied_up(u64::MAX)?.write_at(open, offset, from)
    }

    fn is_seekable(&self) -> bool {
        matches!(self.kind(), FileType::Regular | FileType::Directory)
    }

    fn ioctl(&self, open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        self.real()?.ioctl(open, request, argument)
    }

    fn metadata(&self) -> Result<Metadata> {
        self.read_metadata()
    }

    fn close(&self, open: &OpenFile) {
        if let Some(upper) = self.upper.get() {
            upper.close(open);
        }
    }

    fn failures_heard(&self) -> u32 {
        self.upper.get().map_or(0, |upper| upper.failures_heard())
    }

    fn tell_failures(&self, heard: &mut u32) -> bool {
        let upper = self.upper.get();
        upper.is_some_and(|upper| upper.tell_failures(heard))
    }

    fn memory(self: Arc<Self>) -> Option<Arc<dyn MemoryObject>> {
        self.real().ok()?.clone().memory()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
