//! /sys/kernel/iommu_groups and what leads there: which functions the IOMMU tells from others, and
//! which of them programs may drive (linux/Documentation/driver-api/vfio).
//!
//! Each function behind a unit is a group of its own. One that is left to programs has the driver
//! `vfio-pci`, which is how programs of others look for it. What root writes into that driver's `unbind` is the
//! name of a function that is taken from its program and given to nobody, until it is written into `bind`.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use pci::{Function, functions};
use sync::Error;
use vfs::pseudo::{Entry, Link, Special, Target, Text, TextFile};
use vfs::{FileType, InodeRef, Metadata};

/// Parameters of Linux's modules that programs look at.
pub const ENTRIES: [Entry; 3] = [
    Entry::new(
        "module/vfio/parameters/enable_unsafe_noiommu_mode",
        |text| {
            writeln!(
                text,
                "{}",
                if kernel_vfio::are_unconfined() {
                    "Y"
                } else {
                    "N"
                }
            )
        },
    ),
    Entry::new(
        "module/vfio_iommu_type1/parameters/dma_entry_limit",
        |text| writeln!(text, "65535"),
    ),
    Entry::new("module/vfio_pci/parameters/disable_vga", |text| {
        writeln!(text, "N")
    }),
];

/// The links of all functions. Their paths are made once and stay.
pub fn links() -> Vec<Special> {
    let mut links = Vec::new();
    for (index, function) in functions().iter().enumerate() {
        let Some(group) = group_of(function) else {
            continue;
        };
        let name = name(function);
        let mut add = |path: String, make| {
            links.push(Special {
                path: String::leak(path),
                make,
                argument: index,
                mode: 0o777,
                kind: FileType::Symlink,
            });
        };
        add(format!("bus/pci/devices/{name}/iommu_group"), to_group);
        add(
            format!("kernel/iommu_groups/{group}/devices/{name}"),
            to_device,
        );
        if kernel_vfio::group_of(function.address()).is_some() {
            add(format!("bus/pci/devices/{name}/driver"), to_driver);
            add(format!("bus/pci/drivers/vfio-pci/{name}"), to_device);
        }
    }
    links
}

/// The files by which functions are taken from programs and offered again, where there are any to offer.
pub fn files() -> Vec<Special> {
    let mut offered = functions().iter().map(Function::address);
    if !offered.any(|address| kernel_vfio::group_of(address).is_some()) {
        return Vec::new();
    }
    let file = |(path, argument)| Special {
        path,
        make: bind,
        argument,
        mode: 0o200,
        kind: FileType::Regular,
    };
    let paths = [
        ("bus/pci/drivers/vfio-pci/unbind", 0),
        ("bus/pci/drivers/vfio-pci/bind", 1),
    ];
    paths.map(file).into()
}

fn bind(metadata: Metadata, is_bound: usize) -> InodeRef {
    let nothing = |_: &mut Text| Err(Error::Io);
    let take = move |name: &[u8]| kernel_vfio::bind(name.trim_ascii_end(), is_bound != 0);
    TextFile::new(metadata, Box::new(nothing), Some(Box::new(take)))
}

fn group_of(function: &Function) -> Option<usize> {
    let address = function.address();
    iommu::group_of(address).or_else(|| kernel_vfio::group_of(address))
}

fn name(function: &Function) -> String {
    format!("0000:{}", function.address())
}

fn link(metadata: Metadata, index: usize, target: fn(&Function) -> String) -> InodeRef {
    let target = functions().get(index).map(target).unwrap_or_default();
    let find = move || Ok(Target::Text(target.clone().into_bytes()));
    Link::new(metadata, Box::new(find))
}

fn to_group(metadata: Metadata, index: usize) -> InodeRef {
    link(metadata, index, |function| {
        let group = group_of(function).unwrap_or(0);
        format!("../../../../kernel/iommu_groups/{group}")
    })
}

fn to_device(metadata: Metadata, index: usize) -> InodeRef {
    link(metadata, index, |function| {
        format!("../../../../bus/pci/devices/{}", name(function))
    })
}

fn to_driver(metadata: Metadata, index: usize) -> InodeRef {
    link(metadata, index, |_| {
        "../../../../bus/pci/drivers/vfio-pci".into()
    })
}
