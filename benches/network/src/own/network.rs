//! Whose network a program has, and the guest in which it has it.

use std::net::Ipv4Addr;

use bench_pair::{Guest, System, library, tool};
use qemu::namespace::MACHINE;

/// A program, with what it needs.
pub struct Program {
    /// Its path on this host. It is dynamic, so that a library can stand in front of it.
    pub path: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Files of this host and where they are in the guest, as `--add` takes them.
    pub files: Vec<String>,
}

/// Whose network a program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Linux' sockets, as it comes.
    Mitigated,
    /// The same with `mitigations=off`.
    Linux,
    /// The sockets of Sietch.
    Sockets,
    /// A VNIC, by `libsietch.so`.
    Vnic,
    /// The machine's virtio-net (`--bypass`).
    Card,
    /// A virtual function of an 82576.
    Function,
}

/// The address of a program that has one beside the machine's; the next program's is one more.
pub const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 61);
const LIBRARY: &str = "/lib/libsietch.so";
const FUNCTION_FLAGS: [&str; 5] = [
    "--nic",
    "igb",
    "--iommu",
    "--kernel-option",
    "igb.max_vfs=2",
];

/// A machine whose card is left to a program that makes native calls, and where that is.
const CARD_FLAGS: [&str; 3] = ["--iommu", "--kernel-option", "vfio=00:01.0"];
const CARD: &str = "0000:00:01.0";

impl Network {
    /// In the order of the page.
    pub const ALL: [Self; 6] = [
        Self::Mitigated,
        Self::Linux,
        Self::Sockets,
        Self::Vnic,
        Self::Card,
        Self::Function,
    ];

    /// Its name on the page.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mitigated => "Linux as it comes",
            Self::Linux => "Linux",
            Self::Sockets => "Sietch",
            Self::Vnic => "VNIC",
            Self::Card => "virtio-net",
            Self::Function => "VF",
        }
    }

    /// Where a program is reached.
    pub fn address(self) -> Ipv4Addr {
        match self {
            Self::Mitigated | Self::Linux | Self::Sockets | Self::Card => MACHINE,
            Self::Vnic | Self::Function => OWN,
        }
    }

    /// Boots a machine of one CPU with a program.
    pub fn boot(self, program: &Program) -> Result<Guest, String> {
        let args = self.args(program, 1)?;
        self.system().boot(&refs(&args))
    }

    /// Flags, program and arguments of `sietch run` for so many CPUs and 512 MiB.
    pub fn args(self, program: &Program, cpus: u8) -> Result<Vec<String>, String> {
        if let Self::Vnic | Self::Function = self {
            return self.args_by(program, cpus, "exec \"$@\"");
        }
        let mut args = size(cpus);
        if self == Self::Card {
            library("sietch")?;
            args.push("--bypass".into());
        }
        args.extend(program.files.iter().flat_map(|file| added(file)));
        args.push(program.path.clone());
        args.extend(program.args.iter().cloned());
        Ok(args)
    }

    /// The same with a shell that starts the program by this line of its.
    pub fn args_by(self, program: &Program, cpus: u8, line: &str) -> Result<Vec<String>, String> {
        let mut args = size(cpus);
        args.extend(self.flags()?);
        args.extend(program.files.iter().flat_map(|file| added(file)));
        args.extend(added(&format!("{}:/bin/program", program.path)));
        let script = match self {
            Self::Mitigated | Self::Linux | Self::Sockets => line.into(),
            Self::Card | Self::Vnic | Self::Function => {
                format!("{}; {} {line}", self.links(1), self.variables(0))
            }
        };
        args.extend(["busybox", "sh", "-c", &script, "sh", "/bin/program"].map(String::from));
        args.extend(program.args.iter().cloned());
        Ok(args)
    }

    /// The same for a program of one CPU that makes native calls; `None` where the network is not the program's.
    pub fn args_native(self, program: &str) -> Result<Option<Vec<String>>, String> {
        if let Self::Mitigated | Self::Linux | Self::Sockets = self {
            return Ok(None);
        }
        let mut args = size(1);
        args.extend(self.flags()?);
        args.extend(added(&format!("{program}:/bin/program")));
        let (links, address) = (self.links(1), self.address());
        let script = format!("{links}; exec /bin/program $link0 {address}/24");
        args.extend(["busybox", "sh", "-c", &script].map(String::from));
        Ok(Some(args))
    }

    /// What runs in the guest.
    pub fn system(self) -> System {
        match self {
            Self::Mitigated => System::Linux,
            Self::Linux => System::Unmitigated,
            _ => System::Sietch,
        }
    }

    /// Flags for a machine whose programs have VNICs, functions or the card, taken by a shell; none for the kernel's sockets.
    pub fn flags(self) -> Result<Vec<String>, String> {
        let mut flags = vec![];
        match self {
            Self::Mitigated | Self::Linux | Self::Sockets => return Ok(flags),
            Self::Card => flags.extend(CARD_FLAGS.map(String::from)),
            Self::Function => flags.extend(FUNCTION_FLAGS.map(String::from)),
            Self::Vnic => {}
        }
        flags.extend(added(&format!("{}:/bin/dladm", tool("dladm")?)));
        flags.extend(added(&format!("{}:{LIBRARY}", library("sietch")?)));
        Ok(flags)
    }

    /// Lines of a shell after which `$link0` and those after it name so many VNICs or functions.
    pub fn links(self, count: u8) -> String {
        let lines = (0..count).map(|number| match self {
            Self::Function => format!("link{number}={FUNCTION_PREFIX}{}", 2 * number),
            Self::Card => format!("link{number}={CARD}"),
            _ => format!(
                "dladm create-vnic -t -l eth0 -m 2:0:0:0:0:{}{number} vnic{number}; link{number}=vnic{number}",
                6
            ),
        });
        lines.collect::<Vec<_>>().join("; ")
    }

    /// What a shell writes before a program that is to have one of them.
    pub fn variables(self, number: u8) -> String {
        let address = match self {
            Self::Card => MACHINE,
            _ => own(number),
        };
        format!("LD_PRELOAD={LIBRARY} SIETCH_LINK=$link{number} SIETCH_ADDRESS={address}/24")
    }
}

/// Where the virtual functions are: each second one belongs to another port of the card.
const FUNCTION_PREFIX: &str = "0000:00:11.";

/// The address of a program by its number.
pub fn own(number: u8) -> Ipv4Addr {
    let [a, b, c, d] = OWN.octets();
    Ipv4Addr::new(a, b, c, d + number)
}

/// The same as what is borrowed.
pub fn refs(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

/// A machine's.
fn size(cpus: u8) -> Vec<String> {
    ["-m", "512M", "--cpus", &cpus.to_string()]
        .map(String::from)
        .to_vec()
}

/// `--add` and its file.
pub fn added(file: &str) -> [String; 2] {
    ["--add".into(), file.into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_has_a_link_and_an_address() {
        let links = Network::Function.links(2);
        assert_eq!(links, "link0=0000:00:11.0; link1=0000:00:11.2");
        let variables = Network::Vnic.variables(1);
        assert!(variables.contains("SIETCH_LINK=$link1 SIETCH_ADDRESS=10.0.2.62/24"));
    }
}
