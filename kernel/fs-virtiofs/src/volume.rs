//! One folder: its nodes by identity, and what the daemon may forget.

use alloc::sync::Arc;
use alloc::vec::Vec;

use fs_host::{Nodes, Remote};
use fuse::{Call, Caller, Entry, Forget, NodeId, ROOT, Request, What};
use mach::sync::Spin;
use sync::{Error, Result};
use vfs::{FileSystem, InodeRef, Metadata, Usage, next_device};

use crate::answer::Answer;
use crate::attributes::metadata_of;
use crate::inode::{Inode, Node};
use crate::link::Link;

/// Linux's number of FUSE (statfs(2)).
const MAGIC: u64 = 0x6573_5546;
/// Nodes that one message gives up at most.
const FORGOTTEN_AT_ONCE: usize = 1024;

/// A folder with its top, as it is mounted.
pub(crate) struct Tree {
    volume: Arc<Volume>,
    root: Arc<Node>,
}

/// What the nodes of one folder of the host share.
pub(crate) struct Volume {
    link: Arc<Link>,
    owed: Spin<Owed>,
    known: Nodes<Inode>,
    /// The file system's number.
    device: u64,
    /// Bytes that one read or write moves at most.
    pub(crate) io_bytes: usize,
}

/// What nobody uses any more, of which the daemon is told by the next who calls.
#[derive(Default)]
struct Owed {
    handles: Vec<(NodeId, What, u64)>,
    nodes: Vec<Forget>,
}

/// An open node at the daemon; it is closed some time after the drop.
pub(crate) struct Handle {
    volume: Arc<Volume>,
    node: NodeId,
    what: What,
    pub(crate) number: u64,
    pub(crate) is_writable: bool,
}

impl Handle {
    pub(crate) fn new(
        volume: &Arc<Volume>,
        node: NodeId,
        what: What,
        number: u64,
        is_writable: bool,
    ) -> Arc<Self> {
        let volume = volume.clone();
        Arc::new(Self {
            volume,
            node,
            what,
            number,
            is_writable,
        })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let owed = (self.node, self.what, self.number);
        self.volume.owed.lock().handles.push(owed);
    }
}

impl Volume {
    /// Opens the conversation and finds the root.
    pub(crate) fn open(link: Arc<Link>) -> Result<Arc<Tree>> {
        let call = Call {
            node: 0,
            caller: Caller::default(),
            request: Request::Init,
        };
        let Answer::Ready(write_bytes_max) = link.call(&call)? else {
            return Err(Error::Unsupported);
        };
        let room = link.with(|carried| carried.0.data_bytes_max());
        let volume = Arc::new(Self {
            io_bytes: room.min(write_bytes_max),
            link,
            owed: Spin::default(),
            known: Nodes::default(),
            device: next_device(),
        });
        let found = volume.metadata(ROOT)?;
        // The daemon does not count how often it has named the root.
        let root = Node::new(Inode::new(&volume, ROOT, 0, &found), found.size)?;
        Ok(Arc::new(Tree { volume, root }))
    }

    /// Asks the daemon for the thread that runs.
    pub(crate) fn call(&self, node: NodeId, request: Request<'_>) -> Result<Answer> {
        self.call_for(caller(), node, request)
    }

    /// Asks the daemon for somebody.
    pub(crate) fn call_for(
        &self,
        caller: Caller,
        node: NodeId,
        request: Request<'_>,
    ) -> Result<Answer> {
        self.tell_what_is_owed();
        self.link.call(&Call {
            node,
            caller,
            request,
        })
    }

    fn tell_what_is_owed(&self) {
        let owed = core::mem::take(&mut *self.owed.lock());
        let tell = |node, request| {
            let caller = Caller::default();
            // The daemon forgets it even if it reports an error.
            let _ = self.link.send(&Call {
                node,
                caller,
                request,
            });
        };
        for (node, what, handle) in owed.handles {
            tell(node, Request::Release { what, handle });
        }
        for nodes in owed.nodes.chunks(FORGOTTEN_AT_ONCE) {
            tell(0, Request::BatchForget { nodes });
        }
    }

    /// Nobody uses a node any more that so many entries named.
    pub(crate) fn forget(&self, node: NodeId, lookups: u64) {
        if lookups != 0 {
            self.owed.lock().nodes.push(Forget { node, lookups });
        }
    }

    /// The node that an entry names: the known one, if it is still the same file.
    pub(crate) fn node(self: &Arc<Self>, entry: &Entry) -> Result<Arc<Node>> {
        let number = entry.node;
        match number {
            0 => return Err(Error::NotFound),
            // It would be counted like others.
            ROOT => return Err(Error::Io),
            _ => {}
        }
        let found = metadata_of(self.device, &entry.attributes).ok_or_else(|| {
            self.forget(number, 1);
            Error::Io
        })?;
        let is_named = |node: &Node| node.remote.identity().is(&found);
        let known = self.known.get(number);
        if let Some(node) = known.filter(|node| is_named(node)) {
            node.remote.count();
            return Ok(node);
        }
        let node = Node::new(Inode::new(self, number, 1, &found), found.size)?;
        Ok(self.known.adopt(number, node, is_named))
    }

    /// What the daemon says of a node.
    pub(crate) fn metadata(&self, node: NodeId) -> Result<Metadata> {
        match self.call(node, Request::Getattr)? {
            Answer::Attributes(found) => metadata_of(self.device, &found).ok_or(Error::Io),
            _ => Err(Error::Io),
        }
    }
}

/// For whom the thread that runs acts.
fn caller() -> Caller {
    cred::credentials().with(|who| Caller {
        uid: who.user.fs,
        gid: who.group.fs,
        pid: 0,
    })
}

impl FileSystem for Tree {
    fn kind(&self) -> &'static str {
        "virtiofs"
    }

    fn root(&self) -> InodeRef {
        self.root.clone()
    }

    fn usage(&self) -> Usage {
        let usage = match self.volume.call(ROOT, Request::Statfs) {
            Ok(Answer::Usage(usage)) => usage,
            _ => fuse::FileSystemUsage::default(),
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
        false
    }

    fn sync(&self) -> Result<()> {
        self.volume.tell_what_is_owed();
        self.volume.known.write_back()
    }

    fn give_up_pages(&self, wanted: usize) -> usize {
        self.volume.known.give_up_pages(wanted)
    }
}
