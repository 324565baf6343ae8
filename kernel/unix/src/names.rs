//! Who is found under which name.
//!
//! Abstract names are in one map; names in the file system hang on the inode (`paths`).
//! Both refer weakly: a socket takes its abstract name back when it goes, a path stays and
//! then refuses connections.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::sync::{Arc, Weak};

use mach::sync::Spin;
use sync::{Error, Result};

use super::{DatagramSocket, StreamSocket};
use vfs::socket::{SocketType, UnixAddress};

/// The socket behind a name.
#[derive(Clone)]
pub(super) enum Node {
    /// One with connections.
    Stream(Weak<StreamSocket>),
    /// One without.
    Datagram(Weak<DatagramSocket>),
}

impl Node {
    /// The socket to connect to.
    ///
    /// Errors: `ConnectionRefused` if it is gone, `WrongProtocolType` for the other kind.
    pub(super) fn stream(&self) -> Result<Arc<StreamSocket>> {
        match self {
            Self::Stream(socket) => socket.upgrade().ok_or(Error::ConnectionRefused),
            Self::Datagram(_) => Err(Error::WrongProtocolType),
        }
    }

    /// The socket to send to; errors as in [`Node::stream`].
    pub(super) fn datagram(&self) -> Result<Arc<DatagramSocket>> {
        match self {
            Self::Datagram(socket) => socket.upgrade().ok_or(Error::ConnectionRefused),
            Self::Stream(_) => Err(Error::WrongProtocolType),
        }
    }
}

/// An abstract name: each type of socket has its own, as in Linux.
type Key = (SocketType, Arc<[u8]>);

static ABSTRACT: Spin<BTreeMap<Key, Node>> = Spin::new(BTreeMap::new());

/// Numbers that autobind tries, each five hexadecimal digits (unix(7)).
const AUTOBIND_MAX: u32 = 1 << 20;

/// Enters `node` under `name`; an unnamed one gets an abstract name. Returns its name.
///
/// Errors: `AddressInUse`.
pub(super) fn bind(name: &UnixAddress, kind: SocketType, node: Node) -> Result<UnixAddress> {
    match name {
        UnixAddress::Abstract(bytes) => bind_abstract((kind, bytes.clone()), node),
        UnixAddress::Unnamed => autobind(kind, node),
        UnixAddress::Path(path) => {
            super::paths::bind(path, node)?;
            Ok(name.clone())
        }
    }
}

fn bind_abstract(key: Key, node: Node) -> Result<UnixAddress> {
    let mut names = ABSTRACT.lock();
    if names.contains_key(&key) {
        return Err(Error::AddressInUse);
    }
    names.insert(key.clone(), node);
    Ok(UnixAddress::Abstract(key.1))
}

fn autobind(kind: SocketType, node: Node) -> Result<UnixAddress> {
    let mut names = ABSTRACT.lock();
    let free = (0..AUTOBIND_MAX)
        .map(|number| (kind, Arc::from(format!("{number:05x}").into_bytes())))
        .find(|key| !names.contains_key(key));
    let key: Key = free.ok_or(Error::NoSpace)?;
    names.insert(key.clone(), node);
    Ok(UnixAddress::Abstract(key.1))
}

/// Who has `name`.
///
/// Errors: `ConnectionRefused` if nobody has, `NotFound` if the path does not exist.
pub(super) fn find(name: &UnixAddress, kind: SocketType) -> Result<Node> {
    match name {
        UnixAddress::Abstract(bytes) => {
            let found = ABSTRACT.lock().get(&(kind, bytes.clone())).cloned();
            found.ok_or(Error::ConnectionRefused)
        }
        UnixAddress::Path(path) => super::paths::find(path),
        UnixAddress::Unnamed => Err(Error::Invalid),
    }
}

/// The owner of `name` is gone.
pub(super) fn release(name: &UnixAddress, kind: SocketType) {
    if let UnixAddress::Abstract(bytes) = name {
        ABSTRACT.lock().remove(&(kind, bytes.clone()));
    }
}
