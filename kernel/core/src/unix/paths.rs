//! Names of sockets in the file system: an inode on which the socket hangs.

use super::names::Node;
use crate::error::{Error, Result};

/// Creates a socket inode at `path` and hangs `node` on it.
pub(super) fn bind(_path: &[u8], _node: Node) -> Result<()> {
    Err(Error::Unsupported)
}

/// The socket that hangs on the inode at `path`.
pub(super) fn find(_path: &[u8]) -> Result<Node> {
    Err(Error::NotFound)
}
