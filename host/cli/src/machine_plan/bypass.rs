//! `--bypass`: the machine's card is the program's, or a link over it.
//!
//! The kernel leaves the card alone (its option `vfio=`), `libsietch.so` stands in front of the program and
//! finds by its variables which card it has, and the machine's address is the program's
//! (`docs/bypass.md`). An IOMMU keeps the card to the program's memory.
//!
//! A link is made by the kernel before the program starts, from the file that `dladm` keeps links in, and the card
//! has no address then.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::Ipv4Addr;

use crate::failure::Failure;
use crate::flags::{BoardFlag, BypassFlag, Ip, NicFlag, RunFlags};
use crate::pack::Packed;

use super::network;

/// The link, and where the kernel finds it (`docs/link.md`).
const VNIC: &str = "vnic0";
const LINKS_FILE: &str = "/etc/dladm/datalink.conf";

/// The program's network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bypass {
    by: BypassFlag,
    address: Ipv4Addr,
    prefix_len: u8,
    gateway: Option<Ipv4Addr>,
}

impl Bypass {
    /// What `flags` ask for; `None` if not for this.
    pub fn of(flags: &RunFlags) -> Result<Option<Self>, Failure> {
        let Some(by) = flags.bypass else {
            return Ok(None);
        };
        if by == BypassFlag::Card && flags.machine == BoardFlag::Microvm {
            return Err(Failure::NoIommu);
        }
        if by == BypassFlag::Card && flags.nic == NicFlag::E1000 {
            return Err(Failure::NoBypassOfCard);
        }
        match network::address(&flags.program, &network::net(flags)) {
            Ip::Static {
                address,
                prefix_len,
                gateway,
            } => Ok(Some(Self {
                by,
                address,
                prefix_len,
                gateway,
            })),
            Ip::Automatic | Ip::None | Ip::OfNetwork(_) => Err(Failure::NoBypassAddress),
        }
    }

    /// Whether the kernel leaves the card to the program.
    pub fn is_of_card(&self) -> bool {
        self.by == BypassFlag::Card
    }

    /// Puts into the program's image what is to be made for it.
    pub fn add_to(&self, packed: &mut Packed) {
        if self.by == BypassFlag::Vnic {
            let line = format!("vnic\t{VNIC}\teth0\t{}\t0\n", some_station());
            packed.image.add_bytes(LINKS_FILE, 0o644, line);
        }
    }

    /// What the library wants to know.
    pub fn environment(&self) -> Vec<String> {
        let Self {
            by,
            address,
            prefix_len,
            gateway,
        } = self;
        let link = match by {
            BypassFlag::Card => format!("0000:{}", qemu::CARD_OF_PROGRAM),
            BypassFlag::Vnic => VNIC.into(),
        };
        let mut variables = vec![
            format!("SIETCH_LINK={link}"),
            format!("SIETCH_ADDRESS={address}/{prefix_len}"),
        ];
        variables.extend(gateway.map(|gateway| format!("SIETCH_GATEWAY={gateway}")));
        variables
    }
}

/// An address for a VNIC, with the prefix that `dladm` takes: another one for each machine, for they may be on one
/// network.
fn some_station() -> String {
    let [a, b, c, ..] = RandomState::new().build_hasher().finish().to_ne_bytes();
    format!("02:08:20:{a:02x}:{b:02x}:{c:02x}")
}
