//! The files that programs expect around them: `/etc`, and some empty folders.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use super::{Image, PackError};

/// Taken from the host where they exist: users, names of services, time zone, and
/// where the libraries are.
const FROM_HOST: [&str; 8] = [
    "/etc/passwd",
    "/etc/group",
    "/etc/services",
    "/etc/protocols",
    "/etc/localtime",
    "/etc/ld.so.cache",
    "/etc/ssl/openssl.cnf",
    "/etc/os-release",
];

/// Folders with their modes.
const FOLDERS: [(&str, u32); 10] = [
    ("/dev", 0o755),
    ("/proc", 0o555),
    ("/sys", 0o555),
    ("/run", 0o755),
    ("/tmp", 0o1777),
    ("/root", 0o700),
    ("/var/lib", 0o755),
    ("/var/log", 0o755),
    ("/var/tmp", 0o1777),
    ("/mnt", 0o755),
];

const NSSWITCH: &str = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n\
    services: files\nprotocols: files\nnetworks: files\n";

/// What is told of the machine, and of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Etc {
    /// The machine's name.
    pub hostname: String,
    /// Its domain.
    pub domain: Option<String>,
    /// Who is asked for names.
    pub servers: Vec<IpAddr>,
    /// Domains in which short names are searched.
    pub searched: Vec<String>,
    /// Options of resolv.conf(5).
    pub options: Vec<String>,
    /// Others' addresses and names.
    pub hosts: Vec<(IpAddr, String)>,
    /// Further lines of /etc/hosts.
    pub lines: String,
    /// Whether there is an /etc/hostname.
    pub has_hostname: bool,
    /// Whether /etc/hosts tells of nobody.
    pub is_alone: bool,
}

impl Etc {
    fn hosts_file(&self) -> String {
        let mut text = String::from("127.0.0.1\tlocalhost\n::1\tlocalhost\n");
        if !self.is_alone {
            let name = &self.hostname;
            let whole = self.domain.iter().map(|domain| format!("{name}.{domain} "));
            let whole: String = whole.collect();
            text += &format!("127.0.1.1\t{whole}{name}\n");
        }
        for (address, names) in &self.hosts {
            text += &format!("{address}\t{names}\n");
        }
        text + &self.lines
    }

    fn resolver_file(&self) -> String {
        let line = |key: &str, values: &[String]| match values.is_empty() {
            true => String::new(),
            false => format!("{key} {}\n", values.join(" ")),
        };
        let servers = self.servers.iter().map(|ip| format!("nameserver {ip}\n"));
        servers.collect::<String>()
            + &line("search", &self.searched)
            + &line("options", &self.options)
    }
}

/// Adds the surroundings of a program on a machine of which `etc` tells.
pub fn add(image: &mut Image, etc: &Etc) -> Result<(), PackError> {
    for (path, mode) in FOLDERS {
        image.add_folder(path, mode);
    }
    image.add_link("/var/run", "/run");
    for path in FROM_HOST {
        // The file itself, not the link: nothing else of its folder comes along.
        if fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
            image.add(Path::new(path), Path::new(path))?;
        }
    }
    image.add_bytes("/etc/nsswitch.conf", 0o644, NSSWITCH);
    if etc.has_hostname {
        image.add_bytes("/etc/hostname", 0o644, format!("{}\n", etc.hostname));
    }
    image.add_bytes("/etc/hosts", 0o644, etc.hosts_file());
    image.add_bytes("/etc/resolv.conf", 0o644, etc.resolver_file());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_tell_of_the_machine_and_of_others() {
        let etc = Etc {
            hostname: "web".into(),
            domain: Some("example".into()),
            servers: vec!["10.0.2.3".parse().unwrap()],
            searched: vec!["a.example".into(), "b.example".into()],
            options: vec!["ndots:2".into()],
            hosts: vec![("10.0.0.3".parse().unwrap(), "db store".into())],
            lines: "10.0.0.4\tweb2\n".into(),
            has_hostname: true,
            is_alone: false,
        };
        assert_eq!(
            etc.hosts_file(),
            "127.0.0.1\tlocalhost\n::1\tlocalhost\n127.0.1.1\tweb.example web\n10.0.0.3\tdb store\n10.0.0.4\tweb2\n"
        );
        assert_eq!(
            etc.resolver_file(),
            "nameserver 10.0.2.3\nsearch a.example b.example\noptions ndots:2\n"
        );
        let alone = Etc {
            is_alone: true,
            ..Etc::default()
        };
        assert_eq!(alone.hosts_file(), "127.0.0.1\tlocalhost\n::1\tlocalhost\n");
        assert_eq!(alone.resolver_file(), "");
    }
}
