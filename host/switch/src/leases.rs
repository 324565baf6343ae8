//! Who had which address: a name keeps its address, also after its machine and the switch have ended.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::network::Network;

/// Why a name gets no address; a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoLease {
    /// Another member has it, who may leave.
    Taken(String),
    /// There is none.
    Never(String),
}

/// Addresses by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Leases(BTreeMap<String, Ipv4Addr>);

impl Leases {
    /// What the file has; nothing if there is none or it is not ours.
    pub fn read(path: &Path) -> Self {
        let text = fs::read(path).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Writes the file, so that a reader sees the old or the new one.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let draft = path.with_extension("new");
        fs::write(&draft, serde_json::to_vec_pretty(self)?)?;
        fs::rename(&draft, path)
    }

    /// The address of `name`: the one that it asks for, else the one that it had, else the first that nobody had, else one that
    /// nobody has. `is_taken` says which members have.
    ///
    /// Errors: a sentence, and whether it is final.
    pub fn take(
        &mut self,
        network: &Network,
        name: &str,
        wish: Option<Ipv4Addr>,
        is_taken: impl Fn(Ipv4Addr) -> bool,
    ) -> Result<Ipv4Addr, NoLease> {
        let address = match wish {
            Some(wish) => {
                network.check_member(wish).map_err(NoLease::Never)?;
                if is_taken(wish) {
                    return Err(NoLease::Taken(format!("Another machine has {wish}.")));
                }
                wish
            }
            None => self.choose(network, name, is_taken)?,
        };
        self.0.retain(|_, old| *old != address);
        self.0.insert(name.into(), address);
        Ok(address)
    }

    fn choose(
        &self,
        network: &Network,
        name: &str,
        is_taken: impl Fn(Ipv4Addr) -> bool,
    ) -> Result<Ipv4Addr, NoLease> {
        let had = self.0.get(name).copied();
        let had = had.filter(|address| network.is_for_members(*address) && !is_taken(*address));
        let known: std::collections::BTreeSet<_> = self.0.values().collect();
        let fresh = || {
            let mut all = network.member_addresses();
            all.find(|address| !known.contains(address) && !is_taken(*address))
        };
        let free = || network.member_addresses().find(|own| !is_taken(*own));
        had.or_else(fresh).or_else(free).ok_or_else(|| {
            NoLease::Taken(format!("The network {} has no address left.", network.name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::tests::network;

    #[test]
    fn a_name_keeps_its_address_and_a_full_network_takes_from_those_who_left() {
        let network = Network {
            prefix_len: 28,
            subnet: Ipv4Addr::new(10, 89, 3, 0),
            ..network()
        };
        let mut leases = Leases::default();
        let mut take = |name: &str, taken: &[u8]| {
            let taken = |address: Ipv4Addr| taken.contains(&address.octets()[3]);
            leases
                .take(&network, name, None, taken)
                .map(|own| own.octets()[3])
        };
        assert_eq!(take("a", &[]), Ok(2));
        assert_eq!(take("b", &[]), Ok(3));
        assert_eq!(take("a", &[3]), Ok(2));
        for number in 4..=13 {
            assert_eq!(take(&number.to_string(), &[]), Ok(number));
        }
        assert_eq!(take("late", &[2]), Ok(3));
        assert_eq!(take("b", &[3]), Ok(2));
        let all: Vec<u8> = (2..=13).collect();
        assert!(take("c", &all).is_err());
    }

    #[test]
    fn a_wish_is_kept_or_refused() {
        let (network, mut leases) = (network(), Leases::default());
        let wish = Ipv4Addr::new(10, 89, 3, 77);
        assert_eq!(leases.take(&network, "a", Some(wish), |_| false), Ok(wish));
        assert_eq!(leases.take(&network, "a", None, |_| false), Ok(wish));
        assert!(leases.take(&network, "b", Some(wish), |_| true).is_err());
        for foreign in ["10.89.3.1", "10.89.3.254", "10.90.0.2"] {
            let foreign = foreign.parse().ok();
            assert!(leases.take(&network, "b", foreign, |_| false).is_err());
        }
    }
}
