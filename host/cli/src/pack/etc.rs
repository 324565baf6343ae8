//! The files that programs expect around them: `/etc`, and some empty folders.

use std::fs;
use std::net::Ipv4Addr;
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

/// Adds the surroundings of a program on a machine called `hostname`, which asks
/// `name_server` for names.
pub fn add(
    image: &mut Image,
    hostname: &str,
    name_server: Option<Ipv4Addr>,
) -> Result<(), PackError> {
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
    image.add_bytes("/etc/hostname", 0o644, format!("{hostname}\n"));
    image.add_bytes(
        "/etc/hosts",
        0o644,
        format!("127.0.0.1\tlocalhost\n::1\tlocalhost\n127.0.1.1\t{hostname}\n"),
    );
    let resolver = name_server
        .map(|ip| format!("nameserver {ip}\n"))
        .unwrap_or_default();
    image.add_bytes("/etc/resolv.conf", 0o644, resolver);
    Ok(())
}
