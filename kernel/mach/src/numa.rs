//! The nodes of this machine: which CPUs and which RAM are near to each other.
//!
//! A machine whose firmware says nothing of nodes, or what can not be, is one node.

use ::acpi::Numa;
use base::{CpuId, PAGE_SHIFT};
pub use frames::Node;
use frames::{FrameNo, Layout, NODES_MAX};

use crate::sync::Lazy;
use crate::{acpi, cpu};

const _: () = assert!(::acpi::NODES_MAX <= NODES_MAX, "every node has its zones");

/// The machine's nodes, as its firmware tells.
static NUMA: Lazy<Numa> = Lazy::new(|| match acpi::numa() {
    Some(Ok(numa)) => numa,
    Some(Err(why)) => {
        crate::klog!("the firmware's table of nodes is not used: {why:?}");
        Numa::one_node()
    }
    None => Numa::one_node(),
});

/// How many nodes there are, at least one.
pub fn nodes() -> usize {
    NUMA.nodes()
}

/// The node of a CPU that runs.
pub fn node_of(cpu: CpuId) -> Node {
    Node(NUMA.node_of_cpu(cpu::apic_id(cpu)))
}

/// How far memory of `to` is from CPUs of `from`, in the units of ACPI's SLIT: 10 within a
/// node, longer otherwise.
pub fn distance(from: Node, to: Node) -> u8 {
    NUMA.distance(from.0, to.0)
}

/// Where zones lie.
pub(crate) fn layout() -> Layout {
    let mut starts = [(0, Node(0)); ::acpi::RANGES_MAX];
    let memory = NUMA.memory();
    for (start, range) in starts.iter_mut().zip(memory) {
        let first: FrameNo = range.start >> PAGE_SHIFT;
        *start = (first, Node(range.node));
    }
    Layout::new(&starts[..memory.len()], distance)
}
