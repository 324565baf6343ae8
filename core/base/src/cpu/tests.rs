//! Sets of up to 64 CPUs and of up to 256, beside the standard library's.

extern crate std;
use std::collections::BTreeSet;
use std::vec::Vec;

use super::*;

fn numbers<const N: usize>(set: CpuBits<N>) -> Vec<u32> {
    set.iter().map(|cpu| cpu.0).collect()
}

fn set<const N: usize>(numbers: &BTreeSet<u32>) -> CpuBits<N> {
    numbers.iter().copied().map(CpuId).collect()
}

/// A stream of numbers that its seed determines (xorshift64).
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn some(state: &mut u64, limit: u32) -> BTreeSet<u32> {
    let count = next(state) % 70;
    (0..count)
        .map(|_| (next(state) >> 20) as u32 % limit)
        .collect()
}

fn a_set_is_what_a_tree_is<const N: usize>(seed: u64) {
    let limit = (N * 64) as u32;
    let mut state = seed;
    for _ in 0..500 {
        let (left, right) = (some(&mut state, limit), some(&mut state, limit));
        let (a, b) = (set::<N>(&left), set::<N>(&right));
        let same = |set: CpuBits<N>, tree: BTreeSet<u32>| {
            assert_eq!(numbers(set), Vec::from_iter(tree), "seed {seed}");
        };
        same(a & b, &left & &right);
        same(a | b, &left | &right);
        same(a - b, &left - &right);
        assert_eq!(a.len(), left.len(), "seed {seed}");
        assert_eq!(a.is_empty(), left.is_empty(), "seed {seed}");
        assert_eq!(a.first().map(|cpu| cpu.0), left.first().copied());
        let all = (0..limit + 100).filter(|cpu| a.contains(CpuId(*cpu)));
        assert_eq!(Vec::from_iter(all), numbers(a), "seed {seed}");
    }
}

#[test]
fn sets_do_what_trees_do() {
    a_set_is_what_a_tree_is::<1>(7);
    a_set_is_what_a_tree_is::<4>(11);
}

#[test]
fn the_first_cpus_are_as_many_as_asked_for_and_fit() {
    for count in [0, 1, 63, 64, 65, 128, 255, 256] {
        let set = CpuBits::<4>::first_of(count);
        assert_eq!(numbers(set), Vec::from_iter(0..count as u32));
    }
    assert_eq!(CpuBits::<1>::first_of(64), CpuBits::ALL);
    assert_eq!(CpuBits::<1>::first_of(1000), CpuBits::ALL);
}

#[test]
fn members_follow_one_another_in_a_circle() {
    let set: CpuBits<4> = [2, 64, 70, 200].map(CpuId).into_iter().collect();
    let after = |cpu| Vec::from_iter(set.iter_after(CpuId(cpu)).map(|member| member.0));
    assert_eq!(after(64), [70, 200, 2, 64]);
    assert_eq!(after(65), [70, 200, 2, 64]);
    assert_eq!(after(200), [2, 64, 70, 200]);
}

#[test]
fn bytes_beyond_the_last_cpu_and_missing_ones_are_taken_for_none() {
    assert_eq!(
        numbers(CpuBits::<1>::from_bytes(&[1, 0x80, 2])),
        [0, 15, 17]
    );
    let mut bytes = [0; 40];
    (bytes[8], bytes[32]) = (1, 0xff);
    assert_eq!(numbers(CpuBits::<4>::from_bytes(&bytes)), [64]);
}

#[test]
fn a_shared_set_says_who_came_first() {
    let shared = SharedCpuBits::<Native, 4>::default();
    let order = Ordering::SeqCst;
    assert!(shared.is_empty(order));
    assert!(shared.insert(CpuId(130), order));
    assert!(!shared.insert(CpuId(131), order));
    assert!(shared.contains(CpuId(130), order) && !shared.contains(CpuId(2), order));
    shared.remove(CpuId(130), order);
    assert_eq!(numbers(shared.load(order)), [131]);
    assert_eq!(numbers(shared.take(order)), [131]);
    assert!(shared.is_empty(order));
}
