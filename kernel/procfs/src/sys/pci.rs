//! /sys/bus/pci/devices: what the PCI functions are, and their registers for programs
//! that bring their own driver (linux/Documentation/PCI/sysfs-pci).
//!
//! `resourceN` can be mapped shared, uncached; `resourceN_wc`, where the range allows it,
//! write-combining. Opening one needs CAP_SYS_RAWIO, and is refused (EBUSY) while a
//! driver of the kernel has the function.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;
use core::ops::Range;

use base::PAGE_BYTES;
use cred::Capability;
use dev::Window;
use hal::caching::Caching;
use hal::pci::{PciFunction, interrupt_line};
use mm::MemoryObject;
use pci::{BARS, Bar, Function, functions};
use sync::{Error, Result};
use task::current;

use vfs::file::{File, FileRef};
use vfs::pseudo::{Special, Text, TextFile};
use vfs::{FileType, Inode, InodeRef, Metadata};

const SUBSYSTEM: u16 = 0x2c;
/// Bits of a range in `resource` (include/linux/ioport.h): memory, prefetchable.
const RESOURCE_MEMORY: u64 = 0x200;
const RESOURCE_PREFETCHABLE: u64 = 0x2000;

/// A file of text: its name and what it says of a function.
type Attribute = (&'static str, fn(&Function, &mut Text) -> core::fmt::Result);

const ATTRIBUTES: [Attribute; 7] = [
    ("vendor", |f, text| {
        writeln!(text, "{:#06x}", f.config_read(0) as u16)
    }),
    ("device", |f, text| {
        writeln!(text, "{:#06x}", f.config_read(0) >> 16)
    }),
    ("class", |f, text| writeln!(text, "{:#08x}", f.class())),
    ("subsystem_vendor", |f, text| {
        writeln!(text, "{:#06x}", f.config_read(SUBSYSTEM) as u16)
    }),
    ("subsystem_device", |f, text| {
        writeln!(text, "{:#06x}", f.config_read(SUBSYSTEM) >> 16)
    }),
    ("irq", |f, text| {
        writeln!(text, "{}", interrupt_line(f).unwrap_or(0))
    }),
    ("resource", resource),
];

/// One line for each base address: start, last byte, kind.
fn resource(function: &Function, text: &mut Text) -> core::fmt::Result {
    for bar in function.bars() {
        let (start, last, kind) = bar.map_or((0, 0, 0), |bar| {
            let prefetchable = if bar.is_prefetchable {
                RESOURCE_PREFETCHABLE
            } else {
                0
            };
            let last = bar.start + (bar.bytes as u64 - 1);
            (bar.start.0, last.0, RESOURCE_MEMORY | prefetchable)
        });
        writeln!(text, "{start:#018x} {last:#018x} {kind:#018x}")?;
    }
    Ok(())
}

/// A function and a small number, as the argument of a file.
fn argument(function: usize, number: usize) -> usize {
    function << 8 | number
}

fn function_of(argument: usize) -> Option<&'static Function> {
    functions().get(argument >> 8)
}

/// The files of all functions. Their paths are made once and stay.
pub fn files() -> Vec<Special> {
    let mut files = Vec::new();
    for (index, function) in functions().iter().enumerate() {
        let place = function.address();
        let folder = format!(
            "bus/pci/devices/0000:{:02x}:{:02x}.{}",
            place.bus, place.device, place.function
        );
        let mut add = |name: &str, mode, make, number| {
            files.push(Special {
                path: String::leak(format!("{folder}/{name}")),
                make,
                argument: argument(index, number),
                mode,
                kind: FileType::Regular,
            });
        };
        for (number, (name, _)) in ATTRIBUTES.iter().enumerate() {
            add(name, 0o444, text_file, number);
        }
        for (number, bar) in function.bars().iter().enumerate() {
            let Some(bar) = bar else { continue };
            add(&format!("resource{number}"), 0o600, registers, number);
            if bar.is_prefetchable {
                let name = format!("resource{number}_wc");
                add(&name, 0o600, registers, BARS + number);
            }
        }
    }
    files
}

fn text_file(metadata: Metadata, argument: usize) -> InodeRef {
    let text = move |text: &mut Text| {
        let function = function_of(argument).ok_or(Error::NoSuchDevice)?;
        let (_, say) = ATTRIBUTES.get(argument & 0xff).ok_or(Error::NoSuchDevice)?;
        say(function, text).map_err(|_| Error::Io)
    };
    TextFile::new(metadata, Box::new(text), None)
}

fn registers(mut metadata: Metadata, argument: usize) -> InodeRef {
    let file = Registers { argument };
    metadata.size = file.bar().map_or(0, |bar| bar.bytes as u64);
    Arc::new(RegistersNode { metadata, file })
}

/// The inode of a base address.
struct RegistersNode {
    metadata: Metadata,
    file: Registers,
}

impl File for RegistersNode {
    fn metadata(&self) -> Result<Metadata> {
        Ok(self.metadata)
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl Inode for RegistersNode {
    fn kind(&self) -> FileType {
        FileType::Regular
    }

    fn open(&self) -> Option<Result<FileRef>> {
        Some(self.file.grant().map(|file| Arc::new(file) as FileRef))
    }

    fn truncate(&self, _size: u64) -> Result<()> {
        Ok(())
    }
}

/// A base address that was granted to whoever has it open.
#[derive(Clone, Copy)]
struct Registers {
    argument: usize,
}

impl Registers {
    fn bar(self) -> Option<Bar> {
        let number = self.argument & 0xff;
        *function_of(self.argument)?.bars().get(number % BARS)?
    }

    fn caching(self) -> Caching {
        match self.argument & 0xff {
            number if number >= BARS => Caching::WriteCombining,
            _ => Caching::Uncached,
        }
    }

    fn grant(self) -> Result<Self> {
        let credentials = current().credentials.get();
        credentials.require(Capability::SysRawio)?;
        match function_of(self.argument)
            .ok_or(Error::NoSuchDevice)?
            .is_driven()
        {
            true => Err(Error::Busy),
            false => Ok(self),
        }
    }
}

impl File for Registers {
    fn is_seekable(&self) -> bool {
        true
    }

    fn map(self: Arc<Self>, range: Range<u64>, is_shared: bool) -> Result<Arc<dyn MemoryObject>> {
        let bar = self.bar().ok_or(Error::NoSuchDevice)?;
        // Whole pages only: what shares a page with a smaller range may be another device's.
        let end = range.end.checked_next_multiple_of(PAGE_BYTES as u64);
        if end.is_none_or(|end| end > bar.bytes as u64) {
            return Err(Error::Invalid);
        }
        Window::open(bar.start, 0, range, is_shared, self.caching())
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
