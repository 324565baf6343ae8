//! Reading what the loader left: PVH start information, Linux boot parameters or multiboot2
//! information.
//!
//! All of it lies in memory below 4 GiB and is copied out here, so that nothing of it need be
//! kept; only the modules stay where they are, reserved in the memory map, and slices
//! into them live as long as the kernel.
//! PVH: Xen's `docs/misc/pvh`, "HVM start info". Boot parameters: Linux's
//! `Documentation/arch/x86/zero-page.rst`. Multiboot2: `core/bootinfo`.

use ::acpi::{RSDP_BYTES_MAX, Root};
use arch::boot::BootProtocol;
use arch::layout::{BOOT_DIRECT_MAP_BYTES, DIRECT_MAP, IMAGE_OFFSET};
use base::PhysAddr;
use bootinfo::multiboot2::{self, Tag};
use bootinfo::{Region, RegionKind, Span};

use super::{BootInfo, CommandLine};
use crate::klog;

const PVH_MAGIC: u32 = 0x336e_c578;
const CMDLINE_BYTES_MAX: usize = 4096;

#[repr(C)]
#[derive(Clone, Copy)]
struct StartInfo {
    magic: u32,
    version: u32,
    flags: u32,
    module_count: u32,
    modules: u64,
    cmdline: u64,
    rsdp: u64,
    memory_map: u64,
    memory_map_count: u32,
    reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Module {
    start: u64,
    bytes: u64,
    cmdline: u64,
    reserved: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct MapEntry {
    start: u64,
    bytes: u64,
    kind: u32,
    reserved: u32,
}

/// What lies at `at`, through the boot tables' direct map.
///
/// # Safety
/// The loader left a `T` there.
unsafe fn peek<T: Copy>(at: u64) -> T {
    assert!(
        at < BOOT_DIRECT_MAP_BYTES,
        "loaders leave their notes below 4 GiB"
    );
    // SAFETY: the caller vouches for the type, and the address is mapped.
    unsafe { ((DIRECT_MAP + at) as *const T).read_unaligned() }
}

/// The bytes at `at`, for ever.
///
/// # Safety
/// Nobody writes to them.
unsafe fn bytes(at: u64, count: usize) -> &'static [u8] {
    let end = at.checked_add(count as u64);
    assert!(
        end.is_some_and(|end| end <= BOOT_DIRECT_MAP_BYTES),
        "loaders load below 4 GiB"
    );
    // SAFETY: the caller vouches for them, and they are mapped.
    unsafe { core::slice::from_raw_parts((DIRECT_MAP + at) as *const u8, count) }
}

/// The text at `at`, up to its NUL.
///
/// # Safety
/// There is one, or `at` is 0.
unsafe fn text(at: u64) -> &'static str {
    if at == 0 {
        return "";
    }
    // SAFETY: the loader's text ends with a zero.
    let bytes = unsafe { bytes(at, CMDLINE_BYTES_MAX) };
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(0);
    core::str::from_utf8(&bytes[..end]).unwrap_or("")
}

/// ACPI's tables, by the root pointer at `at`.
///
/// # Safety
/// There is one, or `at` is 0.
unsafe fn acpi_root(at: u64) -> Option<Root> {
    if at == 0 {
        return None;
    }
    // SAFETY: the caller vouches for it.
    Root::parse(unsafe { bytes(at, RSDP_BYTES_MAX) })
}

impl BootInfo {
    /// Adds what was loaded at `span`.
    ///
    /// # Safety
    /// Nobody writes there.
    unsafe fn add_module(&mut self, span: Span) {
        let slot = self.archives.get_mut(self.archive_count);
        let (Some(slot), true) = (slot, self.memory.reserve(span)) else {
            return klog!("there are more modules than room for them: one is left out");
        };
        // SAFETY: the caller vouches for the bytes, and no memory is taken from reserved spans.
        *slot = unsafe { bytes(span.start.0, span.bytes as usize) };
        self.archive_count += 1;
    }
}

