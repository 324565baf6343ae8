//! Names of sockets in the file system: an inode on which the socket hangs.

use alloc::sync::Arc;

use crate::endpoint::Node;
use sync::{Error, Result};
use vfs::access::{Subject, WRITE, Who};
use vfs::names::{Wanted, create};
use vfs::{FileType, Walk, resolve, resolve_parent};

/// Permission bits of a new socket's inode, before the umask.
const MODE: u32 = 0o777;

/// Creates a socket inode at `path` and hangs `node` on it.
pub(super) fn bind(path: &[u8], node: Node) -> Result<()> {
    let component = resolve_parent(None, path, Walk::empty())?;
    let place =
        create(&component, &Wanted::new(FileType::Socket, MODE)).map_err(|error| match error {
            Error::Exists => Error::AddressInUse,
            other => other,
        })?;
    place
        .inode()
        .attachment()
        .ok_or(Error::NotPermitted)?
        .set(Arc::new(node));
    Ok(())
}

/// The socket that hangs on the inode at `path`.
pub(super) fn find(path: &[u8]) -> Result<Node> {
    let place = resolve(None, path, Walk::FOLLOW)?;
    let inode = place.inode();
    Subject::current(Who::Effective).check(&inode.metadata()?, WRITE)?;
    if inode.kind() != FileType::Socket {
        return Err(Error::ConnectionRefused);
    }
    let hung = inode
        .attachment()
        .and_then(|attachment| attachment.get::<Node>());
    hung.map(|node| Node::clone(&node))
        .ok_or(Error::ConnectionRefused)
}
