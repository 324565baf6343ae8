//! The raw disk:
//!
//! ```text
//! sector 0        GRUB's first 440 bytes for BIOS, and the table that protects the next
//! sectors 1 to 33 the GUID partition table (UEFI specification 2.10, chapter 5)
//! 1 MiB           BIOS boot partition: GRUB's core, which sector 0 loads by its number
//! 2 MiB           EFI system partition, FAT32: GRUB for UEFI, kernel, archive and menu
//! the end         the table's copy
//! ```

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use gpt::GptConfig;
use gpt::disk::LogicalBlockSize;
use gpt::mbr::ProtectiveMBR;
use gpt::partition_types::{BIOS, EFI, Type};

use super::{Files, tools};
use crate::failure::Failure;

const SECTOR_BYTES: u64 = 512;
const MIB: u64 = 1 << 20;
const CORE_AT: u64 = MIB;
const CORE_BYTES_MAX: u64 = MIB;
const SYSTEM_AT: u64 = CORE_AT + CORE_BYTES_MAX;
/// The tables' copy at the end, in whole MiB.
const END_BYTES: u64 = MIB;
/// FAT32 has 65525 clusters at least.
const SYSTEM_BYTES_MIN: u64 = 64 * MIB;

/// Of sector 0, the bytes before a disk's signature and the old table of partitions.
const BOOT_CODE_BYTES: usize = 440;
/// Where GRUB's first sector has the number of the sector that it loads.
const NEXT_SECTOR: usize = 0x5c;
/// Where that one, the core's first, has the number of the sector from which it loads the rest.
const REST_SECTOR: usize = 0x1f4;

/// Parts of GRUB that find and read the files. From UEFI it is started on the partition with
/// its menu; from BIOS it looks on the second partition of the disk that it came from.
const MODULES: [&str; 4] = ["part_gpt", "fat", "normal", "multiboot2"];
const MENU_FOLDER: &str = "/boot/grub";
/// Where UEFI looks for a program to start.
const EFI_PROGRAM: &str = "EFI/BOOT/BOOTX64.EFI";

pub(super) fn write(files: &Files, output: &Path) -> Result<(), Failure> {
    let core = files.path("core.img");
    make_grub(
        "i386-pc",
        &format!("(,gpt2){MENU_FOLDER}"),
        &["biosdisk"],
        &core,
    )?;
    let program = files.path(EFI_PROGRAM);
    if let Some(folder) = program.parent() {
        fs::create_dir_all(folder).map_err(Failure::file(folder))?;
    }
    make_grub("x86_64-efi", MENU_FOLDER, &[], &program)?;
    let core = fs::read(&core).map_err(Failure::file(&core))?;
    let system_bytes = system_bytes(files, &program)?;
    make_disk(output, &core, system_bytes)?;
    fill_system(files, output, system_bytes)
}

fn make_grub(platform: &str, prefix: &str, more: &[&str], to: &Path) -> Result<(), Failure> {
    let mut command = tools::command("grub-mkimage");
    command.args(["-O", platform, "-p", prefix, "-o"]).arg(to);
    command.args(MODULES).args(more);
    tools::run(command)
}

/// Room for the files, a quarter more for what their owner adds, and FAT's own tables.
fn system_bytes(files: &Files, program: &Path) -> Result<u64, Failure> {
    let program = fs::metadata(program).map_err(Failure::file(program))?;
    let bytes = (files.bytes + program.len()) / 4 * 5 + 4 * MIB;
    Ok(bytes.max(SYSTEM_BYTES_MIN).next_multiple_of(MIB))
}

/// Writes the tables and what BIOS starts.
fn make_disk(output: &Path, core: &[u8], system_bytes: u64) -> Result<(), Failure> {
    let make = || {
        let boot = fs::read(Path::new(tools::GRUB_PC).join("boot.img"))?;
        let (boot, core) = linked(&boot, core).ok_or(std::io::ErrorKind::InvalidData)?;
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(output)?;
        let bytes = SYSTEM_AT + system_bytes + END_BYTES;
        file.set_len(bytes)?;
        let mut file = partitioned(file, bytes, system_bytes)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&boot)?;
        file.seek(SeekFrom::Start(CORE_AT))?;
        file.write_all(&core)
    };
    make().map_err(Failure::file(output))
}

/// GRUB's parts with the numbers of the sectors where each goes on; `None` if they are not
/// what we take them for.
fn linked(boot: &[u8], core: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut boot = boot.get(..BOOT_CODE_BYTES)?.to_vec();
    let mut core = core.to_vec();
    let first = CORE_AT / SECTOR_BYTES;
    set_sector(&mut boot, NEXT_SECTOR, first)?;
    set_sector(&mut core, REST_SECTOR, first + 1)?;
    (core.len() as u64 <= CORE_BYTES_MAX).then_some((boot, core))
}

fn set_sector(bytes: &mut [u8], at: usize, sector: u64) -> Option<()> {
    let place = bytes.get_mut(at..)?.first_chunk_mut()?;
    *place = sector.to_le_bytes();
    Some(())
}

/// The disk with its tables.
fn partitioned(mut file: File, bytes: u64, system_bytes: u64) -> std::io::Result<File> {
    let sectors = bytes / SECTOR_BYTES - 1;
    let sectors = u32::try_from(sectors).unwrap_or(u32::MAX);
    let protection = ProtectiveMBR::with_lb_size(sectors);
    protection.overwrite_lba0(&mut file).map_err(other)?;
    let config = GptConfig::new()
        .writable(true)
        .logical_block_size(LogicalBlockSize::Lb512);
    let mut disk = config.create_from_device(file, None).map_err(other)?;
    let mut add = |id: u32, name: &str, at: u64, bytes: u64, kind: Type| {
        let (first, length) = (at / SECTOR_BYTES, bytes / SECTOR_BYTES);
        disk.add_partition_at(name, id, first, length, kind, 0)
            .map(drop)
            .map_err(other)
    };
    add(1, "GRUB", CORE_AT, CORE_BYTES_MAX, BIOS)?;
    add(2, "Sietch", SYSTEM_AT, system_bytes, EFI)?;
    disk.write().map_err(other)
}

fn other(error: impl std::error::Error + Send + Sync + 'static) -> std::io::Error {
    std::io::Error::other(error)
}

/// Makes the file system and copies the files.
fn fill_system(files: &Files, output: &Path, system_bytes: u64) -> Result<(), Failure> {
    let place = format!("{}@@{SYSTEM_AT}", output.display());
    let mut command = tools::command("mformat");
    let sectors = (system_bytes / SECTOR_BYTES).to_string();
    command.args(["-i", &place, "-F", "-v", "SIETCH", "-T", &sectors, "::"]);
    tools::run(command)?;
    let mut command = tools::command("mcopy");
    command.args(["-i", &place, "-s"]);
    command
        .args([files.path("boot"), files.path("EFI")])
        .arg("::/");
    tools::run(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_grub_names_the_sector_where_it_goes_on() {
        let (boot, core) = linked(&[1; 512], &[2; 30_000]).expect("they fit");
        assert_eq!(boot.len(), BOOT_CODE_BYTES);
        assert_eq!(boot[0x5c..0x64], 2048u64.to_le_bytes());
        assert_eq!(core[0x1f4..0x1fc], 2049u64.to_le_bytes());
        assert_eq!(linked(&[1; 512], &[2; 100]), None);
        assert_eq!(linked(&[1; 90], &[2; 30_000]), None);
        assert_eq!(linked(&[1; 512], &vec![2; 1 << 20 | 1]), None);
    }
}