/// Reads what the loader left at `address`, in the form that belongs to `protocol`.
///
/// # Safety
/// `protocol` and `address` are what the entry code passed on.
pub(super) unsafe fn read(protocol: u64, address: u64) -> BootInfo {
    let mut info = BootInfo::new();
    let fits = info.memory.reserve(image());
    assert!(fits, "the first reservation");
    // SAFETY: the caller vouches for both.
    unsafe {
        match BootProtocol::of(protocol) {
            BootProtocol::Pvh => read_pvh(address, &mut info),
            BootProtocol::Long => read_long(address, &mut info),
            BootProtocol::Multiboot2 => read_multiboot2(address, &mut info),
        }
    }
    info
}

fn image() -> Span {
    unsafe extern "C" {
        static __image_start: u8;
        static __image_end: u8;
    }
    let start = &raw const __image_start as u64 - IMAGE_OFFSET;
    let end = &raw const __image_end as u64 - IMAGE_OFFSET;
    Span {
        start: PhysAddr(start),
        bytes: end - start,
    }
}

unsafe fn read_pvh(address: u64, info: &mut BootInfo) {
    // SAFETY: the PVH protocol leaves start information at the address, which says what follows.
    unsafe {
        let start: StartInfo = peek(address);
        assert!(start.magic == PVH_MAGIC, "the loader is no PVH loader");
        for index in 0..u64::from(start.memory_map_count) {
            info.memory.add(region(peek(start.memory_map + index * 24)));
        }
        for index in 0..u64::from(start.module_count) {
            let module: Module = peek(start.modules + index * 32);
            info.add_module(Span {
                start: PhysAddr(module.start),
                bytes: module.bytes,
            });
        }
        info.cmdline = CommandLine::of(text(start.cmdline));
        info.acpi = acpi_root(start.rsdp);
    }
}

/// Offsets in the boot parameters.
mod zero_page {
    pub const RSDP: u64 = 0x70;
    pub const MAP_COUNT: u64 = 0x1e8;
    pub const INITRD: u64 = 0x218;
    pub const INITRD_BYTES: u64 = 0x21c;
    pub const CMDLINE: u64 = 0x228;
    pub const MAP: u64 = 0x2d0;
    pub const MAP_ENTRY_BYTES: u64 = 20;
}

unsafe fn read_long(address: u64, info: &mut BootInfo) {
    use zero_page::*;
    // SAFETY: the 64-bit protocol leaves boot parameters at the address.
    unsafe {
        for index in 0..u64::from(peek::<u8>(address + MAP_COUNT)) {
            let at = address + MAP + index * MAP_ENTRY_BYTES;
            let (start, bytes, kind) = (peek(at), peek(at + 8), peek(at + 16));
            info.memory.add(region(MapEntry {
                start,
                bytes,
                kind,
                reserved: 0,
            }));
        }
        info.add_module(Span {
            start: PhysAddr(u64::from(peek::<u32>(address + INITRD))),
            bytes: u64::from(peek::<u32>(address + INITRD_BYTES)),
        });
        info.cmdline = CommandLine::of(text(u64::from(peek::<u32>(address + CMDLINE))));
        info.acpi = acpi_root(peek(address + RSDP));
    }
}

unsafe fn read_multiboot2(address: u64, info: &mut BootInfo) {
    // SAFETY: the multiboot2 protocol leaves information at the address, as long as it says.
    let information = unsafe {
        let header = bytes(address, multiboot2::HEADER_BYTES);
        let count = multiboot2::claimed_bytes(header).expect("the loader is no multiboot2 loader");
        bytes(address, count)
    };
    for tag in multiboot2::tags(information) {
        match tag {
            Tag::CommandLine(text) => info.cmdline = CommandLine::of(text),
            // SAFETY: the loader left the module there.
            Tag::Module(span) => unsafe { info.add_module(span) },
            Tag::MemoryMap(entries) => entries.regions().for_each(|region| info.memory.add(region)),
            // Where there are two, the later version's tables have long addresses.
            Tag::AcpiRoot(pointer) => {
                let root = Root::parse(pointer);
                info.acpi = root.max(info.acpi);
            }
        }
    }
}

fn region(entry: MapEntry) -> Region {
    Region {
        span: Span {
            start: PhysAddr(entry.start),
            bytes: entry.bytes,
        },
        kind: RegionKind::of_e820(entry.kind),
    }
}
