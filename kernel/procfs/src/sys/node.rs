//! /sys/devices/system/node: the machine's nodes, their CPUs and memory
//! (linux/Documentation/ABI/stable/sysfs-devices-node).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{Result, Write};

use base::CpuId;
use mach::numa::{self, Node};
use sync::Error;

use vfs::pseudo::{Entry, Special, Text, TextFile, write_list, write_mask};
use vfs::{FileType, InodeRef, Metadata};

const KIB_PER_FRAME: u64 = base::PAGE_BYTES as u64 / 1024;

/// What is said of all nodes together.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new("devices/system/node/online", all),
    Entry::new("devices/system/node/possible", all),
    Entry::new("devices/system/node/has_cpu", with_cpus),
    Entry::new("devices/system/node/has_memory", with_memory),
    Entry::new("devices/system/node/has_normal_memory", with_memory),
];

/// What is said of one node: the file's name and its text.
type Attribute = (&'static str, fn(Node, &mut Text) -> Result);

const ATTRIBUTES: [Attribute; 5] = [
    ("cpulist", |node, text| write_list(text, cpus_of(node))),
    ("cpumap", cpu_map),
    ("distance", distances),
    ("meminfo", memory),
    ("numastat", counters),
];

fn nodes() -> impl Iterator<Item = Node> {
    (0..numa::nodes()).map(|node| Node(node as u8))
}

fn list(text: &mut Text, nodes: impl Iterator<Item = Node>) -> Result {
    write_list(text, nodes.map(|node| usize::from(node.0)))
}

fn all(text: &mut Text) -> Result {
    list(text, nodes())
}

fn with_cpus(text: &mut Text) -> Result {
    list(text, nodes().filter(|&node| cpus_of(node).next().is_some()))
}

fn with_memory(text: &mut Text) -> Result {
    let has_memory = |node: &Node| mach::mem::zone_stats().any(|zone| zone.node == *node);
    list(text, nodes().filter(has_memory))
}

fn cpus_of(node: Node) -> impl Iterator<Item = usize> + Clone {
    let cpus = 0..mach::cpu::count();
    cpus.filter(move |&cpu| numa::node_of(CpuId(cpu as u32)) == node)
}

fn cpu_map(node: Node, text: &mut Text) -> Result {
    write_mask(text, cpus_of(node), mach::cpu::count())
}

fn distances(node: Node, text: &mut Text) -> Result {
    for (other, space) in nodes().zip([""].into_iter().chain(core::iter::repeat(" "))) {
        write!(text, "{space}{}", numa::distance(node, other))?;
    }
    text.write_char('\n')
}

/// What rests in the caches of its CPUs is free memory of the node, too; some of that may
/// be on its way to another one.
fn memory(node: Node, text: &mut Text) -> Result {
    let zones = mach::mem::zone_stats().filter(|zone| zone.node == node);
    let (total, free) = zones.fold((0, 0), |(total, free), zone| {
        (total + zone.managed, free + zone.free())
    });
    let free = total.min(free + mach::mem::cache_stats_of(node).resting);
    for (name, frames) in [("Total", total), ("Free", free), ("Used", total - free)] {
        let name = format!("Mem{name}:");
        let kib = frames * KIB_PER_FRAME;
        writeln!(text, "Node {} {name:<15}{kib:8} kB", node.0)?;
    }
    Ok(())
}

/// Counts frames when they leave a zone, for a CPU's cache or for good. No program asks
/// for the memory of a certain node, so every CPU wishes for its own.
fn counters(node: Node, text: &mut Text) -> Result {
    let by = usize::from(node.0);
    let (mut hit, mut miss, mut foreign) = (0, 0, 0);
    for zone in mach::mem::zone_stats() {
        let own = zone.taken.get(by).copied().unwrap_or(0);
        match zone.node == node {
            true => {
                hit += own;
                miss += zone.taken.iter().sum::<u64>() - own;
            }
            false => foreign += own,
        }
    }
    writeln!(
        text,
        "numa_hit {hit}\nnuma_miss {miss}\nnuma_foreign {foreign}"
    )?;
    writeln!(
        text,
        "interleave_hit 0\nlocal_node {hit}\nother_node {miss}"
    )
}

/// The files of each node. Their paths are made once and stay.
pub(super) fn files() -> Vec<Special> {
    let numbers = || ATTRIBUTES.iter().enumerate();
    let files = nodes().flat_map(|node| {
        numbers().map(move |(number, (name, _))| Special {
            path: String::leak(format!("devices/system/node/node{}/{name}", node.0)),
            make: file,
            argument: usize::from(node.0) << 8 | number,
            mode: 0o444,
            kind: FileType::Regular,
        })
    });
    files.collect()
}

fn file(metadata: Metadata, argument: usize) -> InodeRef {
    let text = move |text: &mut Text| {
        let (_, say) = ATTRIBUTES.get(argument & 0xff).ok_or(Error::NoSuchDevice)?;
        say(Node((argument >> 8) as u8), text).map_err(|_| Error::Io)
    };
    TextFile::new(metadata, Box::new(text), None)
}
