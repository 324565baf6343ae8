//! One volume: its fids, and its nodes by identity.

use alloc::sync::Arc;
use alloc::vec::Vec;

use fs_host::{Nodes, Remote};
use mach::sync::Spin;
use ninep::{Fid, Fids, IO_HEADER_BYTES, Request};
use sync::{Error, Result};

use super::answer::Answer;
use super::attributes::metadata_of;
use super::inode::{Inode, Node};
use super::link::Link;
use vfs::{FileSystem, InodeRef, Metadata, Usage, next_device};

/// Linux's number of 9P (statfs(2)).
const MAGIC: u64 = 0x0102_1997;

/// A volume with its top, as it is mounted.
pub(super) struct Tree {
    volume: Arc<Volume>,
    root: Arc<Node>,
}

/// What the nodes of one folder of the host share.
pub(super) struct Volume {
    link: Arc<Link>,
    fids: Spin<Fids>,
    /// Fids that nobody uses any more, to be clunked by the next who calls.
    forgotten: Spin<Vec<Fid>>,
    /// So that a file opened twice has one set of pages.
    known: Nodes<Inode>,
    /// The file system's number.
    device: u64,
    /// Nobody changes the files, so what was read of them is kept.
    pub is_immutable: bool,
}

/// A fid that the server knows; it is clunked some time after the drop.
pub(super) struct Handle {
    volume: Arc<Volume>,
    fid: Fid,
}

impl Handle {
    pub(super) fn fid(&self) -> Fid {
        self.fid
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.volume.forgotten.lock().push(self.fid);
    }
}

impl Volume {
    /// Opens the conversation and finds the root.
    pub(super) fn open(link: Arc<Link>, is_immutable: bool) -> Result<Arc<Tree>> {
        let volume = Arc::new(Self {
            link,
            fids: Spin::new(Fids::new()),
            forgotten: Spin::new(Vec::new()),
            known: Nodes::default(),
            device: next_device(),
            is_immutable,
        });
        volume.agree()?;
        let attach = |fid| Request::Attach {
            fid,
            uid: 0,
            tree: b"",
        };
        let (handle, _) = volume.name(attach)?;
        let root = volume.node(handle)?;
        Ok(Arc::new(Tree { volume, root }))
    }

    /// The largest message.
    fn msize(&self) -> usize {
        self.link.with(|carried| carried.0.msize())
    }

    /// The server may choose shorter messages, but must speak our protocol.
    fn agree(&self) -> Result<()> {
        let msize = self.msize();
        match self.link.call(&Request::Version {
            msize: msize as u32,
        })? {
            Answer::Version {
                is_ours: true,
                msize: theirs,
            } if theirs == msize => Ok(()),
            _ => Err(Error::Unsupported),
        }
    }

    /// Calls the server.
    pub(super) fn call(&self, request: &Request<'_>) -> Result<Answer> {
        self.clunk_forgotten();
        self.link.call(request)
    }

    fn clunk_forgotten(&self) {
        let forgotten = core::mem::take(&mut *self.forgotten.lock());
        for fid in forgotten {
            // The server forgets the fid even if it reports an error.
            let _ = self.link.call(&Request::Clunk { fid });
            self.fids.lock().release(fid);
        }
    }

    /// Makes a request that gives a new fid its meaning.
    pub(super) fn name<'a>(
        self: &Arc<Self>,
        request: impl FnOnce(Fid) -> Request<'a>,
    ) -> Result<(Handle, Answer)> {
        let fid = self
            .fids
            .lock()
            .alloc()
            .ok_or(Error::TooManyFilesInSystem)?;
        match self.call(&request(fid)) {
            Ok(answer) => Ok((
                Handle {
                    volume: self.clone(),
                    fid,
                },
                answer,
            )),
            Err(error) => {
                self.fids.lock().release(fid);
                Err(error)
            }
        }
    }

    /// A fid of its own for what `from` names.
    pub(super) fn duplicate(self: &Arc<Self>, from: &Handle) -> Result<Handle> {
        let walk = |new| Request::Walk {
            fid: from.fid,
            new,
            names: &[],
        };
        self.name(walk).map(|(handle, _)| handle)
    }

    /// The node `name` in the directory `directory`.
    pub(super) fn lookup(self: &Arc<Self>, directory: &Handle, name: &[u8]) -> Result<Arc<Node>> {
        let names = [name];
        let walk = |new| Request::Walk {
            fid: directory.fid,
            new,
            names: &names,
        };
        let (handle, answer) = self.name(walk)?;
        match answer {
            Answer::Walked(qids) if qids.len() == 1 => self.node(handle),
            _ => Err(Error::NotFound),
        }
    }

    /// The node that `handle` names: the known one, if it is still the same file.
    ///
    /// The host numbers a new file like one that is gone, which somebody here may still have a node of: a fid that is not
    /// open keeps no file, and names whatever has taken its path. So the known node is asked, too.
    fn node(self: &Arc<Self>, handle: Handle) -> Result<Arc<Node>> {
        let found = self.metadata(handle.fid)?;
        let known = self.known.get(found.number);
        let is_named = |node: &Node| node.remote.identity().is(&found);
        let is_same = |node: &&Arc<Node>| {
            is_named(node) && (self.is_immutable || node.remote.is_still_there())
        };
        if let Some(node) = known.as_ref().filter(is_same) {
            return Ok(node.clone());
        }
        let is_other = |node: &Node| {
            let gone = known.as_deref();
            is_named(node) && !gone.is_some_and(|gone| core::ptr::eq(gone, node))
        };
        let node = Node::new(Inode::new(self, handle, &found), found.size)?;
        Ok(self.known.adopt(found.number, node, is_other))
    }

    /// What the server says of what a fid names.
    pub(super) fn metadata(&self, fid: Fid) -> Result<Metadata> {
        match self.call(&Request::Getattr { fid })? {
            Answer::Attributes(found) => metadata_of(self.device, &found).ok_or(Error::Io),
            _ => Err(Error::Io),
        }
    }

    /// Bytes that one read or write moves at most.
    pub(super) fn io_bytes(&self) -> usize {
        self.msize() - IO_HEADER_BYTES
    }
}

impl FileSystem for Tree {
    fn kind(&self) -> &'static str {
        "9p"
    }

    fn root(&self) -> InodeRef {
        self.root.clone()
    }

    fn usage(&self) -> Usage {
        let answer = self.volume.call(&Request::Statfs {
            fid: self.root.remote.fid(),
        });
        let Ok(Answer::Usage(usage)) = answer else {
            return Usage {
                magic: MAGIC,
                ..Usage::default()
            };
        };
        Usage {
            magic: MAGIC,
            block_bytes: u64::from(usage.block_bytes),
            blocks: usage.blocks,
            free_blocks: usage.available_blocks,
            inodes: usage.inodes,
            free_inodes: usage.free_inodes,
        }
    }

    fn keeps_names(&self) -> bool {
        self.volume.is_immutable
    }

    fn sync(&self) -> Result<()> {
        self.volume.known.write_back()
    }

    fn give_up_pages(&self, wanted: usize) -> usize {
        self.volume.known.give_up_pages(wanted)
    }
}
