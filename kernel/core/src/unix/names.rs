//! Who is found under which name.
//!
//! Abstract names are in one map; names in the file system hang on the inode (`paths`).
//! Both refer weakly: a socket takes its abstract name back when it goes, a path stays and
//! then refuses connections.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::sync::{Arc, Weak};

use mach::sync::Spin;

use super::{DatagramSocket, StreamSocket};
use crate::error::{Error, Result};
use crate::socket::UnixAddress;

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

static ABSTRACT: Spin<BTreeMap<Arc<[u8]>, Node>> = Spin::new(BTreeMap::new());

/// Numbers that autobind tries, each five hexadecimal digits (unix(7)).
const AUTOBIND_MAX: u32 = 1 << 20;

/// Enters `node` under `name`; an unnamed one gets an abstract name. Returns its name.
///
/// Errors: `AddressInUse`.
pub(super) fn bind(name: &UnixAddress, node: Node) -> Result<UnixAddress> {
    match name {
        UnixAddress::Abstract(bytes) => bind_abstract(bytes.clone(), node),
        UnixAddress::Unnamed => autobind(node),
        UnixAddress::Path(path) => {
            super::paths::bind(path, node)?;
            Ok(name.clone())
        }
    }
}

fn bind_abstract(bytes: Arc<[u8]>, node: Node) -> Result<UnixAddress> {
    let mut names = ABSTRACT.lock();
    if names.contains_key(&bytes) {
        return Err(Error::AddressInUse);
    }
    names.insert(bytes.clone(), node);
    Ok(UnixAddress::Abstract(bytes))
}

fn autobind(node: Node) -> Result<UnixAddress> {
    let mut names = ABSTRACT.lock();
    let free = (0..AUTOBIND_MAX)
        .map(|number| Arc::from(format!("{number:05x}").into_bytes()))
        .find(|name| !names.contains_key(name));
    let name: Arc<[u8]> = free.ok_or(Error::NoSpace)?;
    names.insert(name.clone(), node);
    Ok(UnixAddress::Abstract(name))
}

/// Who has `name`.
///
/// Errors: `ConnectionRefused` if nobody has, `NotFound` if the path does not exist.
pub(super) fn find(name: &UnixAddress) -> Result<Node> {
    match name {
        UnixAddress::Abstract(bytes) => {
            ABSTRACT.lock().get(bytes).cloned().ok_or(Error::ConnectionRefused)
        }
        UnixAddress::Path(path) => super::paths::find(path),
        UnixAddress::Unnamed => Err(Error::Invalid),
    }
}

/// The owner of `name` is gone.
pub(super) fn release(name: &UnixAddress) {
    if let UnixAddress::Abstract(bytes) = name {
        ABSTRACT.lock().remove(bytes);
    }
}
