//! Images that a PC boots by itself: an ISO for drives that read CDs, and a disk, raw or in a cloud's format.
//!
//! The problem: firmware loads neither PVH kernels nor archives. BIOS reads 512 bytes of a
//! disk, UEFI a program from a FAT file system, and somebody must find the kernel from there.
//!
//! The idea: GRUB is that somebody, from either firmware, and reads the kernel's multiboot2
//! header; so there is no loader of ours. Its parts and the file systems are made by
//! Debian's tools as they are, without root and without mounts ([`tools`]). Of our own are
//! the menu ([`menu`]), a kernel without its symbols ([`kernel`]), and where the parts lie on a
//! raw disk ([`raw`]). Clouds want the raw disk in a file of their own: [`qcow2`], [`vhd`].
//!
//! Not here: what goes into the archive (`pack`).

mod iso;
mod kernel;
mod menu;
mod qcow2;
mod raw;
pub mod tools;
mod vhd;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;

use crate::failure::Failure;

/// What is booted.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The program's name, for the menu.
    pub name: &'a str,
    /// The kernel's file.
    pub kernel: &'a Path,
    /// The root file system as a cpio archive.
    pub archive: &'a [u8],
    /// The kernel's command line.
    pub command_line: &'a str,
}

/// Writes an ISO that boots from BIOS and UEFI, from a CD or a disk.
pub fn write_iso(parts: &Parts<'_>, output: &Path) -> Result<(), Failure> {
    tools::check()?;
    iso::write(&Files::stage(parts, output)?, output)
}

/// Writes a disk that boots from BIOS and UEFI.
pub fn write_raw(parts: &Parts<'_>, output: &Path) -> Result<(), Failure> {
    tools::check()?;
    raw::write(&Files::stage(parts, output)?, output)
}

/// Writes that disk in QEMU's format, for OpenStack and others.
pub fn write_qcow2(parts: &Parts<'_>, output: &Path) -> Result<(), Failure> {
    tools::check()?;
    let files = Files::stage(parts, output)?;
    let disk = files.path(DISK);
    raw::write(&files, &disk)?;
    qcow2::write(&disk, output).map_err(Failure::file(output))
}

/// Writes that disk as a VHD of fixed size, for Azure and Hyper-V.
pub fn write_vhd(parts: &Parts<'_>, output: &Path) -> Result<(), Failure> {
    write_raw(parts, output)?;
    vhd::add_footer(output).map_err(Failure::file(output))
}

/// A disk that is written in another format.
const DISK: &str = "disk.img";

/// The image's files in a folder of their own, which goes when this is dropped.
struct Files {
    folder: PathBuf,
    /// Of all files.
    bytes: u64,
}

impl Files {
    /// Writes them beside `output`, where there is room for their like.
    fn stage(parts: &Parts<'_>, output: &Path) -> Result<Self, Failure> {
        let name = output.file_name().unwrap_or_default().to_string_lossy();
        let folder = output.with_file_name(format!(".{name}.{}", process::id()));
        let mut files = Self { folder, bytes: 0 };
        let kernel = fs::read(parts.kernel).map_err(Failure::file(parts.kernel))?;
        let kernel = kernel::without_symbols(&kernel).ok_or_else(|| {
            let reason = io::Error::new(io::ErrorKind::InvalidData, "it is no kernel of ours");
            Failure::file(parts.kernel)(reason)
        })?;
        files.add(menu::KERNEL, &kernel)?;
        files.add(menu::ARCHIVE, parts.archive)?;
        let menu = menu::text(parts.name, parts.command_line);
        files.add(menu::MENU, menu.as_bytes())?;
        Ok(files)
    }

    fn add(&mut self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let path = self.path(name);
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder).map_err(Failure::file(folder))?;
        fs::write(&path, bytes).map_err(Failure::file(&path))?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Where the file lies that the image has at `/name`.
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // What cannot be removed is only in the way.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
