//! What files of the machine tell of it and of others: those below /etc, and single files of the host.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use qemu::Net;

use crate::failure::Failure;
use crate::flags::{Addition, MountSource, RunFlags};
use crate::pack::etc::Etc;

use super::GuestConfig;
use super::network::{USER_GATEWAY, USER_NAME_SERVER};

/// Where programs look for the time zone.
pub(super) const ZONE: &str = "/etc/localtime";

/// The file of `--tz`.
pub(super) fn zone_file(around: &GuestConfig) -> Result<Option<PathBuf>, Failure> {
    let Some(zone) = &around.names.tz else {
        return Ok(None);
    };
    let path = match zone.as_str() {
        "local" => PathBuf::from(ZONE),
        zone => Path::new("/usr/share/zoneinfo").join(zone),
    };
    let has_climbed = zone.starts_with('/') || zone.split('/').any(|part| part == "..");
    let path = std::fs::canonicalize(path)
        .ok()
        .filter(|path| path.is_file());
    match path.filter(|_| !has_climbed) {
        Some(path) => Ok(Some(path)),
        None => Err(Failure::NoSuchZone { zone: zone.clone() }),
    }
}

/// What files below /etc tell of the machine and of others.
pub(super) fn etc_of(hostname: &str, around: &GuestConfig) -> Result<Etc, Failure> {
    let names = &around.names;
    let of_user_network = || (around.net == Net::User).then_some(USER_NAME_SERVER);
    let of_network = around.networks.first().map(switch::Network::name_server);
    let usual = of_network.or_else(of_user_network).map(IpAddr::from);
    let servers = match names.dns.is_empty() {
        true => usual.into_iter().collect(),
        false => names.dns.clone(),
    };
    let hosts = names.add_host.iter().map(|entry| {
        let address = entry.address.unwrap_or(USER_GATEWAY.into());
        (address, entry.names.join(" "))
    });
    let lines = match &names.hosts_file {
        Some(path) => std::fs::read_to_string(path).map_err(Failure::file(path))?,
        None => String::new(),
    };
    Ok(Etc {
        hostname: hostname.into(),
        domain: names.domainname.clone(),
        servers,
        searched: names.dns_search.clone(),
        options: names.dns_option.clone(),
        hosts: hosts.collect(),
        lines,
        has_hostname: !names.no_hostname,
        is_alone: names.no_hosts,
    })
}

/// Single files of `-v`, which a machine gets as copies.
pub(super) fn files(flags: &RunFlags) -> Result<Vec<Addition>, Failure> {
    let mut files = Vec::new();
    for mount in &flags.volume {
        match &mount.source {
            MountSource::Folder { path, .. } if path.is_file() => {
                if !mount.read_only {
                    return Err(Failure::FileNotReadOnly { path: path.clone() });
                }
                files.push(Addition {
                    host: path.clone(),
                    guest: PathBuf::from(&mount.guest),
                });
            }
            _ => {}
        }
    }
    Ok(files)
}
