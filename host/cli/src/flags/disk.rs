//! `--disk`: a file of the host, and how it is one.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use qemu::{DiskBus, DiskFormat, Trial};

/// Virtual functions of the controller: all those of its place on the bus.
const FUNCTIONS: RangeInclusive<u8> = 1..=7;

/// `FILE[,format=raw|qcow2][,bus=virtio|nvme][,vf=N][,block=512|4096][,cache=writeback|unsafe][,ro]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskFlag {
    /// The file on the host.
    pub file: PathBuf,
    /// What is in it.
    pub format: DiskFormat,
    /// Whether the machine may only read.
    pub read_only: bool,
    /// How the machine reaches it.
    pub bus: DiskBus,
    /// The virtual function of the NVMe controller that has it (`vf=1`).
    pub virtual_function: Option<u8>,
    /// Bytes of a block (`block=4096`), if not 512.
    pub block_bytes: Option<u32>,
    /// Whether the host takes no notice of flushes (`cache=unsafe`).
    pub is_unsafe: bool,
    /// What a test does with it (`bad-sector=N`, `record=FILE` or `faults=FILE`).
    pub trial: Option<Trial>,
}

impl FromStr for DiskFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "give FILE[,format=raw|qcow2][,bus=virtio|nvme[,vf=1..7]][,block=512|4096][,cache=writeback|unsafe][,ro]";
        let mut words = text.split(',');
        let file = words.next().filter(|file| !file.is_empty()).ok_or(FORM)?;
        let mut disk = Self {
            file: file.into(),
            format: DiskFormat::Raw,
            read_only: false,
            bus: DiskBus::Virtio,
            virtual_function: None,
            block_bytes: None,
            is_unsafe: false,
            trial: None,
        };
        let is_known = words.all(|word| disk.set(word).is_some());
        let is_whole = disk.virtual_function.is_none() || disk.bus == DiskBus::Nvme;
        match is_known && is_whole {
            true => Ok(disk),
            false => Err(FORM.into()),
        }
    }
}

impl DiskFlag {
    /// Takes what a word says of the disk; `None` if it says nothing.
    fn set(&mut self, word: &str) -> Option<()> {
        match word.split_once('=') {
            Some(("format", "raw")) => self.format = DiskFormat::Raw,
            Some(("format", "qcow2")) => self.format = DiskFormat::Qcow2,
            Some(("bus", "virtio")) => self.bus = DiskBus::Virtio,
            Some(("bus", "nvme")) => self.bus = DiskBus::Nvme,
            Some(("vf", function)) => {
                let function = function.parse().ok();
                self.virtual_function = Some(function.filter(|number| FUNCTIONS.contains(number))?);
            }
            Some(("block", "512")) => self.block_bytes = Some(512),
            Some(("block", "4096")) => self.block_bytes = Some(4096),
            Some(("cache", "writeback")) => self.is_unsafe = false,
            Some(("cache", "unsafe")) => self.is_unsafe = true,
            Some(("bad-sector", sector)) => {
                self.trial = Some(Trial::BadSector(sector.parse().ok()?));
            }
            Some(("record", file)) => self.trial = Some(Trial::Record(file.into())),
            Some(("faults", file)) => self.trial = Some(Trial::Faults(file.into())),
            None if word == "ro" => self.read_only = true,
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_a_file_and_what_is_said_of_it() {
        let disk: DiskFlag = "a/b.qcow2,format=qcow2,ro".parse().unwrap();
        assert_eq!(disk.file, PathBuf::from("a/b.qcow2"));
        assert_eq!((disk.format, disk.read_only), (DiskFormat::Qcow2, true));
        let disk: DiskFlag = "b,bad-sector=7".parse().unwrap();
        assert_eq!(
            (disk.format, disk.trial),
            (DiskFormat::Raw, Some(Trial::BadSector(7)))
        );
        let disk: DiskFlag = "c,bus=nvme,block=4096,cache=unsafe".parse().unwrap();
        assert_eq!((disk.bus, disk.block_bytes), (DiskBus::Nvme, Some(4096)));
        assert!(disk.is_unsafe);
        let disk: DiskFlag = "d,bus=nvme,vf=2".parse().unwrap();
        assert_eq!(disk.virtual_function, Some(2));
        for wrong in [
            "a,vf=1",
            "a,bus=nvme,vf=0",
            "a,bus=nvme,vf=8",
            "",
            ",ro",
            "a,bus=ide",
            "a,block=1024",
            "a,cache=none",
            "a,format=vmdk",
            "a,rw",
            "a,bad-sector=x",
        ] {
            assert!(wrong.parse::<DiskFlag>().is_err(), "{wrong}");
        }
    }
}
