//! NUMA nodes.

use super::Args;
use crate::machine::Machine;

impl Machine {
    /// Nodes in a row: each step between two adds to their distance.
    pub(super) fn add_nodes(&self, args: &mut Args) {
        const NEAR: u8 = 10;
        let (kind, share) = match self.shares_memory() {
            true => ("memfd", ",share=on"),
            false => ("ram", ""),
        };
        let (nodes, cpus) = (u32::from(self.nodes), u32::from(self.cpus));
        for node in 0..nodes {
            let part = |whole: u32| whole * node / nodes..whole * (node + 1) / nodes;
            let (memory, own) = (part(self.memory_mib), part(cpus));
            args.pair(
                "-object",
                format!(
                    "memory-backend-{kind},id=node{node},size={}M{share}",
                    memory.len()
                ),
            );
            let own = match own.is_empty() {
                true => String::new(),
                false => format!(",cpus={}-{}", own.start, own.end - 1),
            };
            args.pair(
                "-numa",
                format!("node,nodeid={node},memdev=node{node}{own}"),
            );
        }
        for (from, to) in (0..self.nodes).flat_map(|from| (0..self.nodes).map(move |to| (from, to)))
        {
            let distance = NEAR + NEAR * from.abs_diff(to);
            args.pair("-numa", format!("dist,src={from},dst={to},val={distance}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::args::tests::machine;
    use crate::machine::Machine;
    use crate::program::Acceleration;

    #[test]
    fn nodes_share_all_memory_and_all_cpus() {
        let machine = Machine {
            nodes: 3,
            cpus: 2,
            memory_mib: 256,
            ..machine()
        };
        let args = machine.qemu_args(Acceleration::Tcg);
        let has = |wanted: &str| assert!(args.contains(&wanted.to_string()), "{args:?}");
        has("memory-backend-ram,id=node0,size=85M");
        has("memory-backend-ram,id=node2,size=86M");
        has("node,nodeid=0,memdev=node0");
        has("node,nodeid=1,memdev=node1,cpus=0-0");
        has("node,nodeid=2,memdev=node2,cpus=1-1");
        has("dist,src=0,dst=2,val=30");
    }
}
