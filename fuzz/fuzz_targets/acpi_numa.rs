//! Any bytes are an SRAT and a SLIT: what is made of them does not contradict itself, or it
//! is an error.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], Option<&[u8]>)| {
    let (srat, slit) = input;
    let Ok(numa) = acpi::Numa::read(srat, slit) else {
        return;
    };
    let nodes = numa.nodes() as u8;
    assert!((1..=acpi::NODES_MAX).contains(&numa.nodes()));
    for range in numa.memory() {
        assert!(range.start < range.end && range.node < nodes);
    }
    for pair in numa.memory().windows(2) {
        assert!(pair[0].end <= pair[1].start);
    }
    for apic_id in 0..=u8::MAX {
        assert!(numa.node_of_cpu(u32::from(apic_id)) < nodes);
    }
    for (from, to) in (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))) {
        assert_eq!(numa.distance(from, to) == 10, from == to);
        assert!(numa.distance(from, to) >= 10);
    }
});
