//! The nodes of a machine, as SRAT and SLIT tell together.
//!
//! A proximity domain with memory or CPUs is a node; nodes are numbered in the order of
//! their domains' numbers.

use crate::slit::{self, FAR, NEAR};
use crate::srat::{Affinity, affinities};

/// Nodes of a machine at most.
pub const NODES_MAX: usize = 8;
/// Ranges of memory at most.
pub const RANGES_MAX: usize = 32;
/// CPUs at most whose node is kept.
pub const CPUS_MAX: usize = 256;

/// Bytes `start..end` of physical memory, which belong to a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryRange {
    /// The first byte.
    pub start: u64,
    /// The first byte behind.
    pub end: u64,
    /// Whose it is.
    pub node: u8,
}

/// The tables make no picture of nodes; the machine should be taken for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumaError {
    /// No structure in the table is enabled and whole.
    Empty,
    /// More domains than [`NODES_MAX`].
    TooManyNodes,
    /// More ranges of memory than [`RANGES_MAX`].
    TooManyRanges,
    /// More CPUs than [`CPUS_MAX`].
    TooManyCpus,
    /// A range that leaves the address space.
    Endless {
        /// Where it starts.
        start: u64,
    },
    /// Two ranges claim the same byte.
    Overlap {
        /// The byte.
        at: u64,
    },
}

/// The nodes of a machine.
#[derive(Clone, Debug)]
pub struct Numa {
    /// The domains of the nodes, ascending.
    domains: [u32; NODES_MAX],
    nodes: usize,
    /// Ascending, disjoint.
    memory: [MemoryRange; RANGES_MAX],
    ranges: usize,
    /// APIC numbers and nodes.
    cpus: [(u32, u8); CPUS_MAX],
    cpu_count: usize,
    distances: [[u8; NODES_MAX]; NODES_MAX],
}

impl Numa {
    /// A machine without nodes: one for all.
    pub const fn one_node() -> Self {
        let mut numa = Self::empty();
        numa.nodes = 1;
        numa.distances[0][0] = NEAR;
        numa
    }

    const fn empty() -> Self {
        let nowhere = MemoryRange {
            start: 0,
            end: 0,
            node: 0,
        };
        Self {
            domains: [0; NODES_MAX],
            nodes: 0,
            memory: [nowhere; RANGES_MAX],
            ranges: 0,
            cpus: [(0, 0); CPUS_MAX],
            cpu_count: 0,
            distances: [[FAR; NODES_MAX]; NODES_MAX],
        }
    }

    /// What these tables say, headers included. Without a SLIT, or where it says nothing
    /// that can be, other nodes are equally far.
    pub fn read(srat: &[u8], slit: Option<&[u8]>) -> Result<Self, NumaError> {
        let mut numa = Self::empty();
        for affinity in affinities(srat) {
            let (Affinity::Memory { domain, .. } | Affinity::Cpu { domain, .. }) = affinity;
            numa.add_domain(domain)?;
        }
        if numa.nodes == 0 {
            return Err(NumaError::Empty);
        }
        numa.domains[..numa.nodes].sort_unstable();
        for affinity in affinities(srat) {
            numa.add(affinity)?;
        }
        numa.sort_memory()?;
        numa.measure(slit.unwrap_or(&[]));
        Ok(numa)
    }

    fn add_domain(&mut self, domain: u32) -> Result<(), NumaError> {
        if self.domains[..self.nodes].contains(&domain) {
            return Ok(());
        }
        let slot = self.domains.get_mut(self.nodes);
        *slot.ok_or(NumaError::TooManyNodes)? = domain;
        self.nodes += 1;
        Ok(())
    }

    fn node_of_domain(&self, wanted: u32) -> u8 {
        let domains = self.domains[..self.nodes].iter();
        let below = domains.take_while(|&&domain| domain < wanted);
        below.count() as u8
    }

    fn add(&mut self, affinity: Affinity) -> Result<(), NumaError> {
        match affinity {
            Affinity::Cpu { domain, apic_id } => {
                let node = self.node_of_domain(domain);
                let slot = self.cpus.get_mut(self.cpu_count);
                *slot.ok_or(NumaError::TooManyCpus)? = (apic_id, node);
                self.cpu_count += 1;
            }
            Affinity::Memory { bytes: 0, .. } => {}
            Affinity::Memory {
                domain,
                start,
                bytes,
            } => {
                let end = start
                    .checked_add(bytes)
                    .ok_or(NumaError::Endless { start })?;
                let node = self.node_of_domain(domain);
                let slot = self.memory.get_mut(self.ranges);
                *slot.ok_or(NumaError::TooManyRanges)? = MemoryRange { start, end, node };
                self.ranges += 1;
            }
        }
        Ok(())
    }

    fn sort_memory(&mut self) -> Result<(), NumaError> {
        let memory = &mut self.memory[..self.ranges];
        memory.sort_unstable_by_key(|range| range.start);
        let mut pairs = memory.windows(2);
        match pairs.find(|pair| pair[1].start < pair[0].end) {
            Some(pair) => Err(NumaError::Overlap { at: pair[1].start }),
            None => Ok(()),
        }
    }

    fn measure(&mut self, slit: &[u8]) {
        for (from, row) in self.domains[..self.nodes].iter().zip(&mut self.distances) {
            for (to, slot) in self.domains[..self.nodes].iter().zip(row) {
                let otherwise = if from == to { NEAR } else { FAR };
                *slot = slit::distance(slit, *from, *to).unwrap_or(otherwise);
            }
        }
    }

    /// How many nodes there are, at least one.
    pub const fn nodes(&self) -> usize {
        self.nodes
    }

    /// Whose memory is where, ascending and disjoint.
    pub fn memory(&self) -> &[MemoryRange] {
        &self.memory[..self.ranges]
    }

    /// The node of the CPU with this APIC number; 0 for one that is not listed.
    pub fn node_of_cpu(&self, apic_id: u32) -> u8 {
        let mut cpus = self.cpus[..self.cpu_count].iter();
        let found = cpus.find(|(known, _)| *known == apic_id);
        found.map_or(0, |&(_, node)| node)
    }

    /// How far memory of `to` is from CPUs of `from`: 10 within a node, longer otherwise.
    pub fn distance(&self, from: u8, to: u8) -> u8 {
        let row = self.distances.get(usize::from(from));
        let distance = row.and_then(|row| row.get(usize::from(to)));
        distance.copied().unwrap_or(FAR)
    }
}
