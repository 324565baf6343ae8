//! What the program may do: groups, capabilities, limits, settings of the kernel.

use std::str::FromStr;

use clap::Args;

/// See the module.
#[derive(Clone, Debug, Default, Args)]
pub struct RightsFlags {
    /// A further group of the program's, by number or by name
    #[arg(long, value_name = "GROUP")]
    pub group_add: Vec<String>,
    /// A capability that the program may have after --cap-drop ALL, such as NET_BIND_SERVICE, or ALL
    #[arg(long, value_name = "CAPABILITY", value_delimiter = ',')]
    pub cap_add: Vec<CapabilitySet>,
    /// A capability that no program may have [default: none, as the kernel is the machine's own], or ALL
    #[arg(long, value_name = "CAPABILITY", value_delimiter = ',')]
    pub cap_drop: Vec<CapabilitySet>,
    /// Take nothing from the program, which is so without --cap-drop
    #[arg(long, conflicts_with = "cap_drop")]
    pub privileged: bool,
    /// no-new-privileges: nobody gets rights from set-user-ID programs. seccomp=unconfined, apparmor=unconfined and
    /// label=disable are so in any case
    #[arg(long, value_name = "OPTION")]
    pub security_opt: Vec<SecurityOption>,
    /// A limit of the program's, such as nofile=1024:4096 (setrlimit(2); -1 for none)
    #[arg(long, value_name = "NAME=SOFT[:HARD]")]
    pub ulimit: Vec<Ulimit>,
    /// A setting of the machine's kernel, such as net.core.somaxconn=1024
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_sysctl)]
    pub sysctl: Vec<(String, String)>,
    /// Permission bits that new files do not get [default: 0022]
    #[arg(long, value_name = "OCTAL", value_parser = parse_umask)]
    pub umask: Option<u32>,
}

impl RightsFlags {
    /// The capabilities that programs may have: bit n is capability n; `None` if all.
    pub fn capabilities(&self) -> Option<u64> {
        let union = |sets: &[CapabilitySet]| sets.iter().fold(0, |all, set| all | set.0);
        let all = CapabilitySet::ALL.0;
        let left = all & !union(&self.cap_drop) | union(&self.cap_add);
        (left != all).then_some(left)
    }

    /// Whether nobody gets rights from exec.
    pub fn gains_nothing(&self) -> bool {
        self.security_opt.contains(&SecurityOption::NoNewPrivileges)
    }
}

/// Capabilities by name, in the order of their numbers (linux/capability.h).
const CAPABILITIES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// One capability, or all: bit n is capability n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapabilitySet(pub u64);

impl CapabilitySet {
    const ALL: Self = Self((1 << CAPABILITIES.len()) - 1);
}

impl FromStr for CapabilitySet {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.to_ascii_uppercase();
        let name = name.strip_prefix("CAP_").unwrap_or(&name);
        if name == "ALL" {
            return Ok(Self::ALL);
        }
        let at = CAPABILITIES.iter().position(|known| *known == name);
        at.map(|at| Self(1 << at))
            .ok_or("give a name of capabilities(7), such as NET_ADMIN, or ALL")
    }
}

/// `--security-opt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecurityOption {
    /// Nobody gets rights from exec.
    NoNewPrivileges,
    /// What is so in any case.
    AlwaysSo,
}

impl FromStr for SecurityOption {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.replace(':', "=").as_str() {
            "no-new-privileges" | "no-new-privileges=true" => Ok(Self::NoNewPrivileges),
            "no-new-privileges=false"
            | "seccomp=unconfined"
            | "apparmor=unconfined"
            | "label=disable" => Ok(Self::AlwaysSo),
            _ => Err(
                "the machine itself is what confines the program, without profiles of the host: leave it out",
            ),
        }
    }
}

