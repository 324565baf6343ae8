//! Folders of the host that a machine has, by 9P or virtiofs.

use std::path::Path;

use qemu::{CommandLine, FolderServer, Owners, Volume};
use rustix::io::Errno;

use crate::failure::Failure;
use crate::flags::{MountSource, RunFlags};

/// The device that has the folder which is the root.
const ROOT_TAG: &str = "root";

/// The folders of the host that `flags` share with the machine, of which its kernel is told.
pub(super) fn folders(
    flags: &RunFlags,
    has_iommu: bool,
    mut command_line: CommandLine,
) -> Result<(CommandLine, Vec<Volume>), Failure> {
    let mut volumes = Vec::new();
    if let Some(path) = flags.root.folder() {
        command_line = command_line.set("root", &format!("9P={ROOT_TAG}"));
        volumes.push(root_folder(path)?);
    }
    for (number, mount) in flags.volume.iter().enumerate() {
        let MountSource::Folder {
            path,
            host_owners,
            server,
        } = &mount.source
        else {
            continue;
        };
        if path.is_file() {
            continue;
        }
        if *server == FolderServer::Virtiofsd && has_iommu {
            return Err(Failure::NoVirtiofsBehindIommu);
        }
        let host = std::fs::canonicalize(path).map_err(|_| Failure::NoSuchPath {
            path: path.clone(),
            flag: "-v",
        })?;
        let tag = format!("volume{number}");
        command_line = command_line.mount_folder(*server, &tag, &mount.guest, mount.read_only);
        let are_plain = mount.read_only || *host_owners || *server == FolderServer::Virtiofsd;
        volumes.push(Volume {
            owners: owners(are_plain, &host),
            server: *server,
            host,
            tag,
            read_only: mount.read_only,
        });
    }
    Ok((command_line, volumes))
}

/// The folder that is the root: it is only read, and owners are the host's.
fn root_folder(path: &Path) -> Result<Volume, Failure> {
    let host = std::fs::canonicalize(path).ok();
    let host = host.filter(|host| host.is_dir());
    Ok(Volume {
        host: host.ok_or_else(|| Failure::NoSuchPath {
            path: path.into(),
            flag: "--rootfs",
        })?,
        tag: ROOT_TAG.into(),
        read_only: true,
        owners: Owners::Host,
        server: FolderServer::NineP,
    })
}

/// Where owners are kept: a host's ordinary user cannot give a file to anybody else, so
/// beside the inodes, where the folder's file system takes attributes.
fn owners(are_plain: bool, host: &Path) -> Owners {
    let takes_attributes = || {
        let asked = rustix::fs::getxattr(host, "user.virtfs.uid", &mut [0u8; 4][..]);
        !matches!(asked, Err(Errno::NOTSUP))
    };
    let is_plain = are_plain || rustix::process::geteuid().is_root();
    match !is_plain && takes_attributes() {
        true => Owners::Attributes,
        false => Owners::Host,
    }
}
