//! The systems and networks that are compared, and the guest that each of them is.

use std::path::Path;

use bench_pair::{library, tool};
use nested::{Guest, System};

use crate::load::Server;

/// What is compared: a system, and whose its network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Linux as Debian starts it.
    Linux,
    /// Linux with `mitigations=off`.
    Unmitigated,
    /// Sietch, by its sockets.
    Sietch,
    /// Sietch: the program has a VNIC by `libsietch.so`.
    Vnic,
    /// The program has the machine's virtio-net (`--bypass`).
    Card,
    /// The program has a virtual function of an 82576.
    Function,
}

const LIBRARY: &str = "/lib/libsietch.so";
const VNIC: &str = "vnic0";
/// Where the first virtual function of the machine's 82576 is.
const FUNCTION: &str = "0000:00:11.0";
/// The program's address where the kernel has one, too.
const OWN_ADDRESS: &str = "10.0.2.61";
/// The machine's.
const ADDRESS: &str = "10.0.2.15";

impl Subject {
    /// Those of `docs/bench-kvm.md`, in the order of the page.
    pub const SYSTEMS: [Self; 3] = [Self::Linux, Self::Unmitigated, Self::Sietch];
    /// Those of `docs/bench-bypass-kvm.md`; the others are compared with the first.
    pub const NETWORKS: [Self; 6] = [
        Self::Unmitigated,
        Self::Linux,
        Self::Sietch,
        Self::Vnic,
        Self::Card,
        Self::Function,
    ];

    /// Its name on the page.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            Self::Unmitigated => "Linux, `mitigations=off`",
            Self::Sietch => "Sietch",
            Self::Vnic => "VNIC",
            Self::Card => "virtio-net",
            Self::Function => "VF",
        }
    }

    fn tag(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Unmitigated => "unmitigated",
            Self::Sietch => "sietch",
            Self::Vnic => "vnic",
            Self::Card => "card",
            Self::Function => "function",
        }
    }

    fn system(self) -> System {
        match self {
            Self::Linux | Self::Unmitigated => System::Linux,
            _ => System::Sietch,
        }
    }

    /// Where its server is reached.
    pub fn address(self) -> &'static str {
        match self {
            Self::Vnic | Self::Function => OWN_ADDRESS,
            _ => ADDRESS,
        }
    }

    /// The guest in which it serves; its files are kept in the folder `output`.
    pub fn guest(self, server: &Server, output: &Path) -> Result<Guest, String> {
        let name = format!("{}-{}", self.tag(), server.name());
        let mut args = vec!["-m".to_string(), "256M".into()];
        args.extend(self.flags().iter().map(ToString::to_string));
        match self {
            Self::Vnic => args.extend(self.wrapped(server, VNIC)?),
            Self::Function => args.extend(self.wrapped(server, FUNCTION)?),
            _ => args.extend(server.args()),
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        Guest::new(output, &name, self.system(), &args, &[])
    }

    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Linux | Self::Sietch | Self::Vnic => &[],
            Self::Unmitigated => &["--kernel-option", "mitigations=off"],
            Self::Card => &["--bypass"],
            Self::Function => &[
                "--nic",
                "igb",
                "--iommu",
                "--kernel-option",
                "igb.max_vfs=1",
            ],
        }
    }

    /// A shell that puts the library before the server.
    fn wrapped(self, server: &Server, link: &str) -> Result<Vec<String>, String> {
        let added = [
            format!("{}:/bin/dladm", tool("dladm")?),
            format!("{}:{LIBRARY}", library("sietch")?),
        ];
        let create = match self {
            Self::Vnic => "dladm create-vnic -t -l eth0 vnic0 && ",
            _ => "",
        };
        let script = format!(
            "{create}export LD_PRELOAD={LIBRARY} SIETCH_LINK={link} SIETCH_ADDRESS={OWN_ADDRESS}/24 \
             && exec \"$@\""
        );
        let adds = added.into_iter().flat_map(|add| ["--add".to_string(), add]);
        let shell = ["busybox", "sh", "-c", &script, "sh"].map(str::to_string);
        Ok(adds
            .chain(server.added())
            .chain(shell)
            .chain(server.words())
            .collect())
    }
}