/// Limits by docker's names, with Linux's numbers.
const LIMITS: [(&str, u8); 16] = [
    ("cpu", 0),
    ("fsize", 1),
    ("data", 2),
    ("stack", 3),
    ("core", 4),
    ("rss", 5),
    ("nproc", 6),
    ("nofile", 7),
    ("memlock", 8),
    ("as", 9),
    ("locks", 10),
    ("sigpending", 11),
    ("msgqueue", 12),
    ("nice", 13),
    ("rtprio", 14),
    ("rttime", 15),
];
const FILES: u8 = 7;
/// No table of descriptors is larger (`fs.nr_open`).
const FILES_MAX: u64 = 1 << 20;

/// `--ulimit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ulimit {
    /// Linux's number of the resource.
    pub number: u8,
    /// In force.
    pub soft: u64,
    /// The most that a program may put in force.
    pub hard: u64,
}

impl FromStr for Ulimit {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str =
            "give NAME=SOFT[:HARD], such as nofile=1024:4096, the first not above the second";
        let (name, values) = text.split_once('=').ok_or(FORM)?;
        let (soft, hard) = values.split_once(':').unwrap_or((values, values));
        let name = name.to_ascii_lowercase();
        let known = LIMITS.iter().find(|(known, _)| *known == name);
        let number = known.ok_or(FORM)?.1;
        let value = |text: &str| match text {
            "-1" | "unlimited" if number == FILES => Ok(FILES_MAX),
            "-1" | "unlimited" => Ok(u64::MAX),
            text => text.parse().map_err(|_| FORM),
        };
        let (soft, hard) = (value(soft)?, value(hard)?);
        if number == FILES && hard > FILES_MAX {
            return Err("nofile can be 1048576 at the most");
        }
        match soft <= hard {
            true => Ok(Self { number, soft, hard }),
            false => Err(FORM),
        }
    }
}

fn parse_sysctl(text: &str) -> Result<(String, String), String> {
    let is_name = |name: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        !name.is_empty() && !name.contains("..") && name.chars().all(is_plain)
    };
    match text.split_once('=') {
        Some((name, value)) if is_name(name) && !value.contains('\0') => {
            Ok((name.into(), value.into()))
        }
        _ => Err("give NAME=VALUE, such as net.core.somaxconn=1024".into()),
    }
}

fn parse_umask(text: &str) -> Result<u32, String> {
    let mask = u32::from_str_radix(text, 8).ok();
    mask.filter(|mask| *mask <= 0o777)
        .ok_or_else(|| "give an octal number such as 0027".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_taken_away_and_given_back() {
        let set = |text: &str| text.parse::<CapabilitySet>().unwrap();
        let flags = |drop: &[&str], add: &[&str]| RightsFlags {
            cap_drop: drop.iter().map(|name| set(name)).collect(),
            cap_add: add.iter().map(|name| set(name)).collect(),
            ..RightsFlags::default()
        };
        assert_eq!(flags(&[], &["SYS_ADMIN"]).capabilities(), None);
        assert_eq!(flags(&["ALL"], &[]).capabilities(), Some(0));
        let one = flags(&["all"], &["CAP_NET_BIND_SERVICE"]);
        assert_eq!(one.capabilities(), Some(1 << 10));
        assert_eq!(set("CHECKPOINT_RESTORE").0, 1 << 40);
        assert!("NOTHING".parse::<CapabilitySet>().is_err());
    }

    #[test]
    fn limits_have_dockers_names_and_linuxs_numbers() {
        let limit = |text: &str| text.parse::<Ulimit>();
        let (number, soft, hard) = (7, 1024, 4096);
        assert_eq!(limit("nofile=1024:4096"), Ok(Ulimit { number, soft, hard }));
        assert_eq!(limit("core=-1").unwrap().hard, u64::MAX);
        for wrong in ["nofile", "files=1", "nofile=2:1", "nofile=9999999", "cpu=x"] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn settings_of_the_kernel_stay_below_their_folder() {
        assert!(parse_sysctl("net.core.somaxconn=1").is_ok());
        for wrong in ["net", "=1", "../x=1", "net/../../x=1"] {
            assert!(parse_sysctl(wrong).is_err(), "{wrong}");
        }
    }
}
