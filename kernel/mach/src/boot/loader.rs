//! Reading what the loader left: PVH start information or Linux boot parameters.
//!
//! Both lie in memory below 4 GiB that nobody writes after boot, so slices into them live
//! as long as the kernel; the spans are reserved in the memory map.
//! PVH: Xen's `docs/misc/pvh`, "HVM start info". Boot parameters: Linux'
//! `Documentation/arch/x86/zero-page.rst`.

use arch::layout::{BOOT_DIRECT_MAP_BYTES, DIRECT_MAP, IMAGE_OFFSET};
use base::PhysAddr;

use super::BootInfo;
use super::map::{MemoryMap, Region, RegionKind, Span};

const PVH_MAGIC: u32 = 0x336e_c578;
const CMDLINE_BYTES_MAX: usize = 4096;
const USABLE: u32 = 1;
const ACPI_RECLAIMABLE: u32 = 3;
const ACPI_STORAGE: u32 = 4;

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
    assert!(
        at + count as u64 <= BOOT_DIRECT_MAP_BYTES,
        "loaders load below 4 GiB"
    );
    // SAFETY: the caller vouches for them, and they are mapped.
    unsafe { core::slice::from_raw_parts((DIRECT_MAP + at) as *const u8, count) }
}

unsafe fn text(at: u64) -> &'static str {
    if at == 0 {
        return "";
    }
    // SAFETY: the loader's text ends with a zero.
    let bytes = unsafe { bytes(at, CMDLINE_BYTES_MAX) };
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(0);
    core::str::from_utf8(&bytes[..end]).unwrap_or("")
}

/// Reads what the loader left at `address`, in the form that belongs to `door`.
///
/// # Safety
/// `door` and `address` are what the entry code passed on.
pub(super) unsafe fn read(door: u64, address: u64) -> BootInfo {
    // SAFETY: the caller vouches for both.
    let mut info = unsafe {
        if door == arch::boot::door::PVH {
            read_pvh(address)
        } else {
            read_long(address)
        }
    };
    info.memory.reserve(image());
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

unsafe fn read_pvh(address: u64) -> BootInfo {
    // SAFETY: the PVH door leaves start information at the address.
    let start: StartInfo = unsafe { peek(address) };
    assert!(start.magic == PVH_MAGIC, "the loader is no PVH loader");
    let mut memory = MemoryMap::new();
    for index in 0..u64::from(start.memory_map_count) {
        // SAFETY: the start information says that so many entries follow.
        memory.add(region(unsafe { peek(start.memory_map + index * 24) }));
    }
    let mut initrd: &'static [u8] = &[];
    if start.module_count != 0 {
        // SAFETY: the start information says that there is a module, and nobody writes to it.
        let module: Module = unsafe { peek(start.modules) };
        memory.reserve(Span {
            start: PhysAddr(module.start),
            bytes: module.bytes,
        });
        // SAFETY: as above.
        initrd = unsafe { bytes(module.start, module.bytes as usize) };
    }
    // SAFETY: the start information names the command line.
    let cmdline = unsafe { text(start.cmdline) };
    reserve_text(&mut memory, start.cmdline, cmdline);
    BootInfo {
        cmdline,
        initrd,
        memory,
        rsdp: (start.rsdp != 0).then_some(PhysAddr(start.rsdp)),
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

unsafe fn read_long(address: u64) -> BootInfo {
    use zero_page::*;
    let mut memory = MemoryMap::new();
    // SAFETY: the 64-bit door leaves boot parameters at the address.
    unsafe {
        for index in 0..u64::from(peek::<u8>(address + MAP_COUNT)) {
            let at = address + MAP + index * MAP_ENTRY_BYTES;
            let (start, bytes, kind) = (peek(at), peek(at + 8), peek(at + 16));
            memory.add(region(MapEntry {
                start,
                bytes,
                kind,
                reserved: 0,
            }));
        }
        let start = u64::from(peek::<u32>(address + INITRD));
        let count = u64::from(peek::<u32>(address + INITRD_BYTES));
        memory.reserve(Span {
            start: PhysAddr(start),
            bytes: count,
        });
        let at = u64::from(peek::<u32>(address + CMDLINE));
        let cmdline = text(at);
        reserve_text(&mut memory, at, cmdline);
        let rsdp: u64 = peek(address + RSDP);
        BootInfo {
            cmdline,
            initrd: bytes(start, count as usize),
            memory,
            rsdp: (rsdp != 0).then_some(PhysAddr(rsdp)),
        }
    }
}

fn region(entry: MapEntry) -> Region {
    let kind = match entry.kind {
        USABLE => RegionKind::Usable,
        ACPI_RECLAIMABLE | ACPI_STORAGE => RegionKind::Acpi,
        _ => RegionKind::Reserved,
    };
    Region {
        span: Span {
            start: PhysAddr(entry.start),
            bytes: entry.bytes,
        },
        kind,
    }
}

fn reserve_text(memory: &mut MemoryMap, at: u64, text: &str) {
    memory.reserve(Span {
        start: PhysAddr(at),
        bytes: text.len() as u64,
    });
}
