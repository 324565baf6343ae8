//! The folder of networks.

use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use switch::{Files, Network, join};

use crate::failure::Failure;
use crate::flags::NetworkCreateFlags;
use crate::{leftovers, state};

/// A network's description, in its folder.
const DESCRIPTION: &str = "network.json";
const LEASES: &str = "leases.json";
/// Held while networks are made and removed.
const LOCK: &str = ".lock";
/// Networks that need no `--subnet` are 10.89.0.0/24 and those that follow.
const FIRST_SUBNETS: [u8; 2] = [10, 89];
const PREFIX_LEN: u8 = 24;

/// The user's networks.
#[derive(Clone, Debug)]
pub struct Store(PathBuf);

impl Store {
    /// Where the user's data belongs (XDG Base Directory Specification).
    ///
    /// Errors: `NoDataFolder`.
    pub fn of_user() -> Result<Self, Failure> {
        state::data_folder("networks").map(Self)
    }

    /// The network `name`.
    ///
    /// Errors: `NoSuchNetwork`, `NetworkDamaged`.
    pub fn network(&self, name: &str) -> Result<Network, Failure> {
        let named = |name: &str| name.to_string();
        match (self.find(name), self.0.join(name).is_dir()) {
            (Some(network), _) => Ok(network),
            (None, true) => Err(Failure::NetworkDamaged { name: named(name) }),
            (None, false) => Err(Failure::NoSuchNetwork { name: named(name) }),
        }
    }

    /// Those that are there and of which nothing is known any more.
    pub fn damaged(&self) -> Vec<String> {
        let listing = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let names = listing.filter_map(|entry| entry.file_name().into_string().ok());
        let is_damaged = |name: &String| {
            !name.starts_with('.') && self.0.join(name).is_dir() && self.find(name).is_none()
        };
        names.filter(is_damaged).collect()
    }

    fn find(&self, name: &str) -> Option<Network> {
        let text = fs::read(self.0.join(name).join(DESCRIPTION)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// All networks, by name.
    pub fn list(&self) -> Vec<Network> {
        let listing = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let names = listing.map(|entry| entry.file_name());
        let mut networks: Vec<Network> =
            names.filter_map(|name| self.find(name.to_str()?)).collect();
        networks.sort_by(|a, b| a.name.cmp(&b.name));
        networks
    }

    /// Where the switch of the network `name` is found, in a folder that nobody else reads.
    pub fn files(&self, name: &str) -> Result<Files, Failure> {
        let folder = runtime_folder(name);
        make(&folder)?;
        Ok(Files {
            socket: folder.join("switch.sock"),
            lock: folder.join("lock"),
            leases: self.0.join(name).join(LEASES),
        })
    }

    /// Makes a network.
    pub fn create(&self, flags: &NetworkCreateFlags) -> Result<Network, Failure> {
        let _lock = self.lock()?;
        let all = self.list();
        let name = flags.name.clone();
        if all.iter().any(|network| network.name == name) {
            return Err(Failure::NetworkThere { name });
        }
        let folder = self.0.join(&name);
        if folder.is_dir() {
            return Err(Failure::NetworkDamaged { name });
        }
        let network = describe(flags, &all)?;
        let draft = leftovers::draft_of(&folder);
        make(&draft)?;
        let text = serde_json::to_vec_pretty(&network).unwrap_or_default();
        write_whole(&draft.join(DESCRIPTION), &text)
            .and_then(|()| fs::rename(&draft, &folder))
            .map_err(Failure::file(&folder))
            .inspect_err(|_| drop(fs::remove_dir_all(&draft)))?;
        Ok(network)
    }

    /// Removes a network.
    ///
    /// Errors: `NetworkUsed` while machines are on it.
    pub fn remove(&self, name: &str) -> Result<(), Failure> {
        let _lock = self.lock()?;
        match self.network(name) {
            Ok(_) | Err(Failure::NetworkDamaged { .. }) => {}
            Err(failure) => return Err(failure),
        }
        let users = users(name);
        if !users.is_empty() {
            let name = name.into();
            return Err(Failure::NetworkUsed { name, users });
        }
        let folder = self.0.join(name);
        leftovers::remove(&folder).map_err(Failure::file(&folder))?;
        // Of the switch, which has ended.
        let _ = fs::remove_dir_all(runtime_folder(name));
        Ok(())
    }

    fn lock(&self) -> Result<File, Failure> {
        make(&self.0)?;
        let path = self.0.join(LOCK);
        let lock = File::create(&path).map_err(Failure::file(&path))?;
        flock(&lock, FlockOperation::LockExclusive)
            .map_err(|error| Failure::file(&path)(error.into()))?;
        leftovers::sweep(&self.0);
        Ok(lock)
    }
}

/// Writes a file that is there as a whole after a loss of power, if it has its name then.
fn write_whole(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text)?;
    file.sync_all()
}

/// The machines that are on the network `name`.
pub fn users(name: &str) -> Vec<String> {
    let described = join::describe(&runtime_folder(name).join("switch.sock"));
    let members = described.map(|switch| switch.members).unwrap_or_default();
    let names = members.into_iter().map(|member| member.names);
    names.filter_map(|names| names.into_iter().next()).collect()
}

fn runtime_folder(name: &str) -> PathBuf {
    state::runtime_folder(state::NETWORKS).join(name)
}

/// Makes a folder for nobody else.
fn make(folder: &Path) -> Result<(), Failure> {
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(folder);
    match made {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(Failure::file(folder)(error)),
        _ => Ok(()),
    }
}

/// What `flags` ask for, beside those that are there.
fn describe(flags: &NetworkCreateFlags, all: &[Network]) -> Result<Network, Failure> {
    let network = |subnet, prefix_len| Network {
        name: flags.name.clone(),
        subnet,
        prefix_len,
        prefix6: flags.ipv6.then(unique_local_prefix),
        created_s: state::now_s(),
        alone: None,
    };
    let overlap = |network: &Network| all.iter().find(|other| other.overlaps(network));
    let [a, b] = FIRST_SUBNETS;
    let network = match flags.subnet {
        Some(subnet) => network(subnet.first, subnet.prefix_len),
        None => {
            let free = (0..=u8::MAX).map(|c| network(Ipv4Addr::new(a, b, c, 0), PREFIX_LEN));
            let free = { free }.find(|network| overlap(network).is_none());
            free.unwrap_or_else(|| network(Ipv4Addr::new(a, b, 0, 0), PREFIX_LEN))
        }
    };
    match overlap(&network) {
        None => Ok(network),
        Some(other) => Err(Failure::NetworkOverlaps {
            subnet: format!("{}/{}", network.subnet, network.prefix_len),
            other: other.name.clone(),
        }),
    }
}

/// 64 bits of a unique local address, 40 of them by chance (RFC 4193).
fn unique_local_prefix() -> Ipv6Addr {
    let chance = RandomState::new().hash_one(state::now_s()) & 0xff_ffff_ffff;
    Ipv6Addr::from((0xfd << 120) | (u128::from(chance) << 80))
}
