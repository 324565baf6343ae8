//! Who is found under which name.
//!
//! Abstract names are in one map; names in the file system hang on the inode (`paths`).
//! Both refer weakly: a socket takes its abstract name back when it goes, a path stays and
//! then refuses connections.

mod paths;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::sync::Arc;
use core::any::Any;

use mach::sync::Spin;
use sync::{Error, Result};

use crate::endpoint::{Endpoint, Node};
use vfs::socket::{SocketAddress, SocketType, UnixAddress};

/// An abstract name: each type of socket has its own, as in Linux.
type Key = (SocketType, Arc<[u8]>);

/// Abstract names are the machine's: programs find each other by nothing else.
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
            paths::bind(path, node)?;
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

/// The socket to talk to that has `name`.
///
/// Errors: `ConnectionRefused` if nobody has it or its owner is gone, `WrongProtocolType` for the
/// other kind, `NotFound` if the path does not exist.
pub(super) fn find<Kind: Endpoint>(name: &UnixAddress, kind: SocketType) -> Result<Arc<Kind>> {
    let node = match name {
        UnixAddress::Abstract(bytes) => {
            let found = ABSTRACT.lock().get(&(kind, bytes.clone())).cloned();
            found.ok_or(Error::ConnectionRefused)
        }
        UnixAddress::Path(path) => paths::find(path),
        UnixAddress::Unnamed => Err(Error::Invalid),
    };
    let socket: Arc<dyn Any + Send + Sync> = node?.upgrade().ok_or(Error::ConnectionRefused)?;
    socket.downcast().map_err(|_| Error::WrongProtocolType)
}

/// The owner of `name` is gone.
pub(super) fn release(name: &UnixAddress, kind: SocketType) {
    if let UnixAddress::Abstract(bytes) = name {
        ABSTRACT.lock().remove(&(kind, bytes.clone()));
    }
}

/// The Unix name that a caller gave.
pub(super) fn unix_name(address: &SocketAddress) -> Result<&UnixAddress> {
    match address {
        SocketAddress::Unix(name) => Ok(name),
        _ => Err(Error::Invalid),
    }
}

/// What a socket with a name is told that is to get the name `wanted`: any one will do for who
/// wants any.
pub(super) fn already_named(wanted: &UnixAddress) -> Result<()> {
    match wanted {
        UnixAddress::Unnamed => Ok(()),
        _ => Err(Error::Invalid),
    }
}
